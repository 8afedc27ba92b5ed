// Package eventqueue orders what happens next. A Queue holds at most one pending instant for each of a fixed
// set of entities (a port's transmitter, the far end of a link, a host's timer) and hands them out in order
// of time.
//
// Entities due at the same instant are ordered by a hash of the instant and the entity, then by entity. That
// makes the order a function of what is pending alone: reproducible, the same however the work is split over
// processors, and fair, since no entity wins every tie.
//
// It reads no clock and does not allocate once its storage has grown to the size of the work.
package eventqueue
