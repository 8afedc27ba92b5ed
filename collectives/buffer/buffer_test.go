package buffer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/collectives/schedule/scheduletest"
	"weft/units"
)

// run executes a collective with one memory per rank. spoil may change each message. It returns the
// numbers of wrong and checked elements of all ranks.
func run(t interface{ Fatal(...any) }, s schedule.Spec, repeat int, ranks []*Memory, spoil func(to int, op *schedule.Op, data []byte)) (wrong, checked int64) {
	const item = 3
	order := make([]int, s.Ranks)
	for r := range order {
		order[r] = r
		if err := ranks[r].Begin(item, repeat, r, s); err != nil {
			t.Fatal(err)
		}
	}
	err := scheduletest.Execute(s, func() []int { return order }, func(r int, op *schedule.Op) []byte {
		ranks[r].Send(item, op, 0)
		return slices.Clone(ranks[r].Load(item, op, 0, op.Len, nil))
	}, func(r, i int, op *schedule.Op, data []byte) error {
		if spoil != nil {
			spoil(r, op, data)
		}
		return receive(ranks[r], item, op, data, i)
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

// receive applies a message like a host, by variant: as a whole, in two parts, placed directly, or
// compared where it is.
func receive(m *Memory, item int, op *schedule.Op, data []byte, variant int) error {
	half := op.Len / 8 * 4 // between elements of either size
	switch {
	case variant%4 == 3 && op.Final && !op.Reduce: // and it reaches the region, for what is sent from there
		err := m.Apply(item, &schedule.Op{Buf: op.Buf, Off: op.Off, Len: op.Len}, 0, 0, op.Len, data)
		m.Check(item, op, 0, op.Len, data)
		return err
	case variant%3 == 0:
		return m.Apply(item, op, 0, 0, op.Len, data)
	case variant%3 == 1 && !op.Reduce:
		place := m.Place(item, op)
		copy(place, data[:half])
		err := m.Apply(item, op, 0, 0, half, nil)
		copy(place[half:], data[half:])
		return errors.Join(err, m.Apply(item, op, 0, half, op.Len, nil))
	}
	if err := m.Apply(item, op, 0, 0, half, data[:half]); err != nil {
		return err
	}
	return m.Apply(item, op, 0, half, op.Len, data[half:])
}

func memories(n int, seed uint64) []*Memory {
	m, shelf := make([]*Memory, n), new(Shelf)
	for i := range m {
		m[i] = New(seed, shelf)
	}
	return m
}

func anySpec(t *rapid.T) schedule.Spec {
	return scheduletest.Any(t, scheduletest.Bounds{Ranks: 9, Elements: 20000, Chunks: []int{0, 100, 4096, 5000}})
}

// elements returns the number of elements of all results.
func elements(t interface{ Fatal(...any) }, s schedule.Spec) (n int64) {
	for r := range s.Ranks {
		l, err := schedule.Shape(s, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range l.Result {
			n += int64(w.Len / s.Type.Size())
		}
	}
	return n
}

func TestResultsAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		m := memories(s.Ranks, rapid.Uint64().Draw(t, "seed"))
		for repeat := range 2 {
			wrong, checked := run(t, s, repeat, m, nil)
			if want := elements(t, s); wrong != 0 || checked != want {
				t.Fatalf("repetition %d: %d wrong of %d checked of %d", repeat, wrong, checked, want)
			}
		}
	})
}

// A sum, a product or a copy with a wrong byte, or with a missing, duplicate or misplaced
// contribution, never goes unnoticed.
func TestSpoiltDataIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		extreme := s.Op == schedule.Max || s.Op == schedule.Min
		volumes := make([]int, s.Ranks)
		total := 0
		for r := range volumes {
			for _, op := range program(t, s, r) {
				if op.Kind == schedule.Recv && !op.Credit {
					total++
				}
			}
		}
		if total == 0 || extreme {
			t.Skip()
		}
		victim := rapid.IntRange(0, total-1).Draw(t, "message")
		how := rapid.IntRange(0, 2).Draw(t, "how")
		at := rapid.Int64Range(0, 1<<40).Draw(t, "byte")
		n, spoilt := 0, false
		m := memories(s.Ranks, 1)
		wrong, _ := run(t, s, 0, m, func(_ int, op *schedule.Op, data []byte) {
			if op.Credit {
				return
			}
			if n++; n != victim+1 {
				return
			}
			element, before := int64(s.Type.Size()), slices.Clone(data)
			switch how {
			case 0: // a byte of the exponent, so that it cannot vanish in rounding
				data[(at%int64(len(data)))/element*element+element-1] ^= 1
			case 1:
				clear(data)
			case 2: // what is no reduction is doubled to 2x or x²
				reducer(s.Type, s.Op)(data, slices.Clone(data))
			}
			spoilt = !slices.Equal(before, data) // the square of 1 is 1
		})
		if !spoilt {
			t.Skip()
		}
		if wrong == 0 {
			t.Fatal("nobody noticed")
		}
	})
}

func program(t interface{ Fatal(...any) }, s schedule.Spec, rank int) schedule.Program {
	p, err := schedule.Build(s, rank)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// In a maximum or minimum, missing data shows in the elements that it decides: one in n.
func TestMissingExtremesAreNoticed(t *testing.T) {
	const n, elements = 8, 4000
	for _, kind := range schedule.Types() {
		for _, op := range []schedule.Reduction{schedule.Max, schedule.Min} {
			s := schedule.Spec{
				Collective: schedule.Reduce, Algorithm: schedule.BinomialTree, Ranks: n,
				Type: kind, Op: op, Size: elements * kind.Size(),
			}
			m := memories(n, 3)
			first := true
			wrong, _ := run(t, s, 0, m, func(to int, _ *schedule.Op, data []byte) {
				if to == 0 && first { // a leaf of the tree, whose contribution is lost
					first = false
					copy(data, m[0].Load(3, &schedule.Op{Buf: schedule.Out, Len: s.Size}, 0, s.Size, nil))
				}
			})
			if wrong < elements/n*8/10 || wrong > elements/n*12/10 {
				t.Errorf("%s %s: %d of %d wrong, want about one in %d", kind, op, wrong, elements, n)
			}
		}
	}
}

// The result of an earlier repetition is not accepted.
func TestStaleResultIsNoticed(t *testing.T) {
	s := schedule.Spec{Collective: schedule.Permute, Algorithm: schedule.Direct, Ranks: 2, Size: 4096, Permute: []int{1, 0}}
	m := memories(2, 1)
	run(t, s, 0, m, nil)
	old := [2][]byte{}
	for r := range old {
		old[r] = slices.Clone(m[r].items[3].buffers[schedule.Out].data)
	}
	wrong, _ := run(t, s, 1, m, func(to int, _ *schedule.Op, data []byte) { copy(data, old[to]) })
	if wrong < 2*1024*99/100 {
		t.Fatalf("%d of %d stale elements noticed", wrong, 2*1024)
	}
}

// An input has no memory until something is received into it, and the same bytes before and after.
func TestInputs(t *testing.T) {
	const item, size = 3, 50_000
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(schedule.Types()).Draw(t, "type")
		s := schedule.Spec{Collective: schedule.Permute, Algorithm: schedule.Direct, Ranks: 2, Size: size,
			Permute: []int{1, 0}, Type: kind}
		m := New(1, nil)
		if err := m.Begin(item, 0, 1, s); err != nil {
			t.Fatal(err)
		}
		all := &schedule.Op{Buf: schedule.In, Len: size}
		want := slices.Clone(m.Load(item, all, 0, size, nil))
		check := func() {
			off := rapid.IntRange(0, size-1).Draw(t, "offset")
			n := rapid.IntRange(1, size-off).Draw(t, "bytes")
			var room []byte
			if rapid.Bool().Draw(t, "room") {
				off, n = off&^3, max(4, n&^3)
				room = make([]byte, n)
			}
			if !slices.Equal(m.Load(item, all, units.Bytes(off), units.Bytes(n), room), want[off:off+n]) {
				t.Fatalf("other bytes in [%d, %d)", off, off+n)
			}
		}
		check()
		if m.items[item].buffers[schedule.In].data != nil {
			t.Fatal("memory for what nothing is received into")
		}
		at := rapid.IntRange(0, size/4-1001).Draw(t, "element") * 4
		op := &schedule.Op{Buf: schedule.In, Off: units.Bytes(at), Len: 8}
		data := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "data")
		if err := m.Apply(item, op, 0, 0, op.Len, data); err != nil {
			t.Fatal(err)
		}
		copy(want[at:], data)
		check()
		check()
	})
}

// Data of a neighbour, or shifted by a block, differs nearly everywhere.
func TestValuesDoNotRepeat(t *testing.T) {
	var v Values
	v.reset(1, 0, 0, &schedule.Spec{Ranks: 64}, true)
	const n = 1 << 16
	buf := make([]byte, 4*n)
	v.fill(buf, 5, 0)
	for _, shift := range []uint64{1, 2, 3, 4, 8, 610, 4096, 1 << 20, 6765, 10946} {
		if wrong, _ := v.compare(buf, 5, shift); wrong < n*99/100 {
			t.Errorf("shifted by %d: only %d of %d differ", shift, wrong, n)
		}
	}
	for _, rank := range []int{0, 4, 6, 63, schedule.All} {
		if wrong, _ := v.compare(buf, rank, 0); wrong < n*99/100 {
			t.Errorf("rank %d for 5: only %d of %d differ", rank, wrong, n)
		}
	}
}

// Reductions are exact: in two orders they give what is looked up.
func TestReductionsAreExact(t *testing.T) {
	for _, kind := range schedule.Types() {
		for _, op := range schedule.Reductions() {
			for _, ranks := range []int{1, 2, 33, 100, 126, 127, 128, 129, 255, 256, 257, 4095, MaxRanks} {
				s := &schedule.Spec{Ranks: ranks, Type: kind, Op: op}
				if ranks > maxRanks(s, true) {
					continue
				}
				var v Values
				v.reset(7, 1, 2, s, true)
				const n = 1000
				size := n * kind.Size()
				up, down, one := make([]byte, size), make([]byte, size), make([]byte, size)
				reduce := reducer(kind, op)
				v.fill(up, 0, 50)
				v.fill(down, ranks-1, 50)
				for r := 1; r < ranks; r++ {
					v.fill(one, r, 50)
					reduce(up, one)
					v.fill(one, ranks-1-r, 50)
					reduce(down, one)
				}
				for _, got := range [][]byte{up, down} {
					if wrong, first := v.compare(got, schedule.All, 50); wrong != 0 {
						at := got[units.Bytes(first)*kind.Size():]
						t.Errorf("%s %s of %d ranks: %d of %d differ from the closed form: % x, want % x",
							op, kind, ranks, wrong, n, at[:kind.Size()], v.piece(schedule.All, uint64(50+first))[:kind.Size()])
					}
				}
			}
		}
	}
}

// No value is neutral in a sum or a product, and none is infinite or NaN.
func TestNoValueIsNeutral(t *testing.T) {
	for _, kind := range schedule.Types() {
		for _, op := range schedule.Reductions() {
			for _, ranks := range []int{2, 16, 200} {
				v := drawn{kind: kind}
				v.draw(5, &schedule.Spec{Ranks: ranks, Type: kind, Op: op}, true)
				neutral := map[schedule.Reduction]float64{schedule.Sum: 0, schedule.Prod: 1, schedule.Max: 0, schedule.Min: 0}[op]
				for i := range v.table {
					x, r := number(kind, v.table[i]), number(kind, v.results[i])
					if x == neutral || x-x != 0 || r-r != 0 {
						t.Fatalf("%s %s of %d ranks: value %g, result %g", op, kind, ranks, x, r)
					}
				}
			}
		}
	}
}

func TestBFloat16Rounds(t *testing.T) {
	for x, want := range map[float32]float32{1: 1, 257: 256, 258: 258, 259: 260, -3.1: -3.09375, 0: 0} {
		if got := fromBFloat16(toBFloat16(x)); got != want {
			t.Errorf("%g becomes %g, want %g", x, got, want)
		}
	}
}

// A part of the result that nobody received is wrong, not unchecked.
func TestMissingMessageIsWrong(t *testing.T) {
	m := New(1, nil)
	s := schedule.Spec{Collective: schedule.Incast, Algorithm: schedule.Direct, Ranks: 3, Size: 400}
	if err := m.Begin(0, 0, 0, s); err != nil {
		t.Fatal(err)
	}
	if wrong, checked := m.End(0); wrong != 200 || checked != 0 {
		t.Fatalf("%d wrong, %d checked", wrong, checked)
	}
	m.Close(0)
	if err := m.Begin(1, 0, 0, s); err != nil { // the same buffer again, and nothing in it is a result
		t.Fatal(err)
	}
	if wrong, _ := m.End(1); wrong != 200 || len(m.spare) != 0 || len(m.items) != 1 {
		t.Fatalf("%d wrong, %d items, %d buffers to spare", wrong, len(m.items), len(m.spare))
	}
	m.Close(1)
	s.Size = 40
	if err := m.Begin(2, 0, 0, s); err != nil || len(m.items[2].buffers[schedule.Out].data) != 80 {
		t.Fatal(err, len(m.items[2].buffers[schedule.Out].data))
	}
}

func TestBeginRefuses(t *testing.T) {
	m := New(1, nil)
	err := m.Begin(0, 0, 0, schedule.Spec{Collective: schedule.Incast, Algorithm: schedule.Direct, Ranks: MaxRanks + 1, Size: 4})
	if err == nil || !strings.Contains(err.Error(), "at most 4096") {
		t.Error(err)
	}
	s := schedule.Spec{
		Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: 257, Size: 4, Type: schedule.BFloat16,
	}
	if err := m.Begin(0, 0, 0, s); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Error(err)
	}
	if s.Op = schedule.Prod; m.Begin(0, 0, 0, s) != nil {
		t.Error("a product of 257 ranks")
	}
	if m.Begin(1, 0, 0, schedule.Spec{}) == nil {
		t.Error("an empty spec")
	}
}

func bench(b *testing.B, f func(v *Values, dst, src []byte)) {
	var v Values
	v.reset(1, 0, 0, &schedule.Spec{Ranks: 16}, true)
	dst, src := make([]byte, 1<<20), make([]byte, 1<<20)
	v.fill(src, 0, 0)
	v.fill(dst, 0, 0)
	b.SetBytes(1 << 20)
	for b.Loop() {
		f(&v, dst, src)
	}
}

func BenchmarkFill(b *testing.B) { bench(b, func(v *Values, dst, _ []byte) { v.fill(dst, 3, 0) }) }
func BenchmarkCompare(b *testing.B) {
	bench(b, func(v *Values, _, src []byte) { v.compare(src, 0, 0) })
}
func BenchmarkAdd(b *testing.B) { bench(b, func(_ *Values, dst, src []byte) { add(dst, src) }) }

func BenchmarkReduce(b *testing.B) {
	for _, kind := range schedule.Types() {
		for _, op := range schedule.Reductions() {
			reduce := reducer(kind, op)
			b.Run(string(kind)+"/"+string(op), func(b *testing.B) {
				bench(b, func(_ *Values, dst, src []byte) { reduce(dst, src) })
			})
		}
	}
}

func BenchmarkReset(b *testing.B) {
	var v Values
	s := &schedule.Spec{Ranks: 16}
	for b.Loop() {
		v.reset(1, 0, 0, s, true)
	}
}
