// Package state compares the states of machines at two instants, to decide whether the same follows
// from both, and moves a machine to its state after further repetitions of what happened between
// them.
//
// In come pointers to structs and an instant. Out comes a State: a hash of all that can influence
// what follows, relative to the instant, and the results so far. Repeat moves the structs forward.
//
// The one idea: the fields of a type say what they are, by a tag. So there is one declaration for
// comparing and moving, and a field without a tag is detected: no state of its type is ever
// compared (Check), so that a new field can make simulations slow, but never wrong.
//
//	state:"value"     compared as it is
//	state:"instant"   compared relative to now, and moved; instant0: 0 means none
//	state:"count"     a result that grows: moved by what it has grown
//	state:"max"       a result that the same happening again does not change
//	state:"inside"    a struct, or what leads to structs, whose fields say what they are
//	state:"fixed"     never changes, or is another name of a field that is compared
//	state:"idle"      means nothing while the machine is still
//	state:"own"       moved by the type itself
//
// A name behind a comma says of what the field is a part, for those who want to know what has
// changed: state:"inside,congestion control".
//
// Invariants: captures of equal states are equal, on every machine. The package knows no type of
// its own accord, and is pure. Start reading at Capture, then walk.field.
package state
