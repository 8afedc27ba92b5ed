package schedule_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/units"
)

// buildProgram returns the program of a rank.
func buildProgram(t interface{ Fatal(...any) }, s schedule.Spec, rank int) schedule.Program {
	p, err := schedule.Build(s, rank)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// formatProgram returns a program with one op per line.
func formatProgram(p schedule.Program) string {
	var b strings.Builder
	for i, op := range p {
		fmt.Fprintf(&b, "%d: %v %d tag %d [%d,+%d)", i, op.Kind, op.Peer, op.Tag, op.Off, op.Len)
		if op.Reduce {
			b.WriteString(" add")
		}
		if op.Final {
			b.WriteString(" final")
		}
		if op.Credit {
			b.WriteString(" credit")
		}
		if op.After != nil {
			fmt.Fprintf(&b, " after %v", op.After)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// NCCL: "step 0: push data to next GPU" (block r−1), "k-2 steps: reduce and copy to next GPU",
// "step k-1: reduce this buffer and data, which will produce the final result", "k-2 steps: copy to
// next GPU", "Make final copy from buffer to dest" (block r+1).
func TestRingOrder(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: 3, Size: 12}
	got := formatProgram(buildProgram(t, s, 1))
	want := `0: send 2 tag 0 [0,+4)
1: receive 0 tag 0 [8,+4) add
2: send 2 tag 1 [8,+4) after [1]
3: receive 0 tag 1 [4,+4) add final
4: send 2 tag 2 [4,+4) after [3]
5: receive 0 tag 2 [0,+4) final after [0]
6: send 2 tag 3 [0,+4) after [5]
7: receive 0 tag 3 [8,+4) final after [2]
`
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
}

// A piece is forwarded once it has arrived, whatever happens to the rest of its block.
func TestRingPipelines(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: 2, Size: 32, Chunk: 8}
	got := formatProgram(buildProgram(t, s, 0))
	want := `0: send 1 tag 0 [16,+8)
1: send 1 tag 1 [24,+8)
2: receive 1 tag 0 [0,+8) add final
3: receive 1 tag 1 [8,+8) add final
4: send 1 tag 2 [0,+8) after [2]
5: send 1 tag 3 [8,+8) after [3]
6: receive 1 tag 2 [16,+8) final after [0]
7: receive 1 tag 3 [24,+8) final after [1]
`
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
}

func TestAllToAllOrder(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllToAll, Algorithm: schedule.Direct, Ranks: 4, Size: 64, Chunk: 8, Parallel: 2}
	got := formatProgram(buildProgram(t, s, 2)[:6])
	want := `0: send 3 tag 0 [48,+8)
1: send 3 tag 1 [56,+8)
2: send 0 tag 0 [0,+8)
3: send 0 tag 1 [8,+8)
4: send 1 tag 0 [16,+8) after [1]
5: send 1 tag 1 [24,+8) after [1]
`
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
}

// Halving and doubling of 4 ranks, nearest peers first: rank 2 keeps the half that bit 0 of its
// number selects, then bit 1. A receive that replaces waits for the send of the old data.
func TestHalvingDoublingOrder(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.HalvingDoubling, Ranks: 4, Size: 32}
	got := formatProgram(buildProgram(t, s, 2))
	want := `0: send 3 tag 0 [16,+16)
1: receive 3 tag 0 [0,+16) add
2: send 0 tag 0 [0,+8) after [0 1]
3: receive 0 tag 0 [8,+8) add final after [1]
4: send 0 tag 1 [8,+8) after [2 3]
5: receive 0 tag 1 [0,+8) final after [2]
6: send 3 tag 1 [0,+16) after [4 5 3]
7: receive 3 tag 1 [16,+16) final after [0]
`
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
	s.FarFirst = true
	if got := buildProgram(t, s, 2)[0]; got.Peer != 0 || got.Off != 0 {
		t.Fatalf("far first begins with %+v", got)
	}
}

// Rank 2 of 8 is an inner node of tree 0, below 4 and above 1 and 3, and a leaf of tree 1, below 1.
func TestDoubleBinaryTreeOrder(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.DoubleBinaryTree, Ranks: 8, Size: 32, Chunk: 8}
	got := formatProgram(buildProgram(t, s, 2)[:8])
	want := `0: receive 1 tag 0 [0,+8) add
1: receive 3 tag 0 [0,+8) add after [0]
2: send 4 tag 0 [0,+8) after [1]
3: receive 4 tag 0 [0,+8) final after [2]
4: send 3 tag 0 [0,+8) after [3]
5: send 1 tag 0 [0,+8) after [3]
6: send 1 tag 1 [16,+8)
7: receive 1 tag 1 [16,+8) final after [6]
`
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
}

// Windowed: rank 0 of 4 needs no credit for its first message. It sends the second when the first
// is acknowledged and rank 2 has sent a credit, and it sends a credit when a message has arrived.
func TestWindowedOrder(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllToAll, Algorithm: schedule.Windowed, Ranks: 4, Size: 16, Parallel: 1}
	got := formatProgram(buildProgram(t, s, 0))
	want := `0: send 1 tag 0 [4,+4)
1: receive 2 tag 1 [16,+4) credit
2: send 2 tag 0 [8,+4) after [0 1]
3: receive 3 tag 1 [20,+4) credit
4: send 3 tag 0 [12,+4) after [2 3]
5: receive 3 tag 0 [12,+4) final
6: receive 2 tag 0 [8,+4) final
7: receive 1 tag 0 [4,+4) final
8: send 2 tag 1 [0,+4) credit after [5]
9: send 1 tag 1 [0,+4) credit after [6]
`
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
}

// Hierarchical, two groups of two: reduce-scatter inside, all-reduce of the own block between
// groups, all-gather inside.
func TestHierarchicalOrder(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Hierarchical, Ranks: 4, Group: 2, Size: 32}
	got := formatProgram(buildProgram(t, s, 1))
	want := `0: send 0 tag 0 [0,+16)
1: receive 0 tag 0 [16,+16) add
2: send 3 tag 0 [24,+8) after [1]
3: receive 3 tag 0 [16,+8) add final after [1]
4: send 3 tag 1 [16,+8) after [3]
5: receive 3 tag 1 [24,+8) final after [2]
6: send 0 tag 1 [16,+16) after [3 5]
7: receive 0 tag 1 [0,+16) final after [0]
`
	if got != want {
		t.Fatalf("got\n%swant\n%s", got, want)
	}
}

// At most Parallel sends can start, whichever of the others are complete, in order or not.
func TestAllToAllParallel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, w := rapid.IntRange(2, 40).Draw(t, "ranks"), rapid.IntRange(1, 12).Draw(t, "parallel")
		p := buildProgram(t, schedule.Spec{Collective: schedule.AllToAll, Algorithm: schedule.Direct, Ranks: n, Size: 4096, Parallel: w}, 0)
		done := make([]bool, len(p))
		for range n {
			var under []int
			for i, op := range p {
				ready := op.Kind == schedule.Send && !done[i]
				for _, a := range op.After {
					ready = ready && done[a]
				}
				if ready {
					under = append(under, i)
				}
			}
			if len(under) > w {
				t.Fatalf("%d sends under way with parallel %d", len(under), w)
			}
			if len(under) == 0 {
				break
			}
			done[rapid.SampledFrom(under).Draw(t, "completes")] = true
		}
	})
}

func TestRefused(t *testing.T) {
	good := schedule.Spec{Collective: schedule.Incast, Algorithm: schedule.Direct, Ranks: 4, Size: 64}
	for want, change := range map[string]func(*schedule.Spec){
		"1 ranks":                  func(s *schedule.Spec) { s.Ranks = 1 },
		"positive multiple":        func(s *schedule.Spec) { s.Size = 6 },
		"size 0":                   func(s *schedule.Spec) { s.Size = 0 },
		"chunk 3":                  func(s *schedule.Spec) { s.Chunk = 3 },
		"parallel -1":              func(s *schedule.Spec) { s.Parallel = -1 },
		"root 4":                   func(s *schedule.Spec) { s.Root = 4 },
		`no algorithm "ring"`:      func(s *schedule.Spec) { s.Algorithm = schedule.Ring },
		`"gossip" has no`:          func(s *schedule.Spec) { s.Collective = "gossip" },
		"0 entries for 4":          func(s *schedule.Spec) { s.Collective = schedule.Permute },
		"to itself":                func(s *schedule.Spec) { s.Collective, s.Permute = schedule.Permute, []int{1, 0, 2, 3} },
		"two ranks would send":     func(s *schedule.Spec) { s.Collective, s.Permute = schedule.Permute, []int{1, 0, 1, 2} },
		"rank 0 would send":        func(s *schedule.Spec) { s.Collective, s.Permute = schedule.Permute, []int{4, 0, 1, 2} },
		"type \"float64\"":         func(s *schedule.Spec) { s.Type = "float64" },
		"reduction \"avg\"":        func(s *schedule.Spec) { s.Op = "avg" },
		"multiple of 2 bytes":      func(s *schedule.Spec) { s.Type, s.Size = schedule.BFloat16, 7 },
		"power of two":             func(s *schedule.Spec) { s.Collective, s.Algorithm, s.Ranks = "all-gather", "recursive-doubling", 6 },
		"divided into groups of 3": func(s *schedule.Spec) { s.Collective, s.Algorithm, s.Group = "all-reduce", "hierarchical", 3 },
		"divided into groups of 0": func(s *schedule.Spec) { s.Collective, s.Algorithm = "all-reduce", "hierarchical" },
		"needs parallel":           func(s *schedule.Spec) { s.Collective, s.Algorithm = "all-to-all", "windowed" },
		"into too many message":    func(s *schedule.Spec) { s.Size, s.Chunk = units.Bytes(1)<<40, 4 },
	} {
		s := good
		change(&s)
		_, err := schedule.Build(s, 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", s, err, want)
		}
		_, err1 := schedule.Shape(s, 0)
		_, err2 := schedule.Volume(s, 0)
		_, err3 := schedule.Tags(s)
		_, _, err4 := schedule.Peers(s, 0)
		_, err5 := schedule.Inflow(s, 0)
		if err1 == nil || err2 == nil || err3 == nil || err4 == nil || err5 == nil {
			t.Errorf("%+v: Shape %v, Volume %v, Tags %v, Peers %v, Inflow %v", s, err1, err2, err3, err4, err5)
		}
	}
	if _, err := schedule.Build(good, 4); err == nil {
		t.Error("rank 4 of 4")
	}
}

// benchmarkBuild measures building the program of one rank.
func benchmarkBuild(b *testing.B, algorithm string, group int) {
	s := schedule.Spec{
		Collective: schedule.AllReduce, Algorithm: algorithm, Ranks: 32, Group: group,
		Size: 128 * units.MiB, Chunk: 128 * units.KiB,
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schedule.Build(s, 5); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuildRing(b *testing.B)             { benchmarkBuild(b, schedule.Ring, 0) }
func BenchmarkBuildHalvingDoubling(b *testing.B)  { benchmarkBuild(b, schedule.HalvingDoubling, 0) }
func BenchmarkBuildDoubleBinaryTree(b *testing.B) { benchmarkBuild(b, schedule.DoubleBinaryTree, 0) }
func BenchmarkBuildHierarchical(b *testing.B)     { benchmarkBuild(b, schedule.Hierarchical, 8) }

// With shuffled orders each rank still sends to every other once, orders differ between ranks, and
// all peers may send to a rank at once.
func TestOrdersAreDrawn(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllToAll, Algorithm: schedule.Direct, Ranks: 8, Size: 64, Parallel: 2, Shuffle: 1}
	firsts := map[int]bool{}
	for rank := range s.Ranks {
		sends, receives, err := schedule.Peers(s, rank)
		if err != nil || len(receives) != 7 {
			t.Fatal(receives, err)
		}
		firsts[(sends[0]-rank+s.Ranks)%s.Ranks] = true
		seen := map[int]bool{}
		for i, op := range buildProgram(t, s, rank)[:7] {
			if op.Kind != schedule.Send || op.Peer != sends[i] || op.Peer == rank || seen[op.Peer] {
				t.Errorf("rank %d: op %d is %v to %d, after %v", rank, i, op.Kind, op.Peer, seen)
			}
			if (len(op.After) == 1) != (i >= 2) || i >= 2 && op.After[0] != int32(i-2) {
				t.Errorf("rank %d: op %d waits for %v", rank, i, op.After)
			}
			seen[op.Peer] = true
		}
	}
	if len(firsts) < 3 {
		t.Errorf("ranks begin so far from themselves: %v", firsts)
	}
	for shuffle, want := range map[uint64]int{0: 2, 1: 7} {
		s.Shuffle = shuffle
		if n, err := schedule.Inflow(s, 0); n != want || err != nil {
			t.Errorf("shuffle %d: %d at once, want %d: %v", shuffle, n, want, err)
		}
	}
}
