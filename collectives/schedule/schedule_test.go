package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

// anySpec draws a valid spec of any collective.
func anySpec(t *rapid.T) Spec {
	s := Spec{
		Algorithm:  Direct,
		Collective: rapid.SampledFrom([]string{AllReduce, AllToAll, Incast, Permute}).Draw(t, "collective"),
		Ranks:      rapid.IntRange(2, 40).Draw(t, "ranks"),
		Size:       Element * units.Bytes(rapid.IntRange(1, 5000).Draw(t, "elements")),
		Chunk:      Element * units.Bytes(rapid.IntRange(0, 300).Draw(t, "chunk elements")),
		Parallel:   rapid.IntRange(0, 9).Draw(t, "parallel"),
	}
	s.Root = rapid.IntRange(0, s.Ranks-1).Draw(t, "root")
	switch s.Collective {
	case AllReduce:
		s.Algorithm = Ring
	case Permute:
		s.Permute, _ = Derangement(s.Ranks, rapid.Uint64().Draw(t, "seed"))
	}
	return s
}

func build(t interface{ Fatal(...any) }, s Spec, rank int) Program {
	p, err := Build(s, rank)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every program matches its closed forms, and each send has exactly one receive of the same length and tag.
func TestProgramsMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		tags, err := Tags(s)
		if err != nil {
			t.Fatal(err)
		}
		type message struct {
			from, to int
			tag      uint32
		}
		open := map[message]units.Bytes{}
		var receives []message
		var lengths []units.Bytes
		for r := range s.Ranks {
			p := build(t, s, r)
			l, err := Shape(s, r)
			if err != nil {
				t.Fatal(err)
			}
			var got Traffic
			for i, op := range p {
				limit := l.Out
				if op.Buf == In {
					limit = l.In
				}
				if op.Len < 1 || op.Off < 0 || op.Off+op.Len > limit || op.Off%Element != 0 || op.Len%Element != 0 {
					t.Fatalf("rank %d op %d: [%d,+%d) of %d", r, i, op.Off, op.Len, limit)
				}
				if op.Tag >= tags || op.Peer == r {
					t.Fatalf("rank %d op %d: tag %d of %d, peer %d", r, i, op.Tag, tags, op.Peer)
				}
				for _, a := range op.After {
					if a < 0 || int(a) >= i {
						t.Fatalf("rank %d op %d is after %d", r, i, a)
					}
				}
				switch op.Kind {
				case Send:
					got.Sends++
					got.Sent += op.Len
					m := message{r, op.Peer, op.Tag}
					if _, twice := open[m]; twice {
						t.Fatalf("%v is sent twice", m)
					}
					open[m] = op.Len
				case Recv:
					got.Receives++
					got.Received += op.Len
					receives = append(receives, message{op.Peer, r, op.Tag})
					lengths = append(lengths, op.Len)
				}
			}
			want, err := Volume(s, r)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Fatalf("rank %d moves %+v, closed form %+v", r, got, want)
			}
		}
		for i, m := range receives {
			if open[m] != lengths[i] {
				t.Fatalf("%v: sent %d bytes, %d expected", m, open[m], lengths[i])
			}
			delete(open, m)
		}
		if len(open) != 0 {
			t.Fatalf("sent and never received: %v", open)
		}
	})
}

// Ring all-reduce: 2(n−1) messages of S/n per rank.
func TestRingClosedForm(t *testing.T) {
	const n, size = 32, 128 * units.MiB
	s := Spec{Collective: AllReduce, Algorithm: Ring, Ranks: n, Size: size}
	for r := range n {
		v, err := Volume(s, r)
		if err != nil {
			t.Fatal(err)
		}
		want := Traffic{Sends: 2 * (n - 1), Receives: 2 * (n - 1), Sent: 2 * (n - 1) * size / n, Received: 2 * (n - 1) * size / n}
		if v != want {
			t.Fatalf("rank %d: %+v, want %+v", r, v, want)
		}
	}
	// Pipelined: each block is cut into 32 pieces of 128 KiB.
	s.Chunk = 128 * units.KiB
	if v, _ := Volume(s, 0); v.Sends != 2*(n-1)*32 {
		t.Fatalf("%d pieces", v.Sends)
	}
}

// All-to-all: n−1 messages of S/n per rank.
func TestAllToAllClosedForm(t *testing.T) {
	const n, size = 8, 8 * 50 * units.MB
	v, err := Volume(Spec{Collective: AllToAll, Algorithm: Direct, Ranks: n, Size: size}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Traffic{n - 1, n - 1, (n - 1) * size / n, (n - 1) * size / n}); v != want {
		t.Fatalf("%+v, want %+v", v, want)
	}
}

// print writes a program one op a line.
func print(p Program) string {
	var b strings.Builder
	for i, op := range p {
		fmt.Fprintf(&b, "%d: %v %d tag %d [%d,+%d)", i, op.Kind, op.Peer, op.Tag, op.Off, op.Len)
		if op.Reduce {
			b.WriteString(" add")
		}
		if op.Final {
			b.WriteString(" final")
		}
		if op.After != nil {
			fmt.Fprintf(&b, " after %v", op.After)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// NCCL: "step 0: push data to next GPU" (block r−1), "k-2 steps: reduce and copy to next GPU", "step k-1:
// reduce this buffer and data, which will produce the final result", "k-2 steps: copy to next GPU", "Make
// final copy from buffer to dest" (block r+1).
func TestRingOrder(t *testing.T) {
	s := Spec{Collective: AllReduce, Algorithm: Ring, Ranks: 3, Size: 12}
	got := print(build(t, s, 1))
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

// A piece moves on when it has arrived, whatever becomes of the rest of its block.
func TestRingPipelines(t *testing.T) {
	s := Spec{Collective: AllReduce, Algorithm: Ring, Ranks: 2, Size: 32, Chunk: 8}
	got := print(build(t, s, 0))
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
	s := Spec{Collective: AllToAll, Algorithm: Direct, Ranks: 4, Size: 64, Chunk: 8, Parallel: 2}
	got := print(build(t, s, 2)[:6])
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

// At most Parallel sends are free to run whichever of the others have completed, in order or not.
func TestAllToAllParallel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, w := rapid.IntRange(2, 40).Draw(t, "ranks"), rapid.IntRange(1, 12).Draw(t, "parallel")
		p := build(t, Spec{Collective: AllToAll, Algorithm: Direct, Ranks: n, Size: 4096, Parallel: w}, 0)
		done := make([]bool, len(p))
		for range n {
			var under []int
			for i, op := range p {
				ready := op.Kind == Send && !done[i]
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

// Results and local copies lie inside the buffers, in order, without overlap.
func TestShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		l, err := Shape(s, rapid.IntRange(0, s.Ranks-1).Draw(t, "rank"))
		if err != nil {
			t.Fatal(err)
		}
		end := units.Bytes(0)
		for _, w := range l.Result {
			if w.Off != end || w.Len < 1 {
				t.Fatalf("result %+v after %d", w, end)
			}
			end += w.Len
		}
		if end != l.Out {
			t.Fatalf("the result has %d of %d bytes", end, l.Out)
		}
		for _, c := range l.Local {
			if c.Off < 0 || c.Off+c.Len > l.Out || c.From+c.Len > s.Size {
				t.Fatalf("%+v in %d bytes", c, l.Out)
			}
		}
	})
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "n")
		size := Element * units.Bytes(rapid.IntRange(0, 10000).Draw(t, "elements"))
		k, end := cutBlocks(size, n), units.Bytes(0)
		for b := range n {
			if k.at(b) != end {
				t.Fatalf("block %d at %d, want %d", b, k.at(b), end)
			}
			end += k.size(b)
			if d := k.size(0) - k.size(b); d != 0 && d != Element {
				t.Fatalf("blocks of %d and %d", k.size(0), k.size(b))
			}
		}
		if end != size {
			t.Fatalf("blocks add up to %d of %d", end, size)
		}
	})
}

func TestDerangement(t *testing.T) {
	if _, err := Derangement(1, 1); err == nil {
		t.Fatal("a derangement of one")
	}
	// The two derangements of 3 and the nine of 4 are equally likely: chi-squared with 8 degrees of freedom
	// is above 26.1 in one case of 1000.
	for n, all := range map[int]int{3: 2, 4: 9} {
		count := map[string]int{}
		const draws = 9000
		for seed := range uint64(draws) {
			p, err := Derangement(n, seed)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkPermutation(p, n); err != nil {
				t.Fatal(err)
			}
			count[fmt.Sprint(p)]++
		}
		chi := 0.0
		for _, c := range count {
			d := float64(c) - draws/float64(all)
			chi += d * d / (draws / float64(all))
		}
		if len(count) != all || chi > 26.1 {
			t.Errorf("n=%d: %d of %d derangements, chi-squared %.1f: %v", n, len(count), all, chi, count)
		}
	}
	a, _ := Derangement(1000, 7)
	b, _ := Derangement(1000, 7)
	if !slices.Equal(a, b) {
		t.Error("the same seed gave two derangements")
	}
}

func TestRefused(t *testing.T) {
	good := Spec{Collective: Incast, Algorithm: Direct, Ranks: 4, Size: 64}
	for want, change := range map[string]func(*Spec){
		"1 ranks":               func(s *Spec) { s.Ranks = 1 },
		"positive multiple":     func(s *Spec) { s.Size = 6 },
		"size 0":                func(s *Spec) { s.Size = 0 },
		"chunk 3":               func(s *Spec) { s.Chunk = 3 },
		"parallel -1":           func(s *Spec) { s.Parallel = -1 },
		"root 4":                func(s *Spec) { s.Root = 4 },
		`no algorithm "ring"`:   func(s *Spec) { s.Algorithm = Ring },
		`"broadcast" has no`:    func(s *Spec) { s.Collective = "broadcast" },
		"0 entries for 4":       func(s *Spec) { s.Collective = Permute },
		"to itself":             func(s *Spec) { s.Collective, s.Permute = Permute, []int{1, 0, 2, 3} },
		"two ranks would send":  func(s *Spec) { s.Collective, s.Permute = Permute, []int{1, 0, 1, 2} },
		"rank 0 would send":     func(s *Spec) { s.Collective, s.Permute = Permute, []int{4, 0, 1, 2} },
		"into too many message": func(s *Spec) { s.Size, s.Chunk = units.Bytes(1)<<40, 4 },
	} {
		s := good
		change(&s)
		_, err := Build(s, 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", s, err, want)
		}
		_, err1 := Shape(s, 0)
		_, err2 := Volume(s, 0)
		_, err3 := Tags(s)
		if err1 == nil || err2 == nil || err3 == nil {
			t.Errorf("%+v: Shape %v, Volume %v, Tags %v", s, err1, err2, err3)
		}
	}
	if _, err := Build(good, 4); err == nil {
		t.Error("rank 4 of 4")
	}
}

func BenchmarkBuildRing(b *testing.B) {
	s := Spec{Collective: AllReduce, Algorithm: Ring, Ranks: 32, Size: 128 * units.MiB, Chunk: 128 * units.KiB}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(s, 5); err != nil {
			b.Fatal(err)
		}
	}
}
