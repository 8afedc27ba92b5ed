//go:build amd64 || arm64

// Package prefetch asks the processor to load memory that will be read soon, so that it waits for
// many cache lines at once and not for one after the other.
package prefetch

import "unsafe"

// Lines asks for n cache lines of 64 bytes from p on, at least one. It does not wait for them.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)
