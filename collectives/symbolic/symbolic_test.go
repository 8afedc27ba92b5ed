package symbolic

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/collectives/schedule/scheduletest"
	"weft/units"
)

// flat is content with a number for each byte.
func flat(c content) (f []uint64) {
	for x, i := units.Bytes(0), 0; i < len(c); x++ {
		if x == c[i].end {
			i++
			x--
			continue
		}
		f = append(f, c[i].a+c[i].b*uint64(x))
	}
	return f
}

// Any sequence of copies and sums has the same effect on extents as on bytes.
func TestContentIsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 40
		lines := make([]linear, 4)
		for i := range lines {
			lines[i] = linear{rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")}
		}
		c := blank(nil, size)
		model := make([]uint64, size)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			n := rapid.IntRange(1, size).Draw(t, "length")
			from := rapid.IntRange(0, size-n).Draw(t, "from")
			to := rapid.IntRange(0, size-n).Draw(t, "to")
			add := rapid.Bool().Draw(t, "add")
			var m content
			if k := rapid.IntRange(-1, len(lines)-1).Draw(t, "line"); k >= 0 {
				m = content{{units.Bytes(n), lines[k]}}
			} else {
				m = c.region(nil, units.Bytes(from), units.Bytes(n))
				if got := flat(m); !slices.Equal(got, model[from:from+n]) {
					t.Fatalf("region [%d,+%d): %v, want %v", from, n, got, model[from:from+n])
				}
			}
			f := slices.Clone(flat(m))
			c = c.put(units.Bytes(to), m, add)
			for i, x := range f {
				if add {
					model[to+i] += x
				} else {
					model[to+i] = x
				}
			}
			if got := flat(c); !slices.Equal(got, model) {
				t.Fatalf("%v\nis %v\nnot %v", c, got, model)
			}
			for i := range c {
				if i > 0 && (c[i].end <= c[i-1].end || c[i].linear == c[i-1].linear) {
					t.Fatalf("not minimal: %v", c)
				}
			}
		}
	})
}

// run executes a collective on memories that share an exchange, and calls spoil for each send.
func run(t interface{ Fatal(...any) }, s schedule.Spec, repeat int, ranks []*Memory, spoil func(rank int, op *schedule.Op) *schedule.Op) (wrong, checked int64) {
	const item = 1
	for r := range s.Ranks {
		if err := ranks[r].Begin(item, repeat, r, s); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	next := uint64(0)
	err := scheduletest.Execute(s, func() []int { return rng.Perm(s.Ranks) }, func(r int, op *schedule.Op) uint64 {
		key := next
		next++
		if spoil != nil {
			op = spoil(r, op)
		}
		ranks[r].Send(item, op, key)
		return key
	}, func(r, _ int, op *schedule.Op, key uint64) error {
		return ranks[r].Apply(item, op, key, 0, op.Len, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for r := range s.Ranks {
		w, c := ranks[r].End(item)
		wrong, checked = wrong+w, checked+c
	}
	return wrong, checked
}

func memories(n int) (*Exchange, []*Memory) {
	x := New(9)
	m := make([]*Memory, n)
	for i := range m {
		m[i] = x.Memory()
	}
	return x, m
}

func anySpec(t *rapid.T) schedule.Spec {
	return scheduletest.Any(t, scheduletest.Bounds{Ranks: 12, Elements: 500, Chunks: []int{0, 1, 7, 20}})
}

func TestResultsAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		x, m := memories(s.Ranks)
		var want int64
		for r := range s.Ranks {
			l, _ := schedule.Shape(s, r)
			for _, w := range l.Result {
				want += int64(w.Len / s.Type.Size())
			}
		}
		for repeat := range 2 {
			if wrong, checked := run(t, s, repeat, m, nil); wrong != 0 || checked != want {
				t.Fatalf("repetition %d: %d wrong of %d, want %d", repeat, wrong, checked, want)
			}
		}
		for i := range x.shelves {
			if n := len(x.shelves[i].messages); n != 0 {
				t.Fatalf("%d messages left over", n)
			}
		}
		for _, m := range m {
			for _, it := range m.items {
				if n := len(it.buffers[schedule.Out]); n > s.Ranks+1 { // one more where credits land
					t.Fatalf("%d stretches for one result: %v", n, it.buffers[schedule.Out])
				}
			}
			m.Close(1)
			m.Close(1)
			if len(m.items) != 0 {
				t.Fatal("Close keeps the buffers")
			}
		}
	})
}

// A message from the wrong offset is detected, and exactly its elements are wrong.
func TestWrongRegionIsNoticed(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllToAll, Algorithm: schedule.Direct, Ranks: 4, Size: 160}
	_, m := memories(4)
	wrong, _ := run(t, s, 0, m, func(rank int, op *schedule.Op) *schedule.Op {
		if rank == 2 && op.Peer == 0 {
			moved := *op
			moved.Off += 4
			return &moved
		}
		return op
	})
	if wrong != 10 {
		t.Fatalf("%d wrong, want 10", wrong)
	}
}

// A contribution that is missing or repeated makes every result wrong that needs it.
func TestMissingAndDoubleContributions(t *testing.T) {
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: 5, Size: 100}
	for _, reduce := range []bool{false, true} {
		_, m := memories(5)
		wrong, checked := run(t, s, 0, m, func(rank int, op *schedule.Op) *schedule.Op {
			if rank == 3 && op.Tag == 1 { // between receiving block 1 and sending it on
				b := &m[3].items[0].buffers[schedule.Out]
				own := m[3].exchange.input(1, 0, 3)
				if reduce {
					*b = b.put(op.Off, content{{op.Len, own.shift(-op.Off)}}, true) // twice
				} else {
					*b = b.put(op.Off, content{{op.Len, own.shift(-op.Off)}}, false) // what came from rank 2 is lost
				}
			}
			return op
		})
		if wrong != 5*5 || checked != 5*25 {
			t.Fatalf("%d wrong of %d", wrong, checked)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	s := schedule.Spec{Collective: schedule.Permute, Algorithm: schedule.Direct, Ranks: 2, Size: 8, Permute: []int{1, 0}}
	_, m := memories(2)
	if m[0].Begin(0, 0, 2, s) == nil {
		t.Error("rank 2 of 2")
	}
	for r := range m {
		if err := m[r].Begin(0, 0, r, s); err != nil {
			t.Fatal(err)
		}
	}
	p, _ := schedule.Build(s, 0)
	send, recv := &p[0], &p[1]
	if m[1].Apply(0, recv, 5, 0, 8, nil) == nil {
		t.Error("a message that nobody sent")
	}
	m[0].Send(0, send, 5)
	if m[1].Apply(0, recv, 5, 0, 4, nil) == nil {
		t.Error("half a message")
	}
	m[0].Send(0, send, 6)
	longer := *recv
	longer.Len = 12
	if m[1].Apply(0, &longer, 6, 0, 12, nil) == nil {
		t.Error("a message of another length")
	}
}

// A piece of a 32-rank ring costs less than a microsecond, this test's own bookkeeping included.
func BenchmarkRing(b *testing.B) {
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: 32, Size: 32 * units.MiB, Chunk: 128 * units.KiB}
	_, m := memories(32)
	v, _ := schedule.Volume(s, 0)
	n := 0
	for b.Loop() {
		if wrong, _ := run(b, s, n, m, nil); wrong != 0 {
			b.Fatal(wrong)
		}
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*32*v.Sends), "ns/message")
}
