package huygens

import (
	"testing"

	"weft/clocksync"
	"weft/internal/sample"
	"weft/units"
)

// A node that crashes and comes back changes the 99th percentile of the others' errors by at most a
// tenth, over the draws of some seeds, while it is down and while it comes back.
func TestTheOthersOfACrash(t *testing.T) {
	const crashed = 5
	p99 := func(down units.Time) units.Time {
		all := &verdict{}
		for seed := range uint64(8) {
			l := eightNodes()
			l.nodes, l.seed, l.load, l.change = 12, seed, 0, func(c *Config) { c.Degree, c.Pairs, c.Window = 8, 40, 10*ms }
			w := l.newWorld(t)
			w.Every(100*ms, 330*units.Microsecond, func() {
				for n := range clocksync.Node(l.nodes) {
					for m := range n {
						if n != crashed && m != crashed {
							d := w.Time(n) - w.Time(m)
							all.errors = append(all.errors, max(d, -d))
						}
					}
				}
			})
			w.Run(100 * ms)
			if down > 0 {
				w.Crash(crashed)
				w.Run(100*ms + down)
				w.Restart(crashed)
			}
			w.Run(220 * ms)
		}
		all.sort()
		return all.quantile(0.99)
	}
	usually := p99(0)
	for _, down := range sample.Of(t, 1, ms, 10*ms, 100*ms) {
		got := p99(down)
		t.Logf("down for %v: %v, usually %v", down, got, usually)
		if got > usually*11/10 {
			t.Errorf("a node is down for %v: the others' p99 is %v, usually %v", down, got, usually)
		}
	}
}

// A node that crashes and is back within a window is heard at once, although its sequence numbers
// start again: the window in which it came back has its edges.
func TestAShortCrash(t *testing.T) {
	l := eightNodes()
	l.load, l.change = 0, func(c *Config) { c.Degree, c.Pairs = 4, 500 }
	w := l.newWorld(t)
	w.Run(300 * ms) // windows of 20 ms
	w.Crash(5)
	w.Run(301 * ms)
	w.Restart(5)
	w.Run(303 * ms)
	stale := int64(0)
	for n := range clocksync.Node(l.nodes) {
		stale -= w.Protocol(n).Counters().Stale
	}
	wantWithin(t, "two windows after", worstDifference(w, l.nodes, 341*ms, 380*ms), 100*ns)
	for n := range clocksync.Node(l.nodes) {
		stale += w.Protocol(n).Counters().Stale
	}
	if stale > 100 {
		t.Errorf("%d messages were refused as old", stale)
	}
}
