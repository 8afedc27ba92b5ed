// Package state compares the states of machines at two instants, to decide whether the same follows
// from both, and moves a machine to its state after further repetitions of what happened between
// them.
//
// In come pointers to structs and an instant. Out comes a State: a hash of all that can influence
// what follows, relative to the instant, and the results so far. Repeat moves the structs forward.
//
// The one idea: Go's types say what a field is. So there is one declaration for comparing and
// moving, and a new field is state without a word about it:
//
//	units.Time          an instant: compared relative to now, and moved
//	numbers, text       compared as they are
//	structs, elements   by their own types
//	pointers            what they lead to; nothing may be reached twice
//	interfaces          likewise, if what they hold is Resting
//
// Tags mark the exceptions, for a field and for all that is inside it. On a blank field a tag is
// about its struct.
//
//	state:"-"       no state: it never changes, is another name of what is compared, means nothing
//	                while the machine is still, or is a result that somebody else moves
//	state:"span"    times are lengths, and are compared as they are
//	state:"count"   integers are results that grow: they are moved by what they have grown
//	state:"never"   a pointer: no state with something behind it is ever compared
//
// A name behind a comma says of what the field is a part, for those who want to know what has
// changed: state:",congestion control".
//
// A field that is forgotten costs repetitions that are not found, and no error: results grow, and
// lengths do not move with the time, so that no two states are equal. Two things are wrong unless
// a tag or a Resting type cares for them: an instant that is not a units.Time, and state that a
// field with "-" has in spite of that. What cannot be compared, such as maps and functions, has a
// tag, or no state of its type is ever compared (Check).
//
// Invariants: captures of equal states are equal, on every machine. The package knows no type of
// its own accord but units.Time, and is pure. Start reading at Capture, then walk.field.
package state
