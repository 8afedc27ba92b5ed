package path_test

import (
	"testing"

	"pgregory.net/rapid"

	"weft/transport/path"
	"weft/units"
)

const packet = 4198

// printed is Algorithm 3 as printed, over a number of paths.
func printed(limit int) path.Adaptive { return path.Adaptive{Paths: limit, Reuse: true, PerPacket: 2} }

// script drives a chooser with a window in packets.
type script struct {
	t      testing.TB
	s      *path.STrack
	window units.Bytes
}

func newScript(t testing.TB, limit int, packets units.Bytes) *script {
	return &script{t, path.NewSTrack(printed(limit), packet, packets*packet), packets * packet}
}

func (c *script) ack(p uint16, marked bool) {
	c.s.OnFeedback(0, path.Feedback{Path: p, Marked: marked, Window: c.window})
}

func (c *script) want(paths ...uint16) {
	c.t.Helper()
	for i, p := range paths {
		if got := c.s.Choose(0); got != p {
			c.t.Errorf("choice %d is path %d, want %d", i, got, p)
		}
	}
}

// Section 3.1: "its uses entropy values in a round-robin fashion until an ACK is received".
func TestRoundRobinAtFirst(t *testing.T) {
	c := newScript(t, 256, 4)
	c.want(1, 2, 3, 4, 5, 6, 7, 0, 1)
}

// "If the ACK is not ECN-marked, its entropy would be used for the packet that is being sent",
// once.
func TestGoodPathIsUsedAgain(t *testing.T) {
	c := newScript(t, 256, 100)
	c.want(1, 2, 3)
	c.ack(100, false)
	c.want(100)
}

// Ambiguity 1: lines 5 and 8 print the bit inverted: "if the path is ecn-marked, we skip the path".
func TestAmbiguity1MarkedPathsAreSkipped(t *testing.T) {
	c := newScript(t, 256, 4)
	c.ack(2, true)
	c.ack(3, true)
	c.want(1, 4, 5, 6, 7, 0, 1, 2, 4) // "one packet only clears one bit": of 2, then of 3
	c.want(5, 6, 7, 0, 1, 2, 3)
	c.ack(5, true)
	c.ack(5, false) // returned without a mark
	c.want(5, 6)
	if c.s.Marked(5) {
		t.Error("a good acknowledgement leaves the bit set")
	}
}

// Ambiguity 2: line 4 makes a mark on path 0 look like none, line 12 never reuses path 0.
func TestAmbiguity2PathZero(t *testing.T) {
	c := newScript(t, 256, 4)
	c.want(1, 2)
	c.ack(0, false)
	c.want(0)
	c.ack(5, false)
	c.ack(0, true) // the newest acknowledgement is marked: nothing to reuse
	c.want(1)
	if !c.s.Marked(0) {
		t.Error("a mark on path 0 is not remembered")
	}
}

// Ambiguity 3: round robin continues from the reused path (line 13).
func TestAmbiguity3RoundGoesOnFromThere(t *testing.T) {
	c := newScript(t, 256, 100)
	c.ack(77, false)
	c.want(77, 78, 79)
}

// As printed, acknowledgements keep a flow on the paths of its first window. With fresh paths it
// goes on to the others.
func TestLine13KeepsToTheFirstWindow(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		c := printed(256)
		c.Reuse = !fresh
		s := path.NewSTrack(c, packet, 100*packet)
		seen := map[uint16]bool{}
		var flying []uint16
		for range 2000 { // 20 packets in flight
			if len(flying) == 20 {
				s.OnFeedback(0, path.Feedback{Path: flying[0], Window: 100 * packet})
				flying = flying[1:]
			}
			p := s.Choose(0)
			seen[p] = true
			flying = append(flying, p)
		}
		if !fresh && len(seen) != 20 || fresh && len(seen) != 200 {
			t.Errorf("fresh %t: %d paths", fresh, len(seen))
		}
	}
}

// Ambiguity 4: if every bit is set the search ends: it clears the first bit, and finds it after one
// round.
func TestAmbiguity4AllPathsMarked(t *testing.T) {
	for _, limit := range []int{1, 2, 8, 9, 64, 65, 256} {
		c := newScript(t, limit, 1000)
		for p := range limit {
			c.ack(uint16(p), true)
		}
		first := uint16(1 % limit)
		c.want(first)
		left := 0
		for p := range limit {
			if c.s.Marked(p) {
				left++
			}
		}
		if left != limit-1 {
			t.Errorf("%d of %d paths are marked after one packet", left, limit)
		}
	}
}

// The other reading of 4 clears the bit of each path that is skipped.
func TestClearAll(t *testing.T) {
	c := newScript(t, 256, 4)
	a := printed(256)
	a.ClearAll = true
	c.s = path.NewSTrack(a, packet, 4*packet)
	for _, p := range []uint16{1, 2, 3} {
		c.ack(p, true)
	}
	c.want(4, 5, 6, 7, 0, 1, 2, 3)
}

// Ambiguity 5: paths are twice the window in packets, at least 8, at most 256.
func TestAmbiguity5PathsFollowTheWindow(t *testing.T) {
	for packets, want := range map[units.Bytes]int{0: 8, 1: 8, 4: 8, 5: 10, 50: 100, 127: 254, 128: 256, 1 << 40: 256} {
		c := newScript(t, 256, packets)
		seen := map[uint16]bool{}
		for range 1000 {
			seen[c.s.Choose(0)] = true
		}
		if len(seen) != want {
			t.Errorf("window of %d packets: %d paths, want %d", packets, len(seen), want)
		}
	}
	all := path.NewSTrack(path.Adaptive{Paths: 100}, packet, 4*packet)
	seen := map[uint16]bool{}
	for range 1000 {
		seen[all.Choose(0)] = true
	}
	if len(seen) != 100 {
		t.Errorf("whatever the window: %d paths of 100", len(seen))
	}
}

// Ambiguity 6: the introduction lets bits fade "after one or two RTTs"; Algorithm 3 has no timer.
func TestAmbiguity6NoTimer(t *testing.T) {
	for _, x := range []struct {
		forget, after units.Time
		want          uint16
	}{{0, 1000 * units.Second, 2}, {10 * units.Microsecond, 9 * units.Microsecond, 2},
		{10 * units.Microsecond, 10 * units.Microsecond, 1}} {
		c := printed(256)
		c.Forget = x.forget
		s := path.NewSTrack(c, packet, 4*packet)
		s.Choose(0)
		for range 7 { // on to the path before the marked one
			s.Choose(0)
		}
		s.OnFeedback(0, path.Feedback{Path: 1, Marked: true, Window: 4 * packet})
		if got := s.Choose(x.after); got != x.want {
			t.Errorf("path %d after %v, forgetting after %v; want %d", got, x.after, x.forget, x.want)
		}
	}
}

// Whatever the feedback, a choice is one of the paths, clears at most one bit, and never takes a
// marked path while another is unmarked.
func TestChoicesAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 256).Draw(t, "limit")
		s := path.NewSTrack(printed(limit), packet, packet)
		paths := min(8, limit)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "ack") {
				w := units.Bytes(rapid.Int64Range(1, 300*packet).Draw(t, "window"))
				s.OnFeedback(0, path.Feedback{Path: uint16(rapid.IntRange(0, 300).Draw(t, "path")),
					Marked: rapid.Bool().Draw(t, "marked"), Window: w})
				paths = min(max(int(2*w/packet), 8), limit)
				continue
			}
			before := count(s, limit, limit)
			good := count(s, paths, paths) < paths
			p := int(s.Choose(0))
			if p >= limit {
				t.Fatalf("path %d of %d", p, limit)
			}
			after := count(s, limit, limit)
			if before-after > 1 || after > before {
				t.Fatalf("%d bits before, %d after", before, after)
			}
			if good && s.Marked(p) {
				t.Fatalf("path %d is marked, another is not", p)
			}
		}
	})
}

// count returns the number of marked paths among the first n.
func count(s *path.STrack, n, limit int) (marked int) {
	for p := range min(n, limit) {
		if s.Marked(p) {
			marked++
		}
	}
	return marked
}

func TestECMPStaysOnItsPath(t *testing.T) {
	var c path.ECMP
	c.OnFeedback(0, path.Feedback{Path: 3, Marked: true})
	if p := c.Choose(0); p != 0 {
		t.Errorf("path %d", p)
	}
}

func BenchmarkSTrack(b *testing.B) {
	c := newScript(b, 256, 100)
	b.ReportAllocs()
	i := uint16(0)
	for b.Loop() {
		p := c.s.Choose(0)
		i++
		c.ack(p, i%3 == 0)
	}
}
