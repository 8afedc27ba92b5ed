//go:build race

package quiettest

// Race reports whether the race detector is on. It makes programs slow and large, so that what
// measures time proves nothing.
const Race = true
