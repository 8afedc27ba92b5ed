package qdisc

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

// For every Pmax the marked share stays within 4.5 points of the requested line, and is 0 at Min.
func TestMarksFollowTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := RED{
			Min:  units.Bytes(rapid.IntRange(0, 1_000_000).Draw(t, "min")),
			Pmax: rapid.Float64Range(0, 1).Draw(t, "pmax"),
			ECN:  true,
		}
		r.Max = r.Min + units.Bytes(rapid.IntRange(1000, 1_000_000).Draw(t, "width"))
		tree, err := Plan(Direction{Rate: units.Gbps, Limit: 2 * units.MB, RED: &r}, Full())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 101 {
			q := r.Min + (r.Max-r.Min)*units.Bytes(i)/100
			line := r.Pmax * float64(q-r.Min) / float64(r.Max-r.Min)
			if got := tree.MarkedShare(q); math.Abs(got-line) > 0.046 {
				t.Fatalf("%+v marks %.3f with %d bytes waiting; the line is at %.3f", r, got, q, line)
			}
		}
		if below, above := tree.MarkedShare(r.Min), tree.MarkedShare(r.Max+1); below != 0 || above != 1 {
			t.Fatalf("%+v marks %g at min and %g above max", r, below, above)
		}
	})
}

// The test marks packet by packet with a second implementation of sch_red and compares MarkedShare
// with it.
func TestMarkedShareIsThatOfTheKernelsChoice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, pmax := range []float64{0.05, 0.2, 0.5, 0.7, 1} {
		tree, err := Plan(Direction{Rate: units.Gbps, Limit: units.MB, RED: &RED{Min: 10_000, Max: 110_000,
			Pmax: pmax, ECN: true}}, Full())
		if err != nil {
			t.Fatal(err)
		}
		for _, queue := range []units.Bytes{10_000, 20_000, 60_000, 90_000, 109_000} {
			const n = 100_000
			marked := 0
			gates := gates(tree)
			for range n {
				ce := false
				for _, g := range gates {
					ce = g.choose(random, queue) || ce // a marked packet passes the next stage like any other
				}
				if ce {
					marked++
				}
			}
			if got, want := float64(marked)/n, tree.MarkedShare(queue); math.Abs(got-want) > 0.01 {
				t.Errorf("pmax %g, %d bytes: %.3f of the packets marked, want %.3f", pmax, queue, got, want)
			}
		}
	}
}

// No run of unmarked packets is longer than Patience, and some are as long.
func TestPatience(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, pmax := range []float64{0, 0.05, 0.2, 0.5, 0.7, 1} {
		r := RED{Min: 10_000, Max: 110_000, Pmax: pmax, ECN: true}
		tree, err := Plan(Direction{Rate: units.Gbps, Limit: units.MB, RED: &r}, Full())
		if err != nil {
			t.Fatal(err)
		}
		for _, queue := range []units.Bytes{9_000, 10_000, 30_000, 60_000, 109_000, 110_001} {
			longest := 0
			for range 2000 { // runs that start from a short queue
				gates := gates(tree)
				marked, row := false, 0
				for ; !marked && row <= 200; row++ {
					for _, g := range gates {
						marked = g.choose(random, queue) || marked
					}
				}
				if marked {
					row--
				}
				longest = max(longest, row)
			}
			p := r.Patience(queue)
			single := pmax <= singleStage || queue > r.Max // two stages rarely reach their longest gap together
			if longest > p || p <= 200 && single && longest < p*9/10 {
				t.Errorf("pmax %g, %d bytes: up to %d packets in a row go unmarked, want %d", pmax, queue, longest, p)
			}
		}
	}
}

// gate is the state of one sch_red (struct red_vars).
type gate struct {
	REDStage
	count int
	r     float64
}

func gates(t Tree) (out []*gate) {
	for _, q := range t.Near {
		if s, ok := q.Options.(REDStage); ok {
			out = append(out, &gate{REDStage: s, count: -1})
		}
	}
	return out
}

func (g *gate) choose(random *rand.Rand, queue units.Bytes) bool {
	draw := func() float64 {
		return random.Float64() * float64(g.Max-g.Min) / (float64(g.MaxP) / (1 << 32))
	}
	switch {
	case queue < g.Min:
		g.count = -1
		return false
	case queue >= g.Max:
		g.count = -1
		return true
	}
	g.count++
	if g.count == 0 {
		g.r = draw()
		return false
	}
	if float64(queue-g.Min)*float64(g.count) < g.r {
		return false
	}
	g.count, g.r = 0, draw()
	return true
}

// MarkedShare returns the share of packets that the tree's stages mark while the queue length stays
// constant: the kernel's best approximation of the requested line.
func (t Tree) MarkedShare(queue units.Bytes) float64 {
	unmarked := 1.0
	for _, q := range t.Near {
		s, ok := q.Options.(REDStage)
		switch {
		case !ok || queue < s.Min:
		case queue >= s.Max:
			return 1
		default:
			pb := float64(s.MaxP) / (1 << 32) * float64(queue-s.Min) / float64(s.Max-s.Min)
			unmarked *= 1 - marked(pb)
		}
	}
	return 1 - unmarked
}
