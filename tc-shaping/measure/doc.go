// Package measure finds out what one direction of a link really does: it sends trains of ECN-capable UDP packets from a socket
// at the near end to one at the far end, and compares rate, one-way delay, marks and loss with what was asked for.
//
// Whoever uses it opens the two sockets in the network namespaces of the two ends (a socket stays where it was made) and sees
// to it that nothing else is sent meanwhile. Both ends read the same clock, that of the machine: departures are stamped before
// the system call, arrivals by the kernel (SO_TIMESTAMPNS), so a receiver that is woken late distorts nothing.
//
// Train is what is sent, Examine holds what is found against what was asked; evaluate.go is pure.
package measure
