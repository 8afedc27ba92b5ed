package check

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/collectives/schedule/scheduletest"
	"weft/units"
)

// prove executes a collective once in each order.
func prove(s schedule.Spec, orders ...Order) error {
	programs := make([]schedule.Program, s.Ranks)
	layouts := make([]schedule.Layout, s.Ranks)
	for r := range s.Ranks {
		var err error
		if programs[r], err = schedule.Build(s, r); err != nil {
			return err
		}
		if layouts[r], err = schedule.Shape(s, r); err != nil {
			return err
		}
	}
	return Execute(programs, layouts, orders...)
}

// orders are ways to pick the next step.
func orders(seed uint64) []Order {
	rng := rand.New(rand.NewPCG(seed, 0))
	acks := 0 // number of steps in front that are acknowledgements
	return []Order{
		func(steps []Step) int { // acknowledgements last: sends go on reading for as long as anything else can happen
			for ; acks < len(steps); acks++ {
				if steps[acks].Do != Acknowledge {
					return acks
				}
			}
			acks--
			return rng.IntN(len(steps))
		},
		func([]Step) int { return 0 },                    // the oldest, more or less
		func(steps []Step) int { return len(steps) - 1 }, // the newest
		func(steps []Step) int { return rng.IntN(len(steps)) },
	}
}

// Every algorithm of every collective, for all numbers of ranks from 2 to 64, with blocks that
// differ by one element; for many of them also with blocks of several pieces, and blocks some of
// which are empty.
func TestEveryAlgorithm(t *testing.T) {
	const e = schedule.Element
	for n := 2; n <= 64; n++ {
		all := orders(uint64(n))
		try := func(elements int, chunk units.Bytes, orders ...Order) {
			scheduletest.Every(n, e*units.Bytes(elements), chunk, func(s schedule.Spec) {
				if err := prove(s, orders...); err != nil {
					t.Fatalf("%+v, seed %d: %v", s, n, err)
				}
			})
		}
		try(n+1, 0, all...)
		if n <= 17 || n%8 == 0 {
			try(max(1, n-2), 0, all[0])
		}
		if n <= 17 || n%16 == 0 {
			try(2*n+n/2, e, all[0])
		}
	}
}

// Any collective with any pieces in any order.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scheduletest.Any(t, scheduletest.Bounds{Ranks: 12, Elements: 60, Chunks: []int{0, 1, 2, 3, 4, 7}})
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		if err := prove(s, func(steps []Step) int { return rng.IntN(len(steps)) }); err != nil {
			t.Fatal(err)
		}
	})
}

// collective is the programs and layouts of a small ring, to be spoilt.
type collective struct {
	programs []schedule.Program
	layouts  []schedule.Layout
}

func ring(t interface{ Fatal(...any) }, n int) collective {
	var c collective
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: n, Size: units.Bytes(n) * 16, Chunk: 8}
	for r := range n {
		p, err := schedule.Build(s, r)
		if err != nil {
			t.Fatal(err)
		}
		l, err := schedule.Shape(s, r)
		if err != nil {
			t.Fatal(err)
		}
		c.programs, c.layouts = append(c.programs, p), append(c.layouts, l)
	}
	return c
}

// refused returns the first complaint that some order brings out.
func (c collective) refused() error {
	for seed := range uint64(30) {
		for _, next := range orders(seed) {
			if err := Execute(c.programs, c.layouts, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// Each way to spoil a ring is noticed, and called by its name.
func TestSpoilt(t *testing.T) {
	edit := func(r, op int, change func(op *schedule.Op)) func(collective) {
		return func(c collective) { change(&c.programs[r][op]) }
	}
	for want, spoil := range map[string]func(c collective){
		"while it is being overwritten|while it is being sent|the reduction of": edit(1, 4, func(op *schedule.Op) { op.After = nil }),
		"while it is being sent":   edit(1, 14, func(op *schedule.Op) { op.After = nil }),
		"the reduction of":         edit(2, 2, func(op *schedule.Op) { op.Reduce = false }),
		"never called final":       edit(3, 14, func(op *schedule.Op) { op.Final = false }),
		"which was final":          edit(3, 2, func(op *schedule.Op) { op.Final = true }),
		"have the same tag":        edit(3, 1, func(op *schedule.Op) { op.Tag = 0 }),
		"nothing is sent with tag": edit(3, 0, func(op *schedule.Op) { op.Tag = 99 }),
		"receives 8 bytes":         edit(3, 0, func(op *schedule.Op) { op.Len = 4 }),
		"outside its buffer":       edit(3, 0, func(op *schedule.Op) { op.Off = 64 }),
		"peer 4":                   edit(3, 0, func(op *schedule.Op) { op.Peer = 4 }),
		"is after op 99":           edit(3, 0, func(op *schedule.Op) { op.After = []int32{99} }),
		"local copy to":            func(c collective) { c.layouts[3].Local = []schedule.Copy{{Off: 64, Len: 16}} },
		"the reduction of [{0 ":    func(c collective) { c.layouts[3].Local = []schedule.Copy{{Len: 8}} },
		"is never received": func(c collective) {
			c.programs[3] = append(c.programs[3], schedule.Op{Kind: schedule.Send, Buf: schedule.Out, Len: 4, Tag: 99})
		},
		"deadlock": func(c collective) {
			for r := range c.programs {
				c.programs[r][0].After = []int32{2}
				c.programs[r][1].After = []int32{2}
			}
		},
	} {
		c := ring(t, 4)
		spoil(c)
		err := c.refused()
		if err == nil || !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(err.Error(), w) }) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Two receives that write the same region at once are noticed, unless both add.
func TestConcurrentReceives(t *testing.T) {
	run := func(reduce, final bool) error {
		send := schedule.Op{Kind: schedule.Send, Len: 4}
		recv := schedule.Op{Kind: schedule.Recv, Buf: schedule.Out, Len: 4, Reduce: reduce}
		left, right := recv, recv
		left.Peer, right.Peer = 1, 2
		send.Peer, left.Final = 0, final
		return Execute(
			[]schedule.Program{{left, right}, {send}, {send}},
			[]schedule.Layout{{Out: 4}, {In: 4}, {In: 4}},
			func(steps []Step) int {
				return max(0, slices.IndexFunc(steps, func(s Step) bool { return s.Do != Apply }))
			})
	}
	if err := run(true, false); err != nil {
		t.Error(err)
	}
	if err := run(false, false); err == nil || !strings.Contains(err.Error(), "while another receive does") {
		t.Errorf("two that replace: %v", err)
	}
	if err := run(true, true); err == nil || !strings.Contains(err.Error(), "final while another") {
		t.Errorf("final, but another adds: %v", err)
	}
}

// No edge of the ring is there for nothing, and no flag or region can change unnoticed.
func TestAnyMutationIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ring(t, rapid.IntRange(2, 5).Draw(t, "ranks"))
		r := rapid.IntRange(0, len(c.programs)-1).Draw(t, "rank")
		op := &c.programs[r][rapid.IntRange(0, len(c.programs[r])-1).Draw(t, "op")]
		switch rapid.IntRange(0, 3).Draw(t, "mutation") {
		case 0:
			if op.After == nil {
				t.Skip()
			}
			op.After = nil
		case 1:
			op.Off = mod(op.Off+8, c.layouts[r].Out)
		case 2:
			if op.Kind == schedule.Send {
				t.Skip()
			}
			op.Reduce = !op.Reduce
		case 3:
			if op.Kind == schedule.Send {
				t.Skip()
			}
			op.Final = !op.Final
		}
		if c.refused() == nil {
			t.Fatalf("rank %d: %+v is accepted", r, *op)
		}
	})
}

func mod(a, n units.Bytes) units.Bytes { return a % n }

func TestProveRefusesBadSpecs(t *testing.T) {
	if err := prove(schedule.Spec{Collective: schedule.AllReduce, Ranks: 3}, nil); err == nil {
		t.Error("a spec without a size")
	}
	if err := Execute([]schedule.Program{{}}, []schedule.Layout{{}}, nil); err == nil {
		t.Error("nothing to prove")
	}
	huge := schedule.Layout{In: 4 * (maxCells + 1)}
	if err := Execute([]schedule.Program{{{Kind: schedule.Send, Len: 4}}}, []schedule.Layout{huge}, nil); err == nil {
		t.Error("more cells than can be held")
	}
}

// Cells are multisets, however they are kept.
func TestCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum cell
		var want []source
		for range rapid.IntRange(0, 12).Draw(t, "inputs") {
			s := source{rapid.IntRange(60, 67).Draw(t, "rank"), rapid.IntRange(0, 1).Draw(t, "cell")}
			want = append(want, s)
			if rapid.Bool().Draw(t, "left") {
				sum = add(sum, input(s.rank, s.cell))
			} else {
				sum = add(input(s.rank, s.cell), sum)
			}
		}
		slices.SortFunc(want, compare)
		got := sum.sources()
		slices.SortFunc(got, compare)
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		var again cell
		for _, s := range want {
			again = add(again, input(s.rank, s.cell))
		}
		if !again.equal(sum) {
			t.Fatalf("%+v is not %+v", again, sum)
		}
		if n := rapid.IntRange(1, 70).Draw(t, "ranks"); len(everyone(n, 3).sources()) != n {
			t.Fatalf("everyone of %d: %v", n, everyone(n, 3))
		}
	})
}
