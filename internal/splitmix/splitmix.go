// Package splitmix is the generator SplitMix64 (Steele, Lea and Flood, "Fast Splittable
// Pseudorandom Number Generators", OOPSLA 2014): a hash of 64 bits, and random numbers from one
// word of state. Its output is part of the results of every run and must not change.
package splitmix

// Gamma is the increment of the state with each number: 2^64 divided by the golden ratio.
const Gamma = 0x9e37_79b9_7f4a_7c15

// The factors of Mix.
const (
	First  = 0xbf58_476d_1ce4_e5b9
	Second = 0x94d0_49bb_1331_11eb
)

// Mix returns the number that a generator with state x draws next. It is a bijection in which every
// bit of x changes each bit of the result with a probability near one half, so it is also a hash.
func Mix(x uint64) uint64 {
	x += Gamma
	x = (x ^ x>>30) * First
	x = (x ^ x>>27) * Second
	return x ^ x>>31
}

// Step advances the state and then draws: it returns the number after the one that Next would
// return.
func Step(state *uint64) uint64 {
	*state += Gamma
	return Mix(*state)
}

// Next draws a number and then advances the state.
func Next(state *uint64) uint64 {
	x := Mix(*state)
	*state += Gamma
	return x
}
