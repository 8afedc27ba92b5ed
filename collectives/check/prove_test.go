package check

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/units"
)

// orders are ways to pick the next step.
func orders(seed uint64) []Order {
	rng := rand.New(rand.NewPCG(seed, 0))
	return []Order{
		func(steps []Step) int { // acknowledgements last: sends go on reading for as long as anything else can happen
			if i := slices.IndexFunc(steps, func(s Step) bool { return s.Do != Acknowledge }); i >= 0 {
				return i
			}
			return rng.IntN(len(steps))
		},
		func([]Step) int { return 0 },                    // the oldest, more or less
		func(steps []Step) int { return len(steps) - 1 }, // the newest
		func(steps []Step) int { return rng.IntN(len(steps)) },
	}
}

func prove(t *testing.T, s schedule.Spec, seed uint64) {
	t.Helper()
	for i, next := range orders(seed) {
		if err := Prove(s, next); err != nil {
			t.Fatalf("%+v, order %d, seed %d: %v", s, i, seed, err)
		}
	}
}

// One element per block, then blocks that differ by one, then some that are empty.
func sizes(n int) []units.Bytes {
	e := units.Bytes(n) * schedule.Element
	return []units.Bytes{e, e + schedule.Element, max(schedule.Element, e-2*schedule.Element)}
}

func TestRing(t *testing.T) {
	for n := 2; n <= 64; n++ {
		for _, size := range sizes(n) {
			prove(t, schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: n, Size: size}, 1)
		}
	}
}

func TestAllToAll(t *testing.T) {
	for n := 2; n <= 64; n++ {
		for i, size := range sizes(n) {
			prove(t, schedule.Spec{Collective: schedule.AllToAll, Algorithm: schedule.Direct, Ranks: n, Size: size, Parallel: i * 3}, 2)
		}
	}
}

func TestIncast(t *testing.T) {
	for n := 2; n <= 64; n++ {
		prove(t, schedule.Spec{Collective: schedule.Incast, Algorithm: schedule.Direct, Ranks: n, Root: n / 2, Size: 12, Chunk: 8, Flows: n % 4}, 3)
	}
}

func TestPermute(t *testing.T) {
	for n := 2; n <= 64; n++ {
		to, err := schedule.Derangement(n, uint64(n))
		if err != nil {
			t.Fatal(err)
		}
		prove(t, schedule.Spec{Collective: schedule.Permute, Algorithm: schedule.Direct, Ranks: n, Permute: to, Size: 12, Chunk: 8}, 4)
	}
}

// Any collective with any pieces in any order.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedule.Spec{
			Collective: rapid.SampledFrom([]string{schedule.AllReduce, schedule.AllToAll}).Draw(t, "collective"),
			Algorithm:  schedule.Direct,
			Ranks:      rapid.IntRange(2, 9).Draw(t, "ranks"),
			Size:       schedule.Element * units.Bytes(rapid.IntRange(1, 60).Draw(t, "elements")),
			Chunk:      schedule.Element * units.Bytes(rapid.IntRange(0, 4).Draw(t, "chunk elements")),
			Parallel:   rapid.IntRange(0, 3).Draw(t, "parallel"),
		}
		if s.Collective == schedule.AllReduce {
			s.Algorithm = schedule.Ring
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		if err := Prove(s, func(steps []Step) int { return rng.IntN(len(steps)) }); err != nil {
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
		"while it is being overwritten|the sum of": edit(1, 4, func(op *schedule.Op) { op.After = nil }),
		"while it is being sent":                   edit(1, 14, func(op *schedule.Op) { op.After = nil }),
		"the sum of":                               edit(2, 2, func(op *schedule.Op) { op.Reduce = false }),
		"never called final":                       edit(3, 14, func(op *schedule.Op) { op.Final = false }),
		"which was final":                          edit(3, 2, func(op *schedule.Op) { op.Final = true }),
		"have the same tag":                        edit(3, 1, func(op *schedule.Op) { op.Tag = 0 }),
		"nothing is sent with tag":                 edit(3, 0, func(op *schedule.Op) { op.Tag = 99 }),
		"receives 8 bytes":                         edit(3, 0, func(op *schedule.Op) { op.Len = 4 }),
		"outside its buffer":                       edit(3, 0, func(op *schedule.Op) { op.Off = 64 }),
		"peer 4":                                   edit(3, 0, func(op *schedule.Op) { op.Peer = 4 }),
		"is after op 99":                           edit(3, 0, func(op *schedule.Op) { op.After = []int32{99} }),
		"local copy to":                            func(c collective) { c.layouts[3].Local = []schedule.Copy{{Off: 64, Len: 16}} },
		"the sum of [{0 ":                          func(c collective) { c.layouts[3].Local = []schedule.Copy{{Len: 8}} },
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
	if err := Prove(schedule.Spec{Collective: schedule.AllReduce, Ranks: 3}, nil); err == nil {
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
