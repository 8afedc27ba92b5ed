// Package symbolic represents the memory of ranks without their bytes, for the simulator: for every
// extent of a buffer it knows which inputs were reduced into it, in a form of constant size.
//
// The one idea: byte x of the input of rank r stands for the number a(r) + b(r)·x modulo 2^64,
// where a and b come from a hash of seed, item, repetition and rank. An extent has one such linear
// function. Moving the extent shifts it, reducing adds two, and cutting does not change it. Two
// different multisets of contributions, or the same from other offsets, have the same function with
// a probability of about 2^-64. So a result with the expected function has every contribution
// exactly once, and no other.
//
// All reductions are treated as sums: a maximum must get every contribution exactly once, too.
//
// In come the ops of package schedule as they happen (Begin, Send, Apply, End); out comes the
// number of wrong elements. Messages carry content from sender to receiver through an Exchange,
// which all hosts of a simulation share. Sizes and offsets are bytes. It is pure. An Exchange may
// be used by several goroutines, each Memory by one. Start reading at content in content.go.
package symbolic
