package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weft/eventqueue"
	"weft/internal/fuzztest"
	"weft/units"
)

// offered is a packet of a test's traffic.
type offered struct {
	at       units.Time
	src, dst HostID
	size     units.Bytes
	class    uint8
	keep     uint8
	int      bool
}

// drawTraffic returns packets in order of time.
func drawTraffic(hosts int, seed uint64) (all []offered) {
	rng := rand.New(rand.NewPCG(seed, 0))
	now := units.Time(0)
	for range 200 {
		now += units.Time(rng.IntN(3)) * units.Time(rng.IntN(300_000))
		o := offered{at: now, src: HostID(rng.IntN(hosts)), dst: HostID(rng.IntN(hosts)), size: units.Bytes(64 + rng.IntN(1437)),
			class: uint8(rng.IntN(2)), int: rng.IntN(2) == 0}
		if o.keep = o.class * uint8(rng.IntN(200)); o.src != o.dst {
			all = append(all, o)
		}
	}
	return all
}

// landed has the properties of an arrived packet that are compared.
type landed struct {
	At   units.Time
	Text string
}

// partWorld is a network in parts, or in one piece, that traffic runs over.
type partWorld struct {
	t      testing.TB
	queues []*eventqueue.Queue
	nets   []*Network
	parts  []*Part // nil: one piece
	owner  []int32
	wires  [][][]byte // by sender and receiver
	landed []landed
	late   int
}

func (w *partWorld) Idle(units.Time, HostID) {}

func (w *partWorld) Deliver(now units.Time, p *Packet) {
	n := w.nets[w.owner[p.Dst]]
	cut, last := p.Trimmed()
	w.landed = append(w.landed, landed{now, fmt.Sprint(p.Context, p.Src, p.Dst, p.Size, p.Class, p.ECN, p.Hops, p.Queued, p.SentAt,
		cut, last, n.Telemetry(p), string(p.Header))})
	n.Put(p)
}

// newPartWorld returns the network in parts by owner, or in one piece if there is only one.
func newPartWorld(t testing.TB, cfg Config, owner []int32) *partWorld {
	t.Helper()
	w := &partWorld{t: t, owner: owner}
	count := int(slices.Max(owner)) + 1
	for k := range count {
		w.queues = append(w.queues, eventqueue.New(0))
		var n *Network
		var err error
		if count == 1 {
			n, err = New(cfg, w.queues[k], w)
		} else {
			var p *Part
			if p, err = NewPart(cfg, owner, k, w.queues[k], w); err == nil {
				n, w.parts = p.Network(), append(w.parts, p)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		w.nets = append(w.nets, n)
		w.wires = append(w.wires, make([][]byte, count))
	}
	return w
}

// take imports what others have sent to part k.
func (w *partWorld) take(k int) {
	for from := range w.parts {
		left, err := w.parts[k].Import(from, w.wires[from][k], 100, func(_ *Packet, at units.Time) error {
			if at <= w.parts[k].Looked() {
				w.late++
			}
			return nil
		})
		if err != nil || len(left) > 0 {
			w.t.Fatalf("%d bytes left: %v", len(left), err)
		}
		w.wires[from][k] = w.wires[from][k][:0]
	}
}

// work brings part k up to an instant.
func (w *partWorld) work(k int, until units.Time) {
	w.take(k)
	for {
		id, at, ok := w.queues[k].PopUntil(until)
		if !ok {
			break
		}
		w.nets[k].Fire(at, id)
	}
	if w.parts != nil {
		w.parts[k].Flush(until)
		for to := range w.parts {
			w.wires[k][to] = w.parts[k].Export(to, w.wires[k][to], nil)
		}
	}
}

// next returns the earliest instant at which something happens in a part or between two.
func (w *partWorld) next() units.Time {
	next := units.Never
	for k, q := range w.queues {
		if _, at, ok := q.Next(); ok {
			next = min(next, at)
		}
		if w.parts != nil {
			next = min(next, w.parts[k].Flush(0))
		}
		for _, b := range w.wires[k] {
			if len(b) > 0 {
				return 0
			}
		}
	}
	return next
}

func (w *partWorld) check() {
	w.t.Helper()
	for k, n := range w.nets {
		if err := n.CheckConservation(); err != nil {
			w.t.Fatalf("part %d: %v", k, err)
		}
	}
}

// run runs the traffic and the changes, in steps no longer than the lookahead, and returns what has
// arrived in order.
func (w *partWorld) run(traffic []offered, changes []Change, step units.Time) []landed {
	w.t.Helper()
	now := units.Time(0)
	to := func(at units.Time) {
		for next := w.next(); now < at && next < units.Never; next = w.next() {
			now = min(at, max(now, next-1)+step) // nothing happens before next
			for k := range w.nets {
				w.work(k, now)
			}
		}
		now = max(now, min(at, units.Second))
		w.check()
	}
	for i, o := range traffic {
		for len(changes) > 0 && changes[0].At <= o.at {
			to(changes[0].At)
			for _, n := range w.nets {
				if err := changes[0].Make(now, n); err != nil {
					w.t.Fatal(err)
				}
			}
			changes = changes[1:]
		}
		to(o.at)
		n := w.nets[w.owner[o.src]]
		p := n.Get()
		p.Src, p.Dst, p.Size, p.Class, p.ECN, p.Keep, p.INT = o.src, o.dst, o.size, o.class, ECT0, o.keep, o.int
		p.FlowHash, p.Context = FlowHash(o.src, o.dst, uint16(i), 4793), int64(i)
		p.Header = fmt.Append(p.Header, "packet ", i)
		n.Inject(now, p)
	}
	to(units.Never)
	slices.SortFunc(w.landed, func(a, b landed) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Text, b.Text)) })
	return w.landed
}

// counters returns the sums over all parts.
func (w *partWorld) counters() (total Counters, ports []PortCounters) {
	for k, n := range w.nets {
		c := n.Counters()
		total.Add(&c)
		for i := range n.Ports() {
			c := n.PortCounters(i)
			if c.Paused = [Classes]units.Time{}; k == 0 { // up to each part's last event
				ports = append(ports, c)
				continue
			}
			ports[i].Add(&c)
		}
	}
	return total, ports
}

// drawParts returns a part for each node: switches at random, hosts with their switch; and the
// shortest delay between two parts.
func drawParts(t *rapid.T, cfg *Config) (owner []int32, step units.Time) {
	owner = make([]int32, cfg.Hosts+len(cfg.Switches))
	seen := map[int32]int32{}
	for s := range cfg.Switches {
		k := int32(rapid.IntRange(0, 2).Draw(t, "part"))
		if _, ok := seen[k]; !ok {
			seen[k] = int32(len(seen))
		}
		owner[cfg.Hosts+s] = seen[k]
	}
	step = units.Millisecond
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; cfg.isHost(p.From) {
			owner[p.From] = owner[p.To]
		}
	}
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; owner[p.From] != owner[p.To] {
			p.Delay = max(p.Delay, 80_000)
			step = min(step, p.Delay)
		}
	}
	return owner, step
}

// Networks in parts that exchange bytes do what the network in one piece does, with losses, marks,
// telemetry, trimmed packets, pauses, packets that links deliver late or twice, and links that
// change and go down.
func TestPartsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		wired := drawUpDown(rt)
		pfc := rapid.Bool().Draw(rt, "pfc")
		owner, step := drawParts(rt, &wired.Config)
		if slices.Max(owner) == 0 {
			rt.Skip("one part")
		}
		for i := range wired.Ports {
			wired.Ports[i].ECN = ECNConfig{On: true, Kmin: 1000, Kmax: 8000, Pmax: 0.7, Ingress: i%3 == 0}
			if !pfc {
				wired.Ports[i].Link = like(wired.Ports[i].Link, rapid.SampledFrom([]Link{{}, {Duplicate: 0.2},
					{Reorder: 0.2, ReorderBy: 5 * units.Microsecond, Duplicate: 0.1, Jitter: 200 * units.Nanosecond}}).Draw(rt, "disorder"))
			}
			wired.Ports[i].Loss = 0.02
		}
		if pfc {
			drawPFC(rt, wired)
		}
		cfg := wired.route()
		var changes []Change
		if !pfc {
			for i := range cfg.Ports {
				cfg.Ports[i].Buffer = 9000
			}
			cfg = drawTrims(rt, cfg)
			up, down := true, false
			at := units.Time(rapid.IntRange(1, 20_000_000).Draw(rt, "down"))
			port := rapid.IntRange(0, len(cfg.Ports)/2-1).Draw(rt, "port") * 2
			ports := []int{port, port + 1}
			changes = []Change{
				{At: at, Ports: ports, Up: &down},
				{At: at + units.Time(rapid.IntRange(1, 5_000_000).Draw(rt, "for")), Ports: ports, Up: &up},
			}
			changes = append(changes, Change{At: changes[1].At + 1_000_000, Ports: ports,
				Link: &Link{Rate: 7 * units.Gbps, Delay: step, Loss: 0.1}})
		}
		traffic := drawTraffic(cfg.Hosts, rapid.Uint64().Draw(rt, "traffic"))
		whole := newPartWorld(t, cfg, make([]int32, len(owner)))
		want := whole.run(traffic, changes, units.Millisecond)
		apart := newPartWorld(t, cfg, owner)
		got := apart.run(traffic, changes, step)
		if !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					rt.Fatalf("arrival %d: %+v, in one piece %+v", i, got[i], want[i])
				}
			}
			rt.Fatalf("%d arrivals, in one piece %d", len(got), len(want))
		}
		gotTotal, gotPorts := apart.counters()
		wantTotal, wantPorts := whole.counters()
		if gotTotal != wantTotal {
			rt.Fatalf("%+v\nin one piece %+v", gotTotal, wantTotal)
		}
		for i := range gotPorts {
			if !reflect.DeepEqual(gotPorts[i], wantPorts[i]) {
				rt.Fatalf("port %d: %+v\nin one piece %+v", i, gotPorts[i], wantPorts[i])
			}
		}
		if apart.late > 0 {
			rt.Fatalf("%d are late", apart.late)
		}
	})
}

// Two switches in two parts, with a host each.
func twoParts(t testing.TB) *partWorld {
	return newPartWorld(t, chain(2).route(), []int32{0, 1, 0, 1})
}

// What arrives after its instant is late, is delivered at once, and stays in order.
func TestLateCrossings(t *testing.T) {
	w := twoParts(t)
	for i := range 3 {
		p := w.nets[0].Get()
		p.Src, p.Dst, p.Size, p.Class = 0, 1, 1000, 1
		p.Context = int64(i)
		w.nets[0].Inject(0, p)
	}
	p := w.nets[1].Get()
	p.Src, p.Dst, p.Size, p.Class = 1, 0, 1000, 1
	w.nets[1].Inject(5*units.Microsecond, p)
	w.work(1, 10*units.Microsecond) // it is ahead of the other
	w.work(0, 10*units.Microsecond)
	w.work(1, 20*units.Microsecond)
	if w.late != 3 || len(w.landed) != 4 {
		t.Fatalf("%d late, %d arrived", w.late, len(w.landed))
	}
	for i := range 3 {
		if l := w.landed[1+i]; l.Text[:1] != fmt.Sprint(i) || i > 0 && l.At < w.landed[i].At {
			t.Errorf("%d: %+v", i, w.landed)
		}
	}
}

// export returns the bytes of a packet on its way from part 0 to part 1.
func export(t testing.TB, w *partWorld) []byte {
	p := w.nets[0].Get()
	p.Src, p.Dst, p.Size, p.Class = 0, 1, 1000, 1
	p.Header = append(p.Header, "some header"...)
	w.nets[0].Inject(0, p)
	w.work(0, units.Microsecond+200*units.Nanosecond)
	if len(w.wires[0][1]) == 0 {
		t.Fatal("nothing was exported")
	}
	return w.wires[0][1]
}

// Records that no part writes are refused, and leave the network as it was.
func TestForgedRecords(t *testing.T) {
	good := export(t, twoParts(t))
	fields := recordHead
	for name, forge := range map[string]func(b []byte){
		"a kind":           func(b []byte) { b[4] = 9 },
		"a length":         func(b []byte) { b[0] = 1 },
		"no length":        func(b []byte) { clear(b[:4]) },
		"a short one":      func(b []byte) { b[3] = 20 },
		"a port":           func(b []byte) { b[fields] = 0xff },
		"a port not cut":   func(b []byte) { clear(b[fields : fields+4]) },
		"an instant":       func(b []byte) { b[fields+4] = 0xff },
		"no size":          func(b []byte) { clear(b[fields+16 : fields+20]) },
		"a size":           func(b []byte) { b[fields+16] = 0xff },
		"a sender":         func(b []byte) { b[fields+28] = 0x80 },
		"a destination":    func(b []byte) { b[fields+35] = 77 },
		"a class":          func(b []byte) { b[fields+61] = 2 },
		"hops":             func(b []byte) { b[fields+62] = 0xff },
		"flags":            func(b []byte) { b[fields+63] = 0xff },
		"telemetry":        func(b []byte) { b[fields+70] = 200 },
		"bits":             func(b []byte) { b[fields+69] = 0xff },
		"a long header":    func(b []byte) {},
		"from itself":      func(b []byte) {},
		"a pause, not PFC": func(b []byte) { b[4] = recordPause },
	} {
		w := twoParts(t)
		from, room := 0, 100
		switch name {
		case "a long header":
			room = 5
		case "from itself":
			from = 1
		}
		b := slices.Clone(good)
		forge(b)
		_, err := w.parts[1].Import(from, b, room, func(*Packet, units.Time) error { return nil })
		if !errors.Is(err, errRecord) {
			t.Errorf("%s: %v", name, err)
		}
		w.work(1, units.Millisecond)
		if in, _ := w.parts[1].Crossed(); in.Packets > 0 || len(w.landed) > 0 {
			t.Errorf("%s: was taken", name)
		}
	}
}

// A record may come in pieces.
func TestImportInPieces(t *testing.T) {
	good := export(t, twoParts(t))
	w := twoParts(t)
	var b []byte
	for _, c := range good {
		var err error
		if b, err = w.parts[1].Import(0, append(b, c), 100, func(*Packet, units.Time) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if w.work(1, units.Millisecond); len(w.landed) != 1 {
		t.Errorf("%d arrived", len(w.landed))
	}
}

// Whatever another part sends, it does not crash this one nor make it forget a packet.
func FuzzImport(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(export(f, twoParts(f)))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		w := twoParts(t)
		_, _ = w.parts[1].Import(0, b, 100, func(*Packet, units.Time) error { return nil })
		w.work(1, units.Millisecond)
	})
}
