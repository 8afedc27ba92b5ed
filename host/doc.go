// Package host is one host of a lab as a pure machine: its transport endpoint and its ranks' programs,
// driven by whoever owns time and packets. The simulator and the node agent run this same code.
//
// Times are lab time in picoseconds, sizes are bytes. It reads no clock and does no I/O.
package host
