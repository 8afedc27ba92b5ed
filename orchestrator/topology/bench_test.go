package topology_test

import (
	"testing"

	"weft/orchestrator/topology"
)

// BenchmarkBuild makes a graph with its routes.
func BenchmarkBuild(b *testing.B) {
	for _, c := range largeSpecs() {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := topology.Build(c.t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRows fills the tables of every switch, a row of all hosts each.
func BenchmarkRows(b *testing.B) {
	for _, c := range largeSpecs() {
		g := build(b, c.t)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for s := range g.Switches() {
					g.Routes().Row(topology.NodeID(g.Hosts + s))
				}
			}
		})
	}
}

// BenchmarkBaseRTT finds the most distant pair.
func BenchmarkBaseRTT(b *testing.B) {
	for _, c := range largeSpecs() {
		g := build(b, c.t)
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				g.BaseRTT(4200, 110)
			}
		})
	}
}

// BenchmarkPath walks from the first host to the last.
func BenchmarkPath(b *testing.B) {
	for _, c := range largeSpecs() {
		g := build(b, c.t)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Path(0, topology.NodeID(g.Hosts-1))
			}
		})
	}
}
