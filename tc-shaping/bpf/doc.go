// Package bpf holds the programs of a qdisc.Gate: what a direction of a link needs and the kernel's
// queueing disciplines cannot do. Package tcnl attaches them to devices.
//
// A Table is memory that the programs of all ports share with this process: the settings of each
// port, which this process writes and may change at any time, and its counters, which the programs
// write. No system call is needed to read or change them.
//
// Enter runs for each packet that leaves through a device, before its disciplines. Leave runs at
// the other end of the veth pair, for each packet that left them, at the instant of its departure.
// The bytes that entered minus those that left are those that wait: of control packets
// (wire.TOSControl), which Enter puts into the class qdisc.Control, and of data in qdisc.Data.
//
// The programs are assembled here (program.go) with github.com/cilium/ebpf, so that no compiler is
// needed, neither for building Weft nor on users' machines.
package bpf
