// Package eventqueue orders what happens next in a simulated network. A Queue holds at most
// one pending instant for each of a fixed set of entities (a port's transmitter, the far end
// of a link, a host's timer) and hands them out in order of time.
//
// An entity is a number. Grow adds some, Set makes one pending at an instant or moves it,
// Clear cancels it, and Pop and PopUntil return the earliest. Nothing else comes in or goes out:
// the owner of an entity knows what to do when it is popped.
//
// Entities due at the same instant are ordered by a hash of the instant and the entity, then
// by entity. That makes the order a function of what is pending alone: reproducible, the same
// however the work is split over processors, and fair, since no entity wins every tie.
//
// Time never runs backwards: Set panics at an instant before the one that was popped last.
// The queue reads no clock, and allocates nothing once its storage has grown to the size of
// the work.
//
// Start reading at Queue, which explains the timing wheels, and at Set and PopUntil.
package eventqueue
