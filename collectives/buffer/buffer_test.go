package buffer

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/units"
)

// run executes a collective on one memory per rank, messages in memory, and lets spoil change each message
// on its way. It returns the wrong and the checked elements of all ranks.
func run(t interface{ Fatal(...any) }, s schedule.Spec, repeat int, ranks []*Memory, spoil func(to int, op *schedule.Op, data []byte)) (wrong, checked int64) {
	type message struct {
		from, to int
		tag      uint32
	}
	const item = 3
	wire := map[message][]byte{}
	programs := make([]schedule.Program, s.Ranks)
	done := make([][]bool, s.Ranks)
	left := 0
	for r := range s.Ranks {
		p, err := schedule.Build(s, r)
		if err != nil {
			t.Fatal(err)
		}
		programs[r], done[r] = p, make([]bool, len(p))
		left += len(p)
		if err := ranks[r].Begin(item, repeat, r, s); err != nil {
			t.Fatal(err)
		}
	}
	for left > 0 {
		before := left
		for r, p := range programs {
			for i := range p {
				op := &p[i]
				if done[r][i] || slices.ContainsFunc(op.After, func(a int32) bool { return !done[r][a] }) {
					continue
				}
				if op.Kind == schedule.Send {
					ranks[r].Send(item, op, 0)
					wire[message{r, op.Peer, op.Tag}] = slices.Clone(ranks[r].Load(item, op, 0, op.Len))
				} else {
					m := message{op.Peer, r, op.Tag}
					data, ok := wire[m]
					if !ok {
						continue
					}
					delete(wire, m)
					if spoil != nil {
						spoil(r, op, data)
					}
					receive(t, ranks[r], item, op, data, i)
				}
				done[r][i] = true
				left--
			}
		}
		if left == before {
			t.Fatal("deadlock")
		}
	}
	for r := range s.Ranks {
		w, c := ranks[r].End(item)
		wrong, checked = wrong+w, checked+c
	}
	return wrong, checked
}

// receive applies a message in one of the ways that a host may: whole, in two parts, or placed directly.
func receive(t interface{ Fatal(...any) }, m *Memory, item int, op *schedule.Op, data []byte, way int) {
	half := op.Len / 8 * 4
	var err error
	switch {
	case way%3 == 0:
		err = m.Apply(item, op, 0, 0, op.Len, data)
	case way%3 == 1 && !op.Reduce:
		place := m.Place(item, op)
		copy(place, data[:half])
		err = m.Apply(item, op, 0, 0, half, nil)
		copy(place[half:], data[half:])
		err2 := m.Apply(item, op, 0, half, op.Len, nil)
		if err == nil {
			err = err2
		}
	default:
		err = m.Apply(item, op, 0, 0, half, data[:half])
		if err == nil {
			err = m.Apply(item, op, 0, half, op.Len, data[half:])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func memories(n int, seed uint64) []*Memory {
	m := make([]*Memory, n)
	for i := range m {
		m[i] = New(seed)
	}
	return m
}

func anySpec(t *rapid.T) schedule.Spec {
	s := schedule.Spec{
		Collective: rapid.SampledFrom([]string{schedule.AllReduce, schedule.AllToAll, schedule.Incast, schedule.Permute}).Draw(t, "collective"),
		Algorithm:  schedule.Direct,
		Ranks:      rapid.IntRange(2, 9).Draw(t, "ranks"),
		Size:       schedule.Element * units.Bytes(rapid.IntRange(1, 20000).Draw(t, "elements")),
		Chunk:      schedule.Element * units.Bytes(rapid.SampledFrom([]int{0, 100, 4096, 5000}).Draw(t, "chunk elements")),
	}
	switch s.Collective {
	case schedule.AllReduce:
		s.Algorithm = schedule.Ring
	case schedule.Permute:
		s.Permute, _ = schedule.Derangement(s.Ranks, 1)
	}
	return s
}

// elements is how long all results are together.
func elements(t interface{ Fatal(...any) }, s schedule.Spec) (n int64) {
	for r := range s.Ranks {
		l, err := schedule.Shape(s, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range l.Result {
			n += int64(w.Len / schedule.Element)
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
				t.Fatalf("repetition %d: %d wrong of %d checked of %d: %+v", repeat, wrong, checked, want, m[0].Mistakes())
			}
		}
	})
}

// One wrong byte anywhere, a contribution missing, doubled, or from the wrong place: never unnoticed.
func TestSpoiltDataIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		volumes := make([]int, s.Ranks)
		total := 0
		for r := range volumes {
			v, _ := schedule.Volume(s, r)
			volumes[r] = v.Receives
			total += v.Receives
		}
		if total == 0 {
			t.Skip()
		}
		victim := rapid.IntRange(0, total-1).Draw(t, "message")
		how := rapid.IntRange(0, 2).Draw(t, "how")
		at := rapid.Int64Range(0, 1<<40).Draw(t, "byte")
		n := 0
		m := memories(s.Ranks, 1)
		wrong, _ := run(t, s, 0, m, func(_ int, _ *schedule.Op, data []byte) {
			if n++; n != victim+1 {
				return
			}
			switch how {
			case 0: // a byte of the exponent, so that it cannot vanish in rounding
				data[(at%int64(len(data)))/4*4+3] ^= 1
			case 1:
				clear(data)
			case 2:
				add(data, slices.Clone(data))
			}
		})
		if wrong == 0 {
			t.Fatal("nobody noticed")
		}
		if mistakes := slices.Concat(collect(m)...); len(mistakes) == 0 || mistakes[0].Got == mistakes[0].Want {
			t.Fatalf("mistakes: %+v", mistakes)
		}
	})
}

func collect(m []*Memory) (all [][]Mistake) {
	for _, m := range m {
		all = append(all, m.Mistakes())
	}
	return all
}

// The result of the repetition before is not taken for this one's.
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

// Data of a neighbour, or shifted by a block, differs nearly everywhere.
func TestValuesDoNotRepeat(t *testing.T) {
	var v Values
	v.reset(1, 0, 0, 64)
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

// Sums over 4096 ranks are exact: adding up in two orders gives the closed form.
func TestSumsAreExact(t *testing.T) {
	for _, ranks := range []int{1, 2, 33, 4095, MaxRanks} {
		var v Values
		v.reset(7, 1, 2, ranks)
		const n = 1000
		up, down, one := make([]byte, 4*n), make([]byte, 4*n), make([]byte, 4*n)
		for r := range ranks {
			v.fill(one, r, 50)
			add(up, one)
			v.fill(one, ranks-1-r, 50)
			add(down, one)
		}
		for _, sum := range [][]byte{up, down} {
			if wrong, _ := v.compare(sum, schedule.All, 50); wrong != 0 {
				t.Errorf("%d ranks: %d of %d sums differ from the closed form", ranks, wrong, n)
			}
		}
	}
}

// A part of the result that nobody received is wrong, not unchecked.
func TestMissingMessageIsWrong(t *testing.T) {
	m := New(1)
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
	m := New(1)
	err := m.Begin(0, 0, 0, schedule.Spec{Collective: schedule.Incast, Algorithm: schedule.Direct, Ranks: MaxRanks + 1, Size: 4})
	if err == nil || !strings.Contains(err.Error(), "at most 4096") {
		t.Error(err)
	}
	if m.Begin(0, 0, 0, schedule.Spec{}) == nil {
		t.Error("an empty spec")
	}
}

func bench(b *testing.B, f func(v *Values, dst, src []byte)) {
	var v Values
	v.reset(1, 0, 0, 16)
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
func BenchmarkReset(b *testing.B) {
	var v Values
	for b.Loop() {
		v.reset(1, 0, 0, 16)
	}
}
