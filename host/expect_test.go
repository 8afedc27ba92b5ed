package host

import (
	"testing"

	"weft/transport"
	"weft/units"
)

// The controller announces what is about to arrive: one flow for a ring, all but oneself for an all-to-all,
// as many as are sent at once when that is limited, and nothing when all is over (PC4, Table I).
func TestExpectedFlows(t *testing.T) {
	for _, c := range []struct {
		name string
		job  job
		want int
	}{
		{"ring", job{Spec: ring(80*units.KB, 4*units.KB), repeat: 2}, 1},
		{"all-to-all", job{Spec: allToAll(80*units.KB, 0), repeat: 2}, 7},
		{"all-to-all, 3 at once", job{Spec: allToAll(80*units.KB, 3)}, 3},
		{"permute", job{Spec: permutation(t, 8, 80*units.KB)}, 1},
	} {
		net := build(t, 8, symbolicMemory, c.job)
		for i, h := range net.hosts {
			h.Start(0)
			if got := h.runs[0].work.flows; got != c.want {
				t.Errorf("%s: %d flows announced at the start, want %d", c.name, got, c.want)
			}
			net.pump(i)
		}
		most := 0
		for net.step(t) {
			for _, h := range net.hosts {
				if w := h.runs[0].work; w != nil {
					most = max(most, w.flows)
				}
			}
		}
		net.verify(t, 8*c.job.repeats())
		if most < c.want || most > c.want+1 { // a sender that is ahead may overlap with one that is not
			t.Errorf("%s: up to %d flows announced, want %d", c.name, most, c.want)
		}
	}
}

func (j job) repeats() int { return max(1, j.repeat) }

// A flow that comes before this host's part has begun is announced when its first packet arrives.
func TestEarlyFlowIsExpected(t *testing.T) {
	net := build(t, 2, symbolicMemory, job{Spec: incast(80*units.KB, 1)})
	net.hosts[0].Start(0)
	net.pump(0)
	for range 20 {
		net.step(t)
	}
	early := net.hosts[1]
	if w := early.runs[0].work; w == nil || w.flows != 1 || early.runs[0].phase != idle {
		t.Fatalf("not announced: %+v", early.runs[0])
	}
	early.Start(net.now)
	for net.step(t) {
	}
	net.verify(t, 2)
}

// watcher counts what the transport tells.
type watcher struct{ acked, windows int }

func (w *watcher) Acked(units.Time, transport.ConnID, units.Time, units.Time)        { w.acked++ }
func (w *watcher) Window(units.Time, transport.ConnID, units.Bytes, units.Bandwidth) { w.windows++ }

func TestObserver(t *testing.T) {
	net := newNetwork(2)
	var w watcher
	for _, p := range plans(t, 2, []job{{Spec: permutation(t, 2, 80*units.KB)}}) {
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
