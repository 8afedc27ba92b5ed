// Package symbolic is the memory of ranks without their bytes, for the simulator: of every stretch of a
// buffer it knows which inputs were reduced in it, in a form that is as small for a thousand contributions
// as for one.
//
// The input of rank r at byte x stands for the number a(r) + b(r)·x modulo 2^64, with a and b drawn from a
// hash of (seed, item, repetition, rank). A stretch is described by one such line: moving it shifts the
// line, adding adds lines, and cutting leaves it alone. Two different multisets of contributions, or the same
// from other places, have the same line with a probability of about 2^-64; so a result whose line is the
// expected one holds every contribution exactly once, and no other.
//
// All reductions are followed as if they were sums: a maximum too must get every contribution exactly once.
//
// Messages carry lines from sender to receiver through an Exchange that all hosts of a simulation share.
// Sizes and offsets are bytes. It is pure. An Exchange may be used by several goroutines, each of its memories by one.
package symbolic
