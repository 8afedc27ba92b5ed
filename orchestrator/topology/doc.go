// Package topology turns the topology section of a lab into an immutable graph of hosts, switches and links,
// with addresses, every equal-cost route and the idle delay between any two hosts. It is pure.
package topology
