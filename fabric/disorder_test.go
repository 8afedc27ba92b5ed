package fabric

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/units"

	"pgregory.net/rapid"
)

// like returns d with the rate and the delay of l.
func like(l, d Link) Link {
	d.Rate, d.Delay = l.Rate, l.Delay
	return d
}

// disturbedChain sends packets, one every microsecond, over a chain of one switch whose last link
// is disorderly.
func disturbedChain(t *testing.T, seed uint64, d Link, packets int) *world {
	w := chain(1)
	w.Seed = seed
	w.Ports[2].Link = like(w.Ports[2].Link, d)
	n := newWorld(t, w.route())
	for i := range packets {
		n.run(units.Time(i) * units.Microsecond)
		n.send(units.Time(i)*units.Microsecond, 0, 1, 1000, i)
	}
	n.run(units.Never)
	return n
}

// The shares of packets that arrive late and twice are right; a copy equals its packet and arrives
// with it.
func TestDisorderIsAsOftenAsItSays(t *testing.T) {
	const packets = 20_000
	d := Link{Reorder: 0.2, ReorderBy: 10 * units.Microsecond, Duplicate: 0.1}
	n := disturbedChain(t, 3, d, packets)
	k := n.net.Counters()
	near := func(what string, got int64, p float64) {
		t.Helper()
		if off := math.Abs(float64(got) - packets*p); off > 4*math.Sqrt(packets*p*(1-p)) {
			t.Errorf("%s: %d of %d, want %.0f", what, got, packets, packets*p)
		}
	}
	near("late", k.Late, d.Reorder)
	near("twice", k.Duplicated, d.Duplicate)
	if k.Delivered != packets+k.Duplicated || k.DuplicatedBytes != units.Bytes(k.Duplicated)*1000 {
		t.Errorf("%+v", k)
	}
	seen := make([]int, packets)
	overtaken, last := 0, int64(-1)
	for _, a := range n.arrivals {
		seen[a.packet.Context]++
		if a.packet.Context < last {
			overtaken++
		}
		last = max(last, a.packet.Context)
		idle := units.Time(a.packet.Context)*units.Microsecond + 2*units.Microsecond + 2*80*units.Nanosecond
		if by := a.at - idle; by < 0 || by > d.ReorderBy {
			t.Fatalf("packet %d comes %v late, of at most %v", a.packet.Context, by, d.ReorderBy)
		}
	}
	if slices.Min(seen) != 1 || slices.Max(seen) != 2 {
		t.Errorf("packets arrived %d to %d times", slices.Min(seen), slices.Max(seen))
	}
	near("overtaken", int64(overtaken), d.Reorder*0.875) // a packet that is less than 1 us late is not, nor one whose followers are later still
}

// Disorder is a function of the seed, and does not change losses.
func TestDisorderIsSeeded(t *testing.T) {
	d := Link{Reorder: 0.2, ReorderBy: 10 * units.Microsecond, Duplicate: 0.1}
	a, b, c := disturbedChain(t, 1, d, 500).numbers(), disturbedChain(t, 1, d, 500).numbers(), disturbedChain(t, 2, d, 500).numbers()
	if !slices.Equal(a, b) {
		t.Error("one seed, two runs")
	}
	if slices.Equal(a, c) {
		t.Error("two seeds, one run")
	}
}

// Disorder may be turned on and off if the network was built for that; packets in flight keep the
// setting with which they were sent.
func TestSetDisorder(t *testing.T) {
	w := chain(1)
	w.Disturbable = true
	n := newWorld(t, w.route())
	send := func() {
		for i := range 10 {
			n.send(n.queue.Last(), 0, 1, 1000, i)
		}
	}
	set := func(d Link) {
		t.Helper()
		d = like(w.Ports[2].Link, d)
		change := Change{Ports: []int{2}, Link: &d}
		if err := change.Make(n.queue.Last(), n.net); err != nil {
			t.Fatal(err)
		}
		if got := n.net.Links().State(2); got != d {
			t.Errorf("%+v was set, is %+v", d, got)
		}
		n.check()
	}
	want := func(duplicated, late, delivered int64) {
		t.Helper()
		n.run(units.Never)
		if k := n.net.Counters(); k.Duplicated != duplicated || k.Late != late || k.Delivered != delivered {
			t.Errorf("%d twice, %d late, %d delivered; want %d, %d, %d", k.Duplicated, k.Late, k.Delivered, duplicated, late, delivered)
		}
	}
	send()
	want(0, 0, 10)
	set(Link{Duplicate: 1})
	send()
	want(10, 0, 30)
	set(Link{Reorder: 1, ReorderBy: units.Microsecond})
	send()
	want(10, 10, 40)
	send()
	n.run(n.queue.Last() + 1100*units.Nanosecond) // some are on the link
	set(Link{})
	n.run(units.Never)
	if k := n.net.Counters(); k.Delivered != 50 {
		t.Errorf("%+v", k)
	}
	if err := n.change(n.queue.Last(), 2, func(l *Link) { l.Duplicate = 2 }); err == nil {
		t.Error("a share of 2")
	}
	plain := newWorld(t, chain(1).route())
	if err := plain.change(0, 2, func(l *Link) { l.Duplicate = 0.5 }); err == nil {
		t.Error("a network that was not made for it")
	}
}

// A link that goes down cuts off the packets that it would have delivered late.
func TestDownCutsLatePackets(t *testing.T) {
	w := chain(1)
	w.Ports[2].Link = like(w.Ports[2].Link, Link{Reorder: 1, ReorderBy: units.Millisecond})
	n := newWorld(t, w.route())
	for i := range 50 {
		n.send(0, 0, 1, 1000, i)
	}
	const at = 100 * units.Microsecond
	n.run(at)
	before := len(n.arrivals)
	n.net.Links().SetUp(at, false, 2, 3)
	n.check()
	n.net.Links().SetUp(at, true, 2, 3)
	n.run(units.Never)
	if k := n.net.Counters(); len(n.arrivals) != before || k.Cut != int64(50-before) || before == 50 {
		t.Errorf("%d packets before the link went down, %d after: %+v", before, len(n.arrivals), k)
	}
}

// The telemetry of a copy equals that of its packet, and is separate from it.
func TestCopiesHaveTelemetryOfTheirOwn(t *testing.T) {
	w := chain(2)
	w.Ports[2].Link = like(w.Ports[2].Link, Link{Duplicate: 1}) // between the two switches
	n := newWorld(t, w.route())
	var hops [][]Hop
	n.send(0, 0, 1, 1000, 1, func(p *Packet) { p.INT = true })
	n.net.sink = peekSink{n, func(p *Packet) { hops = append(hops, slices.Clone(n.net.Telemetry(p))) }}
	n.run(units.Never)
	if len(hops) != 2 || len(hops[0]) != 2 || hops[0][0] != hops[1][0] || hops[0][1].At == hops[1][1].At {
		t.Errorf("%+v", hops)
	}
}

// The header of a copy equals that of its packet, in the packet's own room and beyond it. A packet
// that is reused from the pool has none of its previous header.
func TestCopiesHaveTheHeader(t *testing.T) {
	w := chain(2)
	w.Ports[2].Link = like(w.Ports[2].Link, Link{Duplicate: 1})
	n := newWorld(t, w.route())
	var got []string
	n.net.sink = peekSink{n, func(p *Packet) { got = append(got, string(p.Header)) }}
	var want []string
	for k, text := range []string{"first", strings.Repeat("long ", HeaderRoom), "another", ""} {
		n.send(n.queue.Last(), 0, 1, 1000, k, func(p *Packet) { p.Header = append(p.Header, text...) })
		n.run(units.Never)
		want = append(want, text, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// peekSink calls look for each delivered packet, before the world takes the packet back.
type peekSink struct {
	*world
	look func(*Packet)
}

func (k peekSink) Deliver(now units.Time, p *Packet) {
	k.look(p)
	k.world.Deliver(now, p)
}

// Conservation holds after every event of a network whose links lose, delay and double packets,
// with links going down.
func TestConservationInDisorder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := drawTrims(rt, drawNetwork(rt))
		for i := range cfg.Ports {
			p := &cfg.Ports[i]
			p.Loss = rapid.SampledFrom([]float64{0, 0.1}).Draw(rt, "loss")
			p.Duplicate = rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(rt, "duplicate")
			if p.Reorder = rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(rt, "reorder"); p.Reorder > 0 {
				p.ReorderBy = units.Time(rapid.SampledFrom([]int{1, 300_000, 5_000_000}).Draw(rt, "by"))
			}
		}
		n := newWorld(t, cfg)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "traffic"), 0))
		now := units.Time(0)
		for i := range 60 {
			n.run(now)
			n.send(now, HostID(rng.IntN(cfg.Hosts)), HostID(rng.IntN(cfg.Hosts)), units.Bytes(64+rng.IntN(1437)), i)
			now += units.Time(rng.IntN(3)) * units.Time(rng.IntN(300_000))
			if rng.IntN(10) == 0 {
				n.net.Links().SetUp(now, rng.IntN(2) == 0, rng.IntN(len(cfg.Ports)))
			}
		}
		n.run(units.Never)
		if k := n.net.Counters(); k.Injected+k.Duplicated != k.Delivered+k.Dropped+k.Lost+k.Cut {
			rt.Fatalf("%+v", k)
		}
	})
}

func TestDisorderIsChecked(t *testing.T) {
	for _, d := range []Link{{Reorder: 0.1}, {Reorder: -1, ReorderBy: 1}, {Reorder: 2, ReorderBy: 1}, {Duplicate: 1.5}, {Duplicate: math.NaN()}, {ReorderBy: -1}} {
		w := chain(1)
		w.Ports[2].Link = like(w.Ports[2].Link, d)
		cfg := w.route()
		if err := cfg.check(); err == nil {
			t.Errorf("%+v passes", d)
		}
	}
	w := chain(1)
	w.Ports[0].Link = like(w.Ports[0].Link, Link{Duplicate: 0.5})
	w.Ports[0].PFC[1] = PFCConfig{On: true, Xoff: 10_000, Xon: 5000, Headroom: 100_000}
	cfg := w.route()
	if err := cfg.check(); err == nil {
		t.Error("PFC over a line that doubles packets passes")
	}
}

func TestDisorderAsJSON(t *testing.T) {
	w := chain(1)
	w.Ports[2].Link = like(w.Ports[2].Link, Link{Reorder: 0.25, ReorderBy: 7, Duplicate: 0.5})
	var back PortConfig
	text, err := json.Marshal(w.Ports[2])
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || !reflect.DeepEqual(back, w.Ports[2]) {
		t.Errorf("%s: %+v, %v", text, back, err)
	}
}

// Every packet takes longer by an exponential time: its mean and its median are right, and it
// counts as neither late nor lost.
func TestJitterIsExponential(t *testing.T) {
	const packets, mean = 20_000, 300 * units.Nanosecond
	n := disturbedChain(t, 5, Link{Jitter: mean}, packets)
	if k := n.net.Counters(); k.Delivered != packets || k.Late != 0 || k.Duplicated != 0 {
		t.Errorf("%+v", k)
	}
	var sum units.Time
	var all []units.Time
	for _, a := range n.arrivals {
		by := a.at - units.Time(a.packet.Context)*units.Microsecond - 2*units.Microsecond - 2*80*units.Nanosecond
		if by < 1 {
			t.Fatalf("packet %d comes %v early", a.packet.Context, -by)
		}
		sum += by
		all = append(all, by)
	}
	slices.Sort(all)
	near := func(what string, got, want units.Time) {
		t.Helper()
		if d := got - want; max(d, -d) > want/25 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("mean", sum/packets, mean)
	near("median", all[packets/2], 208*units.Nanosecond) // ln 2 of the mean
}
