// Package measure finds out what one direction of a link really does. It sends trains of
// ECN-capable UDP packets from a socket at the near end to one at the far end, and compares rate,
// one-way delay, marks and loss with the requested settings.
//
// The caller opens the two sockets in the network namespaces of the two ends (a socket stays in its
// namespace) and makes sure that nothing else is sent meanwhile. Both ends read the machine's
// clock. Departures are stamped before the system call, arrivals by the kernel (SO_TIMESTAMPNS), so
// waking the receiver late distorts nothing.
//
// Examine (contract.go) is the entry point: it sends a few trains and returns a Found, one Finding
// per property. A Train is a sequence of packets (train.go); Run sends it. The estimators of rate,
// delay, loss and queue length in evaluate.go and marks.go are pure. stall.go measures how late the
// machine wakes threads, so that a caller can tell a bad link from a busy machine.
package measure
