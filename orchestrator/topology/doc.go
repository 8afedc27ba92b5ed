// Package topology turns the topology section of a lab into an immutable graph of hosts, switches and links,
// with addresses, every equal-cost route and the idle delay between any two hosts.
//
// In comes a Spec, the topology section; out comes a Graph. Rates are bits per second, delays and round-trip times lab
// time in picoseconds, sizes bytes on the wire. The package is pure: it reads no file and no clock, draws no
// random number, and the same section always gives the same graph.
//
// A route is shortest when it passes the fewest links; hosts never forward. Hosts behind the same switch
// share their routes, so the tables grow with switches, not with hosts.
package topology
