package host

import (
	"testing"

	"weft/collectives/schedule"
	"weft/transport"
	"weft/units"
)

// The controller announces what is about to arrive: one flow for a ring, all but oneself for an
// all-to-all, as many as are sent at once when that is limited, and nothing when all is over (PC4,
// Table I).
func TestExpectedFlows(t *testing.T) {
	for _, c := range []struct {
		name string
		job  job
		want int
	}{
		{"ring", job{Spec: ringAllReduce(80*units.KB, 4*units.KB), repeat: 2}, 1},
		{"all-to-all", job{Spec: allToAll(80*units.KB, 0), repeat: 2}, 7},
		{"all-to-all, 3 at once", job{Spec: allToAll(80*units.KB, 3)}, 3},
		{"permute", job{Spec: permutation(t, 8, 80*units.KB)}, 1},
		{"halving-doubling, a peer per step", job{Spec: collectiveOf("all-reduce", "halving-doubling", 80*units.KB), repeat: 2}, 1},
		{"hierarchical", job{Spec: hierarchical(80*units.KB, 4)}, 1},
		{"direct all-reduce, either half", job{Spec: collectiveOf("all-reduce", "direct", 80*units.KB)}, 7},
		{"windowed all-to-all, credits aside", job{Spec: windowedAllToAll(80*units.KB, 3), repeat: 2}, 3},
		{"pairwise", job{Spec: collectiveOf("all-to-all", "pairwise", 80*units.KB)}, 1},
	} {
		net := buildNetwork(t, 8, symbolicMemory, c.job)
		for i, h := range net.hosts {
			h.Start(0)
			if got := h.expected; got != c.want {
				t.Errorf("%s: %d flows announced at the start, want %d", c.name, got, c.want)
			}
			net.transmit(i)
		}
		most := 0
		for net.step() {
			for _, h := range net.hosts {
				most = max(most, h.expected)
			}
		}
		net.verify(t, 8*c.job.repeats())
		if most < c.want || most > c.want+1 { // a sender that is ahead may overlap with one that is not
			t.Errorf("%s: up to %d flows announced, want %d", c.name, most, c.want)
		}
	}
}

// collectiveOf returns a collective with one of its algorithms.
func collectiveOf(collective, name string, size units.Bytes) schedule.Spec {
	return schedule.Spec{Collective: collective, Algorithm: name, Size: size}
}

// hierarchical returns an all-reduce whose groups have the given size.
func hierarchical(size units.Bytes, group int) schedule.Spec {
	s := collectiveOf(schedule.AllReduce, schedule.Hierarchical, size)
	s.Group, s.Chunk = group, 4*units.KB
	return s
}

// windowedAllToAll returns an all-to-all with the given number of concurrent messages.
func windowedAllToAll(size units.Bytes, parallel int) schedule.Spec {
	s := collectiveOf(schedule.AllToAll, schedule.Windowed, size)
	s.Parallel = parallel
	return s
}

// In a double binary tree as many flows come at once as a rank has neighbours in both trees that
// send to it.
func TestExpectedFlowsOfTrees(t *testing.T) {
	s := collectiveOf(schedule.AllReduce, schedule.DoubleBinaryTree, 80*units.KB)
	s.Chunk = 4 * units.KB
	net := buildNetwork(t, 8, symbolicMemory, job{Spec: s, repeat: 2})
	for i, h := range net.hosts {
		h.Start(0)
		// Ranks 0 and 7 are the roots; all others have two children and two parents, but 2 and 5
		// have a neighbour that is both.
		want := map[int]int{0: 2, 7: 2, 1: 3, 2: 3, 5: 3, 6: 3}[i]
		if want == 0 {
			want = 4
		}
		if h.expected > want || h.expected < 2 {
			t.Errorf("rank %d: %d flows announced, want %d", i, h.expected, want)
		}
		net.transmit(i)
	}
	for net.step() {
	}
	net.verify(t, 8*2)
}

// repeats returns the number of repetitions, at least 1.
func (j job) repeats() int { return max(1, j.repeat) }

// A flow that comes before this host's part has begun is announced when its first packet arrives.
func TestEarlyFlowIsExpected(t *testing.T) {
	net := buildNetwork(t, 2, symbolicMemory, job{Spec: incast(80*units.KB, 1)})
	net.hosts[0].Start(0)
	net.transmit(0)
	for range 20 {
		net.step()
	}
	early := net.hosts[1]
	if early.expected != 1 || early.runs[0].phase != idle {
		t.Fatalf("not announced: %+v", early.runs[0])
	}
	early.Start(net.now)
	for net.step() {
	}
	net.verify(t, 2)
}

// countingObserver counts the calls of an observer.
type countingObserver struct{ acked, windows int }

func (w *countingObserver) Acked(units.Time, transport.ConnID, transport.Acked)    { w.acked++ }
func (w *countingObserver) Limited(units.Time, transport.ConnID, transport.Limits) { w.windows++ }

func TestObserver(t *testing.T) {
	net := newNetwork(2)
	var w countingObserver
	for _, p := range plansOf(t, 2, []job{{Spec: permutation(t, 2, 80*units.KB)}}) {
		h, err := New(p, nil, &w)
		if err != nil {
			t.Fatal(err)
		}
		net.hosts = append(net.hosts, h)
	}
	net.run(t)
	if w.acked != 2*20 {
		t.Errorf("%d acknowledgements seen", w.acked)
	}
}
