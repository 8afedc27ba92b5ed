//go:build !race

package quiettest

// Race reports whether the race detector is on. It makes programs slow and large, so that
// measurements of time prove nothing.
const Race = false
