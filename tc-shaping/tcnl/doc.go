// Package tcnl applies the discipline trees of package qdisc to devices over netlink
// (rtnetlink(7)), and reads them and their counters back.
//
// A Direction is one direction of a link: the device that its packets leave through and the one
// they arrive at, in namespaces of their own. Apply builds a tree there, Change modifies settings
// in place without losing queued packets, Read and Statistics look at it, and Remove deletes it.
// Packets pass the far end's disciplines on an ifb, whose name IFBName derives from the device
// number.
//
// The codec (encode.go, decode.go) is pure and our own: vishvananda/netlink cannot configure RED,
// and no Go package has netem in nanoseconds. conn.go has the only socket. Frames are filtered by
// sender at the far end's ingress (ingress.go). The package never starts programs. Times are real
// and rates are in bytes per second, as in package qdisc.
package tcnl
