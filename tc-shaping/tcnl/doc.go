// Package tcnl puts the disciplines of package qdisc on devices and reads them back, over netlink (rtnetlink(7)). The codec
// (encode.go, decode.go) is pure and ours, since neither vishvananda/netlink nor others can make a RED, and none
// has netem in nanoseconds; conn.go has the one socket.
//
// Nothing here starts a program. Times are real ones, rates bytes per second, as in package qdisc.
package tcnl
