// Package topology turns the topology section of a lab into a graph of hosts, switches and links,
// with addresses, all equal-cost routes and the idle delay between any two hosts.
//
//	Spec (the section) ── Build ──► Graph ──► Routes, Path, BaseRTT, Deadlock
//
// A kind of network is one file and one line of kinds.go: a Shape declares its sizes (package
// params) and generates nodes and links. Everything else follows from the graph, so a new kind
// needs no code elsewhere.
//
// A route is shortest if it passes the fewest links; hosts never forward. Equal-cost links form a
// group, from which a switch chooses. Hosts at the same switch share their routes, so tables grow
// with switches and not with hosts. With up-down routes, and with the detours of a dragonfly-plus,
// packets may take other paths; both say so where they are computed.
//
// Rates are bits per second, delays and round-trip times lab time in picoseconds, and sizes bytes
// on the wire. These must hold: the package is pure, so the same section gives the same graph on
// every machine, and links that are drawn to be down follow from the lab's seed; a graph never
// changes once it is built; and every host has exactly one link that is up.
//
// Start reading at Spec in spec.go and Build in build.go, then routes.go. leafspine.go is an
// example of a kind. Package render, below, draws graphs.
package topology
