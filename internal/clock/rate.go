//go:build !weftskew

package clock

// skewed returns what CLOCK_MONOTONIC reads on a machine, from what it reads on this one: the same,
// except in a test of clocks that drift (skew.go).
func skewed(ns int64) int64 { return ns }

// Kernel returns the instant of this machine's CLOCK_MONOTONIC for one that Now returns.
func Kernel(ns int64) int64 { return ns }
