package fabric

import (
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/eventqueue"
	"weft/units"
)

const (
	ns = units.Nanosecond
	us = units.Microsecond
)

// A packet alone arrives after the sum of every link's delay and its time on every link: store and
// forward.
func TestOnePacketTakesTheClosedForm(t *testing.T) {
	rates := []units.Bandwidth{100 * units.Gbps, 40 * units.Gbps, 400 * units.Gbps, 25 * units.Gbps, 3 * units.Gbps, 7 * units.Mbps}
	for switches := 0; switches <= 5; switches++ {
		for _, size := range []units.Bytes{64, 110, 4206, 9000} {
			w := chain(switches)
			at := 12345 * ns
			want := at
			for i := range w.Ports {
				w.Ports[i].Rate = rates[i/2]
				w.Ports[i].Delay = units.Time(i/2+1) * 111 * ns
				if i%2 == 0 {
					want += rates[i/2].TransmitTime(size) + w.Ports[i].Delay
				}
			}
			n := newWorld(t, w.route())
			n.send(at, 0, 1, size, 7)
			n.run(units.Never)
			if len(n.arrivals) != 1 {
				t.Fatalf("%d switches: %d arrivals", switches, len(n.arrivals))
			}
			a := n.arrivals[0]
			if a.at != want || a.packet.SentAt != at || a.packet.Queued != 0 || int(a.packet.Hops) != switches {
				t.Errorf("%d switches, %d bytes: at %d, sent %d, queued %d, %d hops; want at %d", switches, size,
					a.at, a.packet.SentAt, a.packet.Queued, a.packet.Hops, want)
			}
		}
	}
}

// One event per hop, and one for the NIC.
func TestOneEventPerHop(t *testing.T) {
	for switches := 1; switches <= 5; switches++ {
		n := newWorld(t, chain(switches).route())
		events := 0
		n.onEvent = func(units.Time) { events++ }
		n.send(0, 0, 1, 1000, 1)
		n.run(units.Never)
		if want := switches + 1 + 1; events != want {
			t.Errorf("%d switches: %d events, want %d", switches, events, want)
		}
	}
	// Also where packets wait: 10 from each of 4 senders to one receiver.
	n := newWorld(t, funnel(4, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: units.MB}).route())
	events := 0
	n.onEvent = func(units.Time) { events++ }
	for h := HostID(1); h <= 4; h++ {
		for i := range 10 {
			n.send(0, h, 0, 1000, i)
		}
	}
	n.run(units.Never)
	if want := 4 * 10 * 3; events != want || len(n.arrivals) != 40 {
		t.Errorf("%d events for %d packets, want %d for 40", events, len(n.arrivals), want)
	}
}

func TestBackToBackPacketsFollowAtLineRate(t *testing.T) {
	n := newWorld(t, chain(3).route())
	for i := range 20 {
		n.send(0, 0, 1, 1250, i) // 100 ns at 100 Gb/s
	}
	if n.net.NICs.Free(0) || n.net.NICs.Queued(0) != 19*1250 {
		t.Fatalf("free %t, %d bytes wait", n.net.NICs.Free(0), n.net.NICs.Queued(0))
	}
	n.run(units.Never)
	for i, a := range n.arrivals {
		if want := 4*us + 4*100*ns + units.Time(i)*100*ns; a.at != want || int(a.packet.Context) != i {
			t.Errorf("packet %d at %d, want %d at %d", a.packet.Context, a.at, i, want)
		}
		if a.packet.SentAt != units.Time(i)*100*ns || a.packet.Queued != 0 {
			t.Errorf("packet %d sent %d, queued %d", i, a.packet.SentAt, a.packet.Queued)
		}
	}
	if want := []idling{{2000 * ns, 0}}; !slices.Equal(n.idles, want) {
		t.Errorf("idle %v, want %v", n.idles, want)
	}
}

// A host that is asked whenever its NIC is idle keeps the link full, and nothing ever waits in the
// NIC.
func TestPullKeepsTheLineFull(t *testing.T) {
	n := newWorld(t, chain(1).route())
	next := 1
	n.onIdle = func(now units.Time, h HostID) {
		if next < 1000 {
			if !n.net.NICs.Free(h) {
				t.Fatal("idle but not free")
			}
			n.send(now, h, 1, 1250, next)
			next++
		}
	}
	n.send(0, 0, 1, 1250, 0)
	n.run(units.Never)
	last := n.arrivals[len(n.arrivals)-1]
	if want := 999*100*ns + 2*(1*us+100*ns); len(n.arrivals) != 1000 || last.at != want || last.packet.SentAt != 999*100*ns {
		t.Errorf("%d arrivals, last at %d, want 1000 and %d", len(n.arrivals), last.at, want)
	}
}

// Rates at which a packet takes no whole number of picoseconds are exact in the long run, on every
// link.
func TestOddRatesDoNotDrift(t *testing.T) {
	const packets, size = 20_000, 1501
	for _, rate := range []units.Bandwidth{3 * units.Gbps, 7*units.Gbps + 1, 99_999_999_977} {
		w := chain(2)
		for i := range w.Ports {
			w.Ports[i].Rate = rate
		}
		n := newWorld(t, w.route())
		sent := 0
		n.onIdle = func(now units.Time, h HostID) {
			if sent++; sent < packets {
				n.send(now, h, 1, size, sent)
			}
		}
		n.onEvent = func(units.Time) { n.net.Sample(n.queue.Last(), func(int, units.Bytes) {}) }
		n.send(0, 0, 1, size, 0)
		for {
			id, at, ok := n.queue.Pop()
			if !ok {
				break
			}
			n.net.Fire(at, id)
		}
		hi, lo := bits.Mul64(8*size*packets, uint64(units.Second))
		exact, _ := bits.Div64(hi, lo, uint64(rate))
		if got := n.idles[len(n.idles)-1].at; got != units.Time(exact) {
			t.Errorf("%d b/s: the NIC was done at %d, want %d", rate, got, exact)
		}
		// The links after it add their delay and one packet each, within a picosecond each.
		want := units.Time(exact) + 3*us + 2*rate.TransmitTime(size)
		if got := n.arrivals[packets-1].at; got < want-2 || got > want+4 {
			t.Errorf("%d b/s: last arrival at %d, want about %d", rate, got, want)
		}
	}
}

// burst sends ten packets of 1000 bytes through a funnel whose last link is ten times slower:
// number 0 goes straight onto the link, and before it has left the nine others wait.
func burst(t *testing.T, last PortConfig) *world {
	last.Rate = 10 * units.Gbps
	if last.Buffer == 0 {
		last.Buffer = units.MB
	}
	n := newWorld(t, funnel(1, last).route())
	for i := range 10 {
		n.send(0, 1, 0, 1000, i)
	}
	n.run(units.Never)
	return n
}

// At egress a packet is marked by what it leaves behind: number i leaves 9-i behind. At ingress by
// what it finds: number i finds i-1. "q > Kmax: mark; q <= Kmin: do not".
func TestMarkingOnset(t *testing.T) {
	for _, c := range []struct {
		k       units.Bytes
		ingress bool
		want    []int
	}{
		{6000, false, []int{1, 2}}, // leave 8000 and 7000
		{5999, false, []int{1, 2, 3}},
		{6001, false, []int{1, 2}},
		{0, false, []int{1, 2, 3, 4, 5, 6, 7, 8}},
		{8000, false, nil},
		{7999, false, []int{1}},
		{6000, true, []int{8, 9}}, // find 7000 and 8000
		{5999, true, []int{7, 8, 9}},
		{0, true, []int{2, 3, 4, 5, 6, 7, 8, 9}},
		{8000, true, nil},
	} {
		n := burst(t, PortConfig{ECN: ECNConfig{On: true, Kmin: c.k, Kmax: c.k, Pmax: 1, Ingress: c.ingress}})
		if got := n.marked(); !slices.Equal(got, c.want) {
			t.Errorf("K %d, ingress %t: marked %v, want %v", c.k, c.ingress, got, c.want)
		}
		if got := n.net.Counters().Marks; got != int64(len(c.want)) || n.net.PortCounters(0).Marks != got {
			t.Errorf("counted %d marks, want %d", got, len(c.want))
		}
	}
	if n := burst(t, PortConfig{}); n.marked() != nil {
		t.Errorf("marked %v without ECN", n.marked())
	}
}

func TestOnlyCapablePacketsAreMarked(t *testing.T) {
	n := newWorld(t, funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: units.MB, ECN: ECNConfig{On: true}}).route())
	for i := range 10 {
		n.send(0, 1, 0, 1000, i, func(p *Packet) { p.ECN = []ECN{NotECT, ECT0, ECT1, CE}[i%4] })
	}
	n.run(units.Never)
	var codes []ECN
	for _, a := range n.arrivals {
		codes = append(codes, a.packet.ECN)
	}
	// Number 9, the last, leaves nothing behind; number 0 went straight onto the link.
	if want := []ECN{NotECT, CE, CE, CE, NotECT, CE, CE, CE, NotECT, ECT0}; !slices.Equal(codes, want) {
		t.Errorf("codepoints %v, want %v", codes, want)
	}
}

// "Kmin < q <= Kmax: mark with p = Pmax (q - Kmin)/(Kmax - Kmin)".
func TestMarkingProbability(t *testing.T) {
	w := funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: units.MB,
		ECN: ECNConfig{On: true, Kmin: 10_000, Kmax: 50_000, Pmax: 0.8}})
	n := newWorld(t, w.route())
	o := &n.net.ports[0]
	const tries = 40_000
	for _, c := range []struct {
		q    units.Bytes
		want float64
	}{{10_000, 0}, {10_001, 0.8 / 40_000}, {20_000, 0.2}, {30_000, 0.4}, {45_000, 0.7}, {50_000, 0.8}, {50_001, 1}} {
		marks := 0
		for range tries {
			e := Packet{ECN: ECT0, Class: 1}
			o.classes[1].bytes = c.q
			if o.mark(n.net, &e); e.ECN == CE {
				marks++
			}
		}
		if got := float64(marks) / tries; got < c.want-0.01 || got > c.want+0.01 { // 4 standard deviations
			t.Errorf("q %d: marked %.4f, want %.4f", c.q, got, c.want)
		}
	}
}

func TestDropTail(t *testing.T) {
	for _, c := range []struct {
		buffer units.Bytes
		waits  int
	}{{9000, 9}, {8999, 8}, {5000, 5}, {4999, 4}, {1000, 1}, {999, 0}} {
		n := burst(t, PortConfig{Buffer: c.buffer})
		var want []int
		for i := range 1 + c.waits {
			want = append(want, i)
		}
		if got := n.numbers(); !slices.Equal(got, want) {
			t.Errorf("buffer %d: %v arrived, want %v", c.buffer, got, want)
		}
		k, p := n.net.Counters(), n.net.PortCounters(0)
		drops := int64(9 - c.waits)
		if k.Dropped != drops || p.Drops != drops || p.DropBytes != units.Bytes(drops)*1000 || k.DroppedBytes != p.DropBytes {
			t.Errorf("buffer %d: dropped %d, %+v, want %d", c.buffer, k.Dropped, p, drops)
		}
		if full := units.Bytes(c.waits) * 1000; k.MaxQueue != full || p.MaxQueue != full {
			t.Errorf("buffer %d: longest queue %d, want %d", c.buffer, k.MaxQueue, full)
		}
		if k.Injected != 10 || k.Delivered != 10-drops || p.Packets != 10-drops || p.Bytes != units.Bytes(10-drops)*1000 {
			t.Errorf("buffer %d: %+v, %+v", c.buffer, k, p)
		}
	}
}

// Class 0 is served before class 1, but does not interrupt a packet on the link.
func TestStrictPriority(t *testing.T) {
	n := newWorld(t, funnel(2, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: units.MB}).route())
	for i := range 5 {
		n.send(0, 1, 0, 1000, i)
	}
	n.run(1*us + 500*ns)
	for i := range 3 {
		n.send(1*us+500*ns, 2, 0, 1000, 100+i, func(p *Packet) { p.Class = 0 }) // at the switch from 2.58 µs on
	}
	n.run(units.Never)
	// The link takes 0 at 1.08 µs, 1 at 1.88 µs, and at 2.68 µs finds the first two of class 0.
	if got, want := n.numbers(), []int{0, 1, 100, 101, 102, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("arrived %v, want %v", got, want)
	}
	for _, a := range n.arrivals {
		if p := a.packet; a.at != p.SentAt+1*us+80*ns+p.Queued+800*ns {
			t.Errorf("%d: sent %d, arrived %d, queued %d", p.Context, p.SentAt, a.at, p.Queued)
		}
	}
}

func TestSampleSeesWhatWaits(t *testing.T) {
	n := newWorld(t, funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps, Delay: 50 * us}, Buffer: units.MB}).route())
	for i := range 10 {
		n.send(0, 1, 0, 1000, i)
	}
	n.run(3 * us)
	// On the link from 1.08 µs, one more each 0.8 µs; the far end is too far for an event to have
	// told.
	for _, c := range []struct {
		at   units.Time
		want units.Bytes
	}{{3 * us, 7000}, {3480*ns - 1, 7000}, {3480 * ns, 6000}, {8279 * ns, 1000}, {8280 * ns, 0}} {
		var got units.Bytes
		n.net.Sample(c.at, func(port int, queued units.Bytes) {
			if port != 0 {
				t.Errorf("port %d has a queue", port)
			}
			got += queued
		})
		if got != c.want {
			t.Errorf("at %d: %d bytes wait, want %d", c.at, got, c.want)
		}
	}
	n.run(units.Never)
	if len(n.arrivals) != 10 {
		t.Errorf("%d arrived", len(n.arrivals))
	}
}

// What cannot be forwarded is counted: cut off without a route, or at a host that is not meant;
// dropped on a route that goes round.
func TestUnroutablePacketsAreCounted(t *testing.T) {
	noRoute := chain(2).route()
	noRoute.Switches[1].Route[1] = -1
	circle := chain(2).route()
	circle.Switches[1].Route[1] = circle.Switches[1].Route[0]
	stray := chain(2).route()
	stray.Switches[0].Route[1] = stray.Switches[0].Route[0]
	for want, cfg := range []Config{circle, noRoute, stray} {
		n := newWorld(t, cfg)
		n.send(0, 0, 1, 1000, 0)
		n.run(units.Never)
		if k := n.net.Counters(); k.Dropped+k.Cut != 1 || (k.Cut == 1) != (want > 0) || k.Delivered != 0 {
			t.Errorf("%+v", k)
		}
	}
}

func TestInjectRefusesNonsense(t *testing.T) {
	for _, change := range []func(*Packet){
		func(p *Packet) { p.Size = 0 },
		func(p *Packet) { p.Class = 2 },
		func(p *Packet) { p.Src = 2 },
		func(p *Packet) { p.Dst = -1 },
	} {
		func() {
			n := newWorld(t, chain(1).route())
			p := n.net.Get()
			p.Dst, p.Size = 1, 100
			change(p)
			defer func() {
				if s, _ := recover().(string); !strings.HasPrefix(s, "fabric: injected ") {
					t.Errorf("panic %q", s)
				}
			}()
			n.net.Inject(0, p)
		}()
	}
}

func TestPoolGivesCleanPackets(t *testing.T) {
	n := newWorld(t, chain(1).route())
	p := n.net.Get()
	if cap(p.Header) < HeaderRoom {
		t.Fatalf("room for %d header bytes", cap(p.Header))
	}
	p.Header = append(p.Header, make([]byte, 5000)...)
	p.Src, p.Dst, p.Size, p.Class, p.ECN, p.Hops, p.Queued, p.SentAt, p.FlowHash, p.Context = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
	n.net.Put(p)
	again := n.net.Get()
	if again != p || len(again.Header) != 0 || cap(again.Header) < 5000 {
		t.Fatalf("header of %d bytes with room for %d", len(again.Header), cap(again.Header))
	}
	clean := *again
	clean.Header, clean.number = nil, 0
	if clean.room = [HeaderRoom]byte{}; !reflect.DeepEqual(clean, Packet{}) {
		t.Errorf("not clean: %+v", clean)
	}
}

// The entities of others in the same event queue are not the network's.
func TestOwns(t *testing.T) {
	q := eventqueue.New(5)
	n, err := New(chain(1).route(), q, &world{})
	if err != nil {
		t.Fatal(err)
	}
	after := q.Grow(1)
	if n.Ports() != 4 || n.Owns(4) || !n.Owns(5) || !n.Owns(5+4+2-1) || n.Owns(after) {
		t.Error("owns the wrong entities")
	}
}

// A packet is three cache lines, a port four: what a hop fetches is counted in them.
func TestSizesAreWholeLines(t *testing.T) {
	for _, c := range []struct {
		value any
		want  uintptr
	}{{Packet{}, 192}, {port{}, 256}} {
		if got := reflect.TypeOf(c.value).Size(); got != c.want {
			t.Errorf("%T is %d bytes, want %d", c.value, got, c.want)
		}
	}
}
