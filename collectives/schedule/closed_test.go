package schedule_test

import (
	"math/bits"
	"testing"

	"weft/collectives/schedule"
	"weft/units"
)

// trafficOf returns the traffic of every rank.
func trafficOf(t *testing.T, s schedule.Spec) []schedule.Traffic {
	t.Helper()
	all := make([]schedule.Traffic, s.Ranks)
	for r := range all {
		var err error
		if all[r], err = schedule.Volume(s, r); err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
	}
	return all
}

// wantEach checks that every rank sends and receives the given numbers of messages and bytes.
func wantEach(t *testing.T, s schedule.Spec, messages int, bytes units.Bytes) {
	t.Helper()
	want := schedule.Traffic{Sends: messages, Receives: messages, Sent: bytes, Received: bytes}
	for r, v := range trafficOf(t, s) {
		if v != want {
			t.Errorf("%s %s, rank %d of %d: %+v, want %+v", s.Collective, s.Algorithm, r, s.Ranks, v, want)
		}
	}
}

// spec returns a collective of n ranks with 128 MiB, uncut.
func spec(collective, algorithm string, n int) schedule.Spec {
	return schedule.Spec{Collective: collective, Algorithm: algorithm, Ranks: n, Size: size}
}

const size = 128 * units.MiB

// Messages and bytes per rank where every rank does the same.
func TestClosedForms(t *testing.T) {
	const n, log = 32, 5
	// A ring all-reduce sends 2(n−1) messages of S/n, and each half of it half of that.
	wantEach(t, spec("all-reduce", "ring", n), 2*(n-1), 2*(n-1)*size/n)
	wantEach(t, spec("reduce-scatter", "ring", n), n-1, (n-1)*size/n)
	wantEach(t, spec("all-gather", "ring", n), n-1, (n-1)*size/n)
	// Halving and doubling send as much in 2·log2 n messages, whichever peer is first.
	far := spec("all-reduce", "halving-doubling", n)
	wantEach(t, far, 2*log, 2*(n-1)*size/n)
	far.FarFirst = true
	wantEach(t, far, 2*log, 2*(n-1)*size/n)
	wantEach(t, spec("reduce-scatter", "recursive-halving", n), log, (n-1)*size/n)
	wantEach(t, spec("all-gather", "recursive-doubling", n), log, (n-1)*size/n)
	// Direct: n−1 messages for each half.
	wantEach(t, spec("all-reduce", "direct", n), 2*(n-1), 2*(n-1)*size/n)
	wantEach(t, spec("reduce-scatter", "direct", n), n-1, (n-1)*size/n)
	wantEach(t, spec("all-gather", "direct", n), n-1, (n-1)*size/n)
	// All-to-all: n−1 messages of S/n, and n−1−W credits of an element.
	wantEach(t, spec("all-to-all", "direct", n), n-1, (n-1)*size/n)
	wantEach(t, spec("all-to-all", "pairwise", n), n-1, (n-1)*size/n)
	windowed := spec("all-to-all", "windowed", n)
	windowed.Parallel = 16
	wantEach(t, windowed, n-1+15, (n-1)*size/n+15*schedule.Element)
	windowed.Parallel = n - 1
	wantEach(t, windowed, n-1, (n-1)*size/n)
	// Hierarchical, groups of g = 8 and m = 4 of them: 2(g−1) messages of S/g inside, 2(m−1) of S/n
	// across.
	groups := spec("all-reduce", "hierarchical", n)
	groups.Group = 8
	wantEach(t, groups, 2*7+2*3, 2*7*size/8+2*3*size/n)
	groups.Group = 1
	wantEach(t, groups, 2*(n-1), 2*(n-1)*size/n)
	groups.Group = n
	wantEach(t, groups, 2*(n-1), 2*(n-1)*size/n)
}

// With Chunk, a block of 4 MiB is 32 messages of 128 KiB.
func TestPipelinedCounts(t *testing.T) {
	for _, c := range []struct {
		collective, algorithm string
		messages              int
	}{
		{"all-reduce", "ring", 2 * 31 * 32},
		{"all-reduce", "halving-doubling", 2 * 31 * 32},
		{"all-reduce", "direct", 2 * 31 * 32},
		{"reduce-scatter", "ring", 31 * 32},
		{"all-gather", "recursive-doubling", 31 * 32},
		{"all-to-all", "pairwise", 31 * 32},
	} {
		s := spec(c.collective, c.algorithm, 32)
		s.Chunk = 128 * units.KiB
		wantEach(t, s, c.messages, units.Bytes(c.messages)*s.Chunk)
	}
}

// Of n = 2^k + rem ranks, the even ones of the first 2·rem send the buffer and get it back.
func TestFoldedHalvingDoubling(t *testing.T) {
	for n := 2; n <= 64; n++ {
		s := spec("all-reduce", "halving-doubling", n)
		s.Size = 720720 * schedule.Element * 64 // divisible by every p
		p := 1 << (bits.Len(uint(n)) - 1)
		log, rem := bits.Len(uint(n))-1, n-p
		for r, v := range trafficOf(t, s) {
			want := schedule.Traffic{Sends: 2 * log, Sent: units.Bytes(2*(p-1)) * s.Size / units.Bytes(p)}
			switch {
			case r < 2*rem && r%2 == 0:
				want = schedule.Traffic{Sends: 1, Sent: s.Size}
			case r < 2*rem:
				want.Sends, want.Sent = want.Sends+1, want.Sent+s.Size
			}
			want.Receives, want.Received = want.Sends, want.Sent
			if v != want {
				t.Fatalf("rank %d of %d: %+v, want %+v", r, n, v, want)
			}
		}
	}
}

// A double binary tree moves half of the buffer along n−1 edges twice, up and down: 4(n−1) messages
// and 2(n−1)·S in all, and no rank sends or receives more than 2S. With n even, a rank is an inner
// one in one tree and a leaf in the other: but for the two roots and what hangs on them, everybody
// moves exactly 2S.
func TestDoubleBinaryTreeVolume(t *testing.T) {
	for n := 2; n <= 64; n++ {
		s := spec("all-reduce", "double-binary-tree", n)
		var all schedule.Traffic
		for r, v := range trafficOf(t, s) {
			if v.Sent > 2*size || v.Received > 2*size || v.Sent != v.Received {
				t.Errorf("rank %d of %d: %+v", r, n, v)
			}
			all.Sends, all.Sent = all.Sends+v.Sends, all.Sent+v.Sent
		}
		if all.Sends != 4*(n-1) || all.Sent != 2*units.Bytes(n-1)*size {
			t.Errorf("%d ranks: %+v", n, all)
		}
	}
}

// Messages and bytes by role, in collectives that have a root.
func TestRootedClosedForms(t *testing.T) {
	const n, root = 32, 5
	type traffic = schedule.Traffic
	leaf := map[bool]traffic{true: {Sends: 1, Sent: size}, false: {Receives: 1, Received: size}}
	for _, c := range []struct {
		collective, algorithm string
		root                  traffic
		next                  traffic // rank root+1
		total                 int     // messages of all ranks
		bytes                 units.Bytes
	}{
		{"broadcast", "chain", traffic{Sends: 1, Sent: size}, traffic{1, 1, size, size}, n - 1, (n - 1) * size},
		{"reduce", "chain", traffic{Receives: 1, Received: size}, traffic{1, 1, size, size}, n - 1, (n - 1) * size},
		{"broadcast", "tree", traffic{Sends: 1, Sent: size}, leaf[false], n - 1, (n - 1) * size},
		{"reduce", "tree", traffic{Receives: 1, Received: size}, leaf[true], n - 1, (n - 1) * size},
		{"broadcast", "binomial-tree", traffic{Sends: 5, Sent: 5 * size}, leaf[false], n - 1, (n - 1) * size},
		{"reduce", "binomial-tree", traffic{Receives: 5, Received: 5 * size}, leaf[true], n - 1, (n - 1) * size},
		{"gather", "direct", traffic{Receives: n - 1, Received: (n - 1) * size / n}, traffic{Sends: 1, Sent: size / n}, n - 1, (n - 1) * size / n},
		{"scatter", "direct", traffic{Sends: n - 1, Sent: (n - 1) * size / n}, traffic{Receives: 1, Received: size / n}, n - 1, (n - 1) * size / n},
		{"ps", "push", traffic{Receives: n - 1, Received: (n - 1) * size}, leaf[true], n - 1, (n - 1) * size},
		{"ps", "pull", traffic{Sends: n - 1, Sent: (n - 1) * size}, leaf[false], n - 1, (n - 1) * size},
		{"ps", "both", traffic{n - 1, n - 1, (n - 1) * size, (n - 1) * size}, traffic{1, 1, size, size}, 2 * (n - 1), 2 * (n - 1) * size},
		{"incast", "direct", traffic{Receives: n - 1, Received: (n - 1) * size}, leaf[true], n - 1, (n - 1) * size},
	} {
		s := spec(c.collective, c.algorithm, n)
		s.Root = root
		var all traffic
		got := trafficOf(t, s)
		for _, v := range got {
			all.Sends, all.Sent = all.Sends+v.Sends, all.Sent+v.Sent
		}
		if got[root] != c.root || got[root+1] != c.next {
			t.Errorf("%s %s: root %+v, next %+v", c.collective, c.algorithm, got[root], got[root+1])
		}
		if all.Sends != c.total || all.Sent != c.bytes {
			t.Errorf("%s %s: %d messages, %d bytes", c.collective, c.algorithm, all.Sends, all.Sent)
		}
	}
}

// The number of flows into a rank, which PC4's controller announces.
func TestInflow(t *testing.T) {
	for _, c := range []struct {
		collective, algorithm string
		rank, want            int
	}{
		{"all-reduce", "ring", 3, 1},
		{"all-reduce", "halving-doubling", 3, 1},
		{"all-reduce", "direct", 3, 31},
		{"all-reduce", "double-binary-tree", 4, 4}, // two children and a parent, and the parent in the other tree
		{"all-to-all", "direct", 3, 31},
		{"all-to-all", "pairwise", 3, 1},
		{"incast", "direct", 0, 31},
		{"incast", "direct", 1, 0},
		{"ps", "both", 0, 31},
		{"ps", "both", 1, 1},
		{"ps", "pull", 0, 0},
		{"reduce", "binomial-tree", 0, 5},
		{"reduce", "tree", 8, 2},
		{"broadcast", "chain", 0, 0},
		{"gather", "direct", 0, 31},
		{"scatter", "direct", 0, 0},
		{"scatter", "direct", 1, 1},
		{"permute", "direct", 1, 1},
	} {
		s := spec(c.collective, c.algorithm, 32)
		s.Chunk = 128 * units.KiB
		if c.collective == "permute" {
			s.Permute, _ = schedule.Shift(32, -3)
		}
		if got, err := schedule.Inflow(s, c.rank); err != nil || got != c.want {
			t.Errorf("%s %s rank %d: %d, %v, want %d", c.collective, c.algorithm, c.rank, got, err, c.want)
		}
	}
	// Uncut, everything goes up a tree before anything comes down.
	s := spec("all-reduce", "double-binary-tree", 32)
	if got, _ := schedule.Inflow(s, 4); got != 2 {
		t.Errorf("uncut double binary tree: %d", got)
	}
}
