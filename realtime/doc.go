// Package realtime runs the modelled network of package fabric in real time: it is the fabric
// process of an emulated lab.
//
//	host's kernel ── TAP or veth ──► read ──► held until it departs ──► fabric.Network
//	host's kernel ◄─ TAP or veth ─── write at its instant of lab time ◄────────┘
//	host's agent  ◄──► rings in shared memory, in the same places (nic.go), if it has a bypass NIC
//
// It holds one descriptor per host NIC (a TAP device, or a packet socket on a veth), stamps every
// frame that it reads with lab time, lets the model carry the frame, and writes it to the
// descriptor of its destination when its lab time has come. Any IPv4 traffic is carried. ARP is
// answered by the fabric process, which knows every address.
//
// In come frames, and over the control connection the network, the addresses, the start of lab time
// and requests (protocol.go). Out go frames, samples, and a Report: how late every delivery was,
// what the model did not order (frames that a kernel queue rejected), processor time, and the
// model's own counters.
//
// The one idea: events of the model happen at their own instants, however late the process is. It
// may look late at what is due, but then the model computes what would have happened on time; only
// the writing of a frame is late, and the Report says by how much. So rest.go can sleep until the
// next delivery.
//
// Invariants. One goroutine owns the loop, its network and its event queue. Times are lab
// picoseconds unless a name or comment gives another unit. The package makes no decision about the
// network: those are package fabric's. No frame disappears silently: each is carried, or counted in
// the Report.
//
// Start reading at loop.run in loop.go, then read, route, depart and Deliver in carry.go. frame.go,
// telemetry.go and coordinate.go parse and rewrite frames; pause.go tells hosts of PFC; bridge.go
// makes switches PTP transparent clocks; ask.go serves requests.
package realtime
