package experiment

import (
	"os"
	"testing"

	"weft/orchestrator/lab"
)

// A sketch leaves out connections, and finds all that checks ask about them.
func TestASketchReachesAsFarAsTheExperiment(t *testing.T) {
	for name, text := range map[string]string{
		"fat-tree": "topology: {kind: fat-tree, k: 4, tiers: {host: {rate: 25Gbps}, core: {delay: 7us}}}\nworkload: [{collective: all-to-all, size: 4MB}]\n",
		"one far host": "topology:\n  kind: custom\n  nodes: [{name: s, switch: true}, {name: r, switch: true}, {name: a}, {name: b}, {name: c}, {name: d}]\n" +
			"  links: [{between: [a, s]}, {between: [b, s]}, {between: [c, s], rate: 10Gbps, delay: 9us}, {between: [s, r]}, {between: [d, r], delay: 5us}]\n" +
			"workload: [{collective: all-reduce, algorithm: ring, size: 4MB}, {collective: incast, root: c, size: 1MB}]\n",
		"groups":   "topology: {kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 4}\nworkload: [{collective: all-to-all, ranks: {groups: 4, size: 3}, size: 3MB}]\ntransport: {kind: hpcc}\n",
		"torus":    "topology: {kind: torus, dimensions: [3, 4]}\nworkload: [{collective: permute, size: 4MB}]\ntransport: {kind: strack}\n",
		"incast":   "topology: {kind: dumbbell, hosts: 3}\nworkload: [{collective: incast, ranks: [h1], root: h0, size: 4MB}]\ntransport: {kind: roce, roce: {qps: 2, split: messages}}\n",
		"no flows": "topology: {kind: star, hosts: 3}\nclocks: {sync: none, offset: 1us, for: 1ms}\n",
	} {
		t.Run(name, func(t *testing.T) {
			labs, err := lab.Parse("lab.yaml", []byte("weft: 1\nname: reach\n"+text), lab.Options{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := NetworkOf(labs[0])
			if err != nil {
				t.Fatal(err)
			}
			full, err := compile(labs[0], g, purpose{workload: true})
			if err != nil {
				t.Fatal(err)
			}
			sketch, err := compile(labs[0], g, purpose{workload: true, sketch: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(sketch.Conns) != 0 {
				t.Errorf("the sketch keeps %d connections", len(sketch.Conns))
			}
			if (len(full.Conns) > 0) != full.reach.some() {
				t.Errorf("%d connections, some: %v", len(full.Conns), full.reach.some())
			}
			a, b := &sketch.reach, &full.reach
			if a.rtt != b.rtt || a.bdp != b.bdp || a.slowest != b.slowest || a.switches != b.switches || sketch.BaseRTT != full.BaseRTT {
				t.Errorf("sketch: RTT %v, BDP %v, slowest %v, %d switches; experiment: RTT %v, BDP %v, slowest %v, %d switches",
					a.rtt, a.bdp, a.slowest, a.switches, b.rtt, b.bdp, b.slowest, b.switches)
			}
		})
	}
}

// BenchmarkCheck shows what `weft validate` costs beyond reading a lab, in the largest labs there
// are: all-to-alls of 64 groups over nine points, and permutations of 8192 hosts over 42.
func BenchmarkCheck(b *testing.B) {
	for name, file := range map[string]string{
		"all-to-all":  "../../labs/strack/s10-alltoall.yaml",
		"permutation": "../../labs/strack/s05-links-down.yaml",
	} {
		b.Run(name, func(b *testing.B) {
			text, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			labs, err := lab.Parse(file, text, lab.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if problems := Check(labs); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
