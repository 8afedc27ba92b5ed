// Package plan works out what deploying a lab would create, as data: the operations in order, what each waits
// for, how each is undone, and what they use in all. In comes a lab and its graph; out comes a Plan, which
// prints as text and as JSON. Sizes are bytes.
//
// It creates nothing and asks the machine nothing, so it needs no privilege: it is what `weft plan` shows.
package plan
