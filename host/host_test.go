package host

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/buffer"
	"weft/collectives/schedule"
	"weft/collectives/symbolic"
	"weft/units"
)

var kinds = []int{noMemory, realMemory, symbolicMemory}

func TestRing(t *testing.T) {
	for _, n := range []int{2, 3, 8, 16} {
		for _, kind := range kinds {
			net := buildNetwork(t, n, kind, job{Spec: ringAllReduce(400*units.KB, 16*units.KB), repeat: 2})
			net.run(t)
			net.verify(t, 2*n)
		}
	}
}

func TestAllToAll(t *testing.T) {
	for _, n := range []int{2, 5, 16} {
		for _, kind := range kinds {
			for _, parallel := range []int{0, 1, 3} {
				net := buildNetwork(t, n, kind, job{Spec: allToAll(400*units.KB, parallel), repeat: 3})
				net.run(t)
				net.verify(t, 3*n)
			}
		}
	}
}

// Senders run ahead of the root, by whole repetitions: what is early waits for its turn.
func TestIncastRepeats(t *testing.T) {
	for _, kind := range kinds {
		s := incast(100*units.KB, 2)
		s.Chunk = 30 * units.KB
		net := buildNetwork(t, 5, kind, job{Spec: s, repeat: 4})
		net.run(t)
		net.verify(t, 4*5)
	}
}

func TestPermutation(t *testing.T) {
	for _, kind := range kinds {
		net := buildNetwork(t, 9, kind, job{Spec: permutation(t, 9, 123456), repeat: 3})
		net.run(t)
		net.verify(t, 3*9)
	}
}

// Items share connections and overlap, wait for their time, or for the item before them.
func TestWorkload(t *testing.T) {
	for _, kind := range kinds {
		net := buildNetwork(t, 8, kind,
			job{Spec: allToAll(80*units.KB, 0), repeat: 2},
			job{Spec: ringAllReduce(80*units.KB, 8*units.KB), repeat: 3},
			job{Spec: incast(20*units.KB, 0), ranks: []int{5, 1, 2}, start: 30 * units.Microsecond},
			job{Spec: ringAllReduce(4*units.KB, 0), ranks: []int{3, 2, 1, 0}, previous: true},
			job{Spec: permutation(t, 8, 40*units.KB), previous: true, start: 200 * units.Microsecond},
		)
		net.run(t)
		net.verify(t, 2*8+3*8+3+4+8)
		ends := map[[2]int]units.Time{}
		for _, h := range net.hosts {
			for _, d := range h.Dones() {
				ends[[2]int{int(h.plan.Host), d.Item}] = d.End
			}
		}
		for _, h := range net.hosts {
			for i, item := range h.plan.Items {
				for _, d := range h.Dones() {
					if d.Item != item.Index || d.Repeat != 0 {
						continue
					}
					before := item.Start
					if item.Previous && i > 0 {
						before = max(before, ends[[2]int{int(h.plan.Host), h.plan.Items[i-1].Index}])
					}
					if d.Start != before {
						t.Errorf("%s: item %d began at %d, want %d", h.plan.Name, d.Item, d.Start, before)
					}
				}
			}
		}
	}
}

// A collective that gives some ranks nothing to do is done at once there.
func TestEmptyPrograms(t *testing.T) {
	for _, kind := range kinds {
		net := buildNetwork(t, 4, kind, job{Spec: allToAll(4, 0), repeat: 100}, job{Spec: ringAllReduce(8, 0), previous: true})
		net.run(t)
		net.verify(t, 4*100+4)
	}
}

// Lost packets of any kind delay results and change nothing else.
func TestLoss(t *testing.T) {
	for _, kind := range kinds {
		rng := rand.New(rand.NewPCG(1, uint64(kind)))
		lost := 0
		net := buildNetwork(t, 5, kind, job{Spec: ringAllReduce(200*units.KB, 8*units.KB), repeat: 2}, job{Spec: allToAll(200*units.KB, 2)})
		net.lose = func(*packet) bool {
			if rng.IntN(50) == 0 {
				lost++
				return true
			}
			return false
		}
		net.run(t)
		net.verify(t, 3*5)
		if lost == 0 {
			t.Error("nothing was lost")
		}
		var resent int64
		for _, h := range net.hosts {
			resent += h.Counters().Retransmits
		}
		if resent == 0 {
			t.Error("nothing was sent again")
		}
	}
}

// Any workload over any lossy network gives the right results.
func TestAnyWorkload(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(rt, "hosts")
		var jobs []job
		want := 0
		for range rapid.IntRange(1, 3).Draw(rt, "jobs") {
			size := schedule.Element * units.Bytes(rapid.IntRange(1, 5000).Draw(rt, "elements"))
			s := []schedule.Spec{
				ringAllReduce(size, 0), allToAll(size, rapid.IntRange(0, 3).Draw(rt, "parallel")),
				incast(size, rapid.IntRange(0, n-1).Draw(rt, "root")), permutation(t, n, size),
			}[rapid.IntRange(0, 3).Draw(rt, "collective")]
			s.Chunk = schedule.Element * units.Bytes(rapid.SampledFrom([]int{0, 0, 333, 1024}).Draw(rt, "chunk elements"))
			j := job{Spec: s, repeat: rapid.IntRange(1, 3).Draw(rt, "repeat"), previous: rapid.Bool().Draw(rt, "previous")}
			j.start = units.Time(rapid.IntRange(0, 20).Draw(rt, "start")) * units.Microsecond
			jobs = append(jobs, j)
			want += n * j.repeat
		}
		net := buildNetwork(t, n, rapid.IntRange(realMemory, symbolicMemory).Draw(rt, "memory"), jobs...)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "losses"), 0))
		rate := rapid.IntRange(0, 5).Draw(rt, "percent lost")
		net.lose = func(*packet) bool { return rng.IntN(100) < rate }
		net.run(t)
		net.verify(t, want)
	})
}

// wrongElements returns the number of wrong elements in all repetitions.
func (n *network) wrongElements() (wrong int64) {
	for _, h := range n.hosts {
		for _, d := range h.Dones() {
			wrong += d.Wrong
		}
	}
	return wrong
}

// One flipped bit in one packet is found, in the result it belongs to.
func TestCorruptionIsFound(t *testing.T) {
	for _, s := range []schedule.Spec{ringAllReduce(64*units.KB, 0), allToAll(64*units.KB, 0), incast(64*units.KB, 0), permutation(t, 4, 64*units.KB)} {
		net := buildNetwork(t, 4, realMemory, job{Spec: s})
		packets := 0
		net.touch = func(p *packet) {
			if p.data {
				if packets++; packets == 5 {
					p.payload[100] ^= 0x80
				}
			}
		}
		net.run(t)
		if w := net.wrongElements(); w < 1 || w > 4 {
			t.Errorf("%s: %d wrong elements", s.Collective, w)
		}
	}
}

// forgetful is a memory that leaves out one contribution, or adds it twice.
type forgetful struct {
	Memory
	victim int // apply to spoil
	twice  bool
	calls  int
}

func (f *forgetful) Apply(item int, op *schedule.Op, key uint64, from, to units.Bytes, data []byte) error {
	if f.calls++; f.calls != f.victim {
		return f.Memory.Apply(item, op, key, from, to, data)
	}
	if !f.twice {
		return nil
	}
	if err := f.Memory.Apply(item, op, key, from, to, data); err != nil {
		return err
	}
	return f.Memory.Apply(item, op, key, from, to, data)
}

// forgetfulBytes is the same over real bytes.
type forgetfulBytes struct {
	forgetful
	Bytes
}

func (f *forgetfulBytes) Begin(item, repeat, rank int, s schedule.Spec) error {
	return f.Bytes.Begin(item, repeat, rank, s)
}
func (f *forgetfulBytes) Send(item int, op *schedule.Op, key uint64) { f.Bytes.Send(item, op, key) }
func (f *forgetfulBytes) End(item int) (wrong, checked int64)        { return f.Bytes.End(item) }
func (f *forgetfulBytes) Close(item int)                             { f.Bytes.Close(item) }
func (f *forgetfulBytes) Apply(item int, op *schedule.Op, key uint64, from, to units.Bytes, data []byte) error {
	return f.forgetful.Apply(item, op, key, from, to, data)
}

// A contribution that is dropped, or added twice, is found by either memory.
func TestMissingContributionIsFound(t *testing.T) {
	x := symbolic.New(1)
	for _, twice := range []bool{false, true} {
		for _, real := range []bool{true, false} {
			if twice && !real {
				continue // a symbolic message can be applied once only
			}
			net := newNetwork(4)
			for i, p := range plansOf(t, 4, []job{{Spec: ringAllReduce(8*units.KB, 0)}}) {
				var mem Memory = x.Memory()
				if real {
					mem = buffer.New(1, nil)
				}
				if i == 2 {
					f := forgetful{Memory: mem, victim: 2, twice: twice}
					if mem = &f; real {
						mem = &forgetfulBytes{forgetful: f, Bytes: f.Memory.(Bytes)}
					}
				}
				h, err := New(p, mem, nil)
				if err != nil {
					t.Fatal(err)
				}
				net.hosts = append(net.hosts, h)
			}
			net.run(t)
			if net.wrongElements() == 0 {
				t.Errorf("twice %v, real %v: nobody noticed", twice, real)
			}
		}
	}
}

// The same plan gives the same run, to the picosecond.
func TestDeterministic(t *testing.T) {
	records := func() (all []any) {
		net := buildNetwork(t, 6, symbolicMemory, job{Spec: allToAll(300*units.KB, 2), repeat: 2}, job{Spec: ringAllReduce(100*units.KB, 4*units.KB)})
		net.run(t)
		for _, h := range net.hosts {
			all = append(all, h.Flows(), h.Dones(), h.Counters())
		}
		return all
	}
	if a, b := records(), records(); !reflect.DeepEqual(a, b) {
		t.Error("two runs differ")
	}
}

// A plan survives its way to a node.
func TestPlanIsData(t *testing.T) {
	for _, p := range plansOf(t, 3, []job{{Spec: ringAllReduce(1000, 0)}, {Spec: permutation(t, 3, 8), previous: true}}) {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var got Plan
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, got) {
			t.Errorf("%+v\nbecame\n%+v", p, got)
		}
	}
}

// cover agrees with a map of bytes.
func TestCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 30
		m := inbound{size: size}
		var have [size]bool
		for range rapid.IntRange(1, 40).Draw(t, "packets") {
			from := rapid.IntRange(-1, size).Draw(t, "from")
			to := from + rapid.IntRange(0, 6).Draw(t, "length")
			fits := from >= 0 && to > from && to <= size
			for i := from; fits && i < to; i++ {
				fits = !have[i]
			}
			if got := m.cover(units.Bytes(from), units.Bytes(to)); got != fits {
				t.Fatalf("[%d,%d) of %v: %v", from, to, have, got)
			}
			prefix := 0
			for i := from; fits && i < to; i++ {
				have[i] = true
			}
			for prefix < size && have[prefix] {
				prefix++
			}
			if m.prefix != units.Bytes(prefix) {
				t.Fatalf("prefix %d of %v", m.prefix, have)
			}
		}
	})
}

// Packets need not hold whole elements.
func TestOddPackets(t *testing.T) {
	for _, s := range []schedule.Spec{ringAllReduce(40*units.KB, 4*units.KB), allToAll(40*units.KB, 0)} {
		net := newNetwork(4)
		for _, p := range plansOf(t, 4, []job{{Spec: s, repeat: 2}}) {
			p.Endpoint.MTU = 1001
			h, err := New(p, buffer.New(1, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			net.hosts = append(net.hosts, h)
		}
		net.run(t)
		net.verify(t, 2*4)
	}
}
