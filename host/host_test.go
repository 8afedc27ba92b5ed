package host

import (
	"testing"

	"weft/units"
)

func TestRing(t *testing.T) {
	for _, n := range []int{2, 3, 8, 16} {
		for _, kind := range []int{noMemory, realMemory, symbolicMemory} {
			net := build(t, n, kind, job{Spec: ring(400*units.KB, 16*units.KB), repeat: 2})
			net.run(t)
			net.verify(t, 2*n)
		}
	}
}

func TestAllToAll(t *testing.T) {
	for _, n := range []int{2, 5, 16} {
		for _, kind := range []int{noMemory, realMemory, symbolicMemory} {
			for _, parallel := range []int{0, 1, 3} {
				net := build(t, n, kind, job{Spec: allToAll(400*units.KB, parallel), repeat: 3})
				net.run(t)
				net.verify(t, 3*n)
			}
		}
	}
}
