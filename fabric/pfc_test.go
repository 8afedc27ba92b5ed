package fabric

import (
	"slices"
	"strings"
	"testing"

	"weft/units"
)

// protect gives every port that leads to a switch PFC in class 1.
func (w *wiring) protect(c PFCConfig) *wiring {
	c.On = true
	for i := range w.Ports {
		if int(w.Ports[i].To) >= w.Hosts {
			w.Ports[i].PFC[1] = c
		}
	}
	return w
}

// flood has every source send count packets of size bytes to dst, numbered from 0, each pulled when
// the NIC is free.
func (w *world) flood(dst HostID, size units.Bytes, count int, sources ...HostID) {
	sent := make(map[HostID]int)
	pull := func(now units.Time, h HostID) {
		if w.net.NICs.Free(h) && slices.Contains(sources, h) && sent[h] < count {
			number := sent[h]
			sent[h]++
			w.send(now, h, dst, size, number)
		}
	}
	w.onIdle = pull
	for _, h := range sources {
		pull(0, h)
	}
}

// pauses returns when the host's NIC was told to pause class 1 and when to go on, in turns, by
// looking after every event.
func (w *world) pauses(h HostID) *[]units.Time {
	var at []units.Time
	paused := false
	w.onEvent = func(now units.Time) {
		if p := w.net.NICs.busy[h]>>1&1 != 0; p != paused {
			paused = p
			at = append(at, now)
		}
	}
	return &at
}

// One sender at 100 Gb/s, one link of 10 Gb/s behind the switch, packets of 1250 bytes: 0.1 µs and
// 1 µs. Packet i reaches the switch at 1.1 + 0.1·i µs; the link takes packet 0 at once and packet j
// at 1.1 + j µs.
func TestPauseClosedForm(t *testing.T) {
	w := funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: mB})
	w.protect(PFCConfig{Xoff: 5000, Xon: 2500, Headroom: 27_500})
	n := newWorld(t, w.route())
	n.flood(0, 1250, 60, 1)
	at := n.pauses(1)
	n.run(20 * us)
	// Packets 1 to 4 are 5000 bytes, at 1.5 µs. The pause reaches the NIC at 2.5 µs, where packet
	// 24 has left and packet 25 begins.
	if got := n.net.Counters(); got.Injected != 26 || got.Pauses != 1 || got.Dropped != 0 {
		t.Fatalf("%+v", got)
	}
	if n.net.NICs.Free(1) || n.net.NICs.FreeFor(1, 1) || !n.net.NICs.FreeFor(1, 0) {
		t.Error("the NIC is free for class 1, or not for class 0")
	}
	n.run(units.Never)
	// Packet 23 leaves 2 packets behind: resumed at 24.1 µs, at the NIC at 25.1 µs. The next
	// reaches the switch at 26.2 µs: packet 25 is on the link until 27.1 µs. It never stands idle.
	if first := (*at)[:2]; !slices.Equal(first, []units.Time{2500 * ns, 25_100 * ns}) {
		t.Errorf("paused and resumed at %v", first)
	}
	for i, a := range n.arrivals {
		if want := 1100*ns + units.Time(i+1)*us; a.at != want {
			t.Fatalf("packet %d at %d, want %d", i, a.at, want)
		}
	}
	if a := n.arrivals[26]; a.packet.SentAt != 25_100*ns {
		t.Errorf("packet 26 was sent at %d", a.packet.SentAt)
	}
	k := n.net.PortCounters(2)
	if len(n.arrivals) != 60 || k.Pauses[1] != int64(len(*at)/2) || k.Pauses[0] != 0 {
		t.Errorf("%d arrivals, %+v, paused %v", len(n.arrivals), k, *at)
	}
	var paused units.Time
	for i := 0; i+1 < len(*at); i += 2 {
		paused += (*at)[i+1] - (*at)[i]
	}
	if k.Paused[1] != paused {
		t.Errorf("paused for %d, counted %d", paused, k.Paused[1])
	}
}

// The headroom that the rule asks for is enough, and filled up to one packet: 2·delay·rate + 2·MTU.
func TestHeadroomRuleIsTight(t *testing.T) {
	const size = 1250
	rule := Headroom(100*units.Gbps, us, 0, size)
	if rule != 27_500 {
		t.Fatalf("rule: %d bytes", rule)
	}
	fill := func(headroom units.Bytes, response units.Time) (most units.Bytes, c Counters) {
		w := funnel(2, PortConfig{Link: Link{Rate: 100 * units.Mbps}, Buffer: mB}) // as good as standing still
		w.protect(PFCConfig{Xoff: 1000, Xon: 0, Headroom: headroom, Response: response})
		n := newWorld(t, w.route())
		n.flood(0, size, 200, 1)
		n.send(0, 2, 0, size, 0) // occupies the link
		n.run(20 * us)
		return n.net.PortCounters(2).MaxHeadroom, n.net.Counters()
	}
	// The second packet finds the link busy and is more than Xoff: it is the first in the headroom,
	// and 20 more come before the pause takes effect.
	if most, c := fill(rule, 0); c.Dropped != 0 || most < rule-2*size || most > rule {
		t.Errorf("%d of %d bytes of headroom used, %+v", most, rule, c)
	}
	if most, c := fill(25_000-1250, 0); c.Overflows == 0 || c.Overflows != c.Dropped || most > 25_000-1250 {
		t.Errorf("%d bytes of headroom used, %+v", most, c)
	}
	// A far end that is slow to react needs more: 0.5 µs are 6250 bytes.
	if _, c := fill(rule, 500*ns); c.Overflows == 0 {
		t.Errorf("%+v", c)
	}
	if most, c := fill(Headroom(100*units.Gbps, us, 500*ns, size), 500*ns); c.Dropped != 0 || most <= rule-2*size {
		t.Errorf("%d bytes of headroom used, %+v", most, c)
	}
}

// Control goes on while data is paused: past the data that waits in the switch, and out of a NIC
// that is paused.
func TestControlIsNotPaused(t *testing.T) {
	w := funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: mB})
	w.protect(PFCConfig{Xoff: 5000, Xon: 2500, Headroom: 27_500})
	n := newWorld(t, w.route())
	n.flood(0, 1250, 60, 1)
	n.run(5 * us)
	if n.net.NICs.Free(1) || !n.net.NICs.FreeFor(1, 0) {
		t.Fatal("the NIC is not paused")
	}
	control := func(p *Packet) { p.Class, p.ECN = 0, NotECT }
	n.send(5*us, 1, 0, 125, 1000, control) // 10 ns on the link, at the switch at 6.01 µs, at its port's turn at 6.1 µs
	if n.net.NICs.FreeFor(1, 0) {
		t.Error("free while a packet is on the line")
	}
	n.send(5*us, 1, 0, 125, 1001, control) // waits for the first
	n.send(5*us, 1, 0, 1250, 1002)         // waits for the end of the pause
	n.run(units.Never)
	at := make(map[int]arrival)
	for _, a := range n.arrivals {
		at[int(a.packet.Context)] = a
	}
	if a := at[1000]; a.at != 6100*ns+100*ns || a.packet.SentAt != 5*us {
		t.Errorf("first control packet sent at %d, arrived at %d", a.packet.SentAt, a.at)
	}
	if a := at[1001]; a.at != 6100*ns+200*ns || a.packet.SentAt != 5010*ns {
		t.Errorf("second control packet sent at %d, arrived at %d", a.packet.SentAt, a.at)
	}
	if a := at[1002]; a.packet.SentAt < 20*us {
		t.Errorf("data sent at %d, in the pause", a.packet.SentAt)
	}
	if len(n.arrivals) != 63 || n.net.Counters().Dropped != 0 {
		t.Errorf("%d arrivals, %+v", len(n.arrivals), n.net.Counters())
	}
}

// A class that is not protected is not paused, whatever the other does.
func TestPFCIsPerClass(t *testing.T) {
	w := funnel(2, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: mB})
	for i := range w.Ports {
		if int(w.Ports[i].To) >= w.Hosts {
			w.Ports[i].PFC[0] = PFCConfig{On: true, Xoff: 2500, Xon: 1250, Headroom: 27_500}
		}
	}
	n := newWorld(t, w.route())
	for i := range 100 {
		n.send(0, 1, 0, 1250, i, func(p *Packet) { p.Class = 0 })
		n.send(0, 2, 0, 1250, 100+i)
	}
	n.run(units.Never)
	zero, one := n.net.PortCounters(2), n.net.PortCounters(4)
	if zero.Pauses[0] == 0 || zero.Pauses[1] != 0 || one.Pauses != [Classes]int64{} {
		t.Errorf("%+v, %+v", zero, one)
	}
	if len(n.arrivals) != 200 {
		t.Errorf("%d arrivals", len(n.arrivals))
	}
}

// Pauses spread from switch to switch to the NIC, and nothing is lost although each buffer holds a
// few packets.
func TestPausesSpread(t *testing.T) {
	w := chain(3)
	w.Ports[len(w.Ports)-2].Rate = 5 * units.Gbps // the last link, to host 1
	for i := range w.Ports {
		w.Ports[i].Buffer = 1 // binds nothing that is protected
	}
	w.protect(PFCConfig{Xoff: 10_000, Xon: 5000, Headroom: 27_500})
	n := newWorld(t, w.route())
	n.flood(1, 1250, 500, 0)
	n.run(units.Never)
	if len(n.arrivals) != 500 || n.net.Counters().Dropped != 0 {
		t.Fatalf("%d arrivals, %+v", len(n.arrivals), n.net.Counters())
	}
	for _, port := range []int{0, 2, 4} {
		if k := n.net.PortCounters(port); k.Pauses[1] == 0 || k.Paused[1] == 0 {
			t.Errorf("port %d: %+v", port, k)
		}
	}
	// The last link is never idle: 500 packets of 2 µs each.
	if want := 3*(100*ns+us) + 500*2*us + us; n.arrivals[499].at != want {
		t.Errorf("last arrival at %d, want %d", n.arrivals[499].at, want)
	}
	for i, a := range n.arrivals {
		if int(a.packet.Context) != i {
			t.Fatalf("packet %d arrived as %d", a.packet.Context, i)
		}
	}
}

// N to 1, lossless: the link is full from the first packet to the last, nobody gets ahead by more
// than what the buffers hold, nothing is lost.
func TestIncastFillsTheLineFairly(t *testing.T) {
	const each, size = 300, 1250
	for _, senders := range []int{2, 5, 16} {
		w := funnel(senders, PortConfig{Link: Link{Rate: 100 * units.Gbps, Delay: us}, Buffer: mB})
		w.protect(PFCConfig{Xoff: 20_000, Xon: 15_000, Headroom: 27_500})
		n := newWorld(t, w.route())
		var sources []HostID
		for h := 1; h <= senders; h++ {
			sources = append(sources, HostID(h))
		}
		n.flood(0, size, each, sources...)
		n.run(units.Never)
		total := senders * each
		if len(n.arrivals) != total || n.net.Counters().Dropped != 0 || n.net.Counters().Pauses == 0 {
			t.Fatalf("%d senders: %d arrivals, %+v", senders, len(n.arrivals), n.net.Counters())
		}
		if want := 2*(us+100*ns) + units.Time(total-1)*100*ns; n.arrivals[total-1].at != want {
			t.Errorf("%d senders: last arrival at %d, want %d", senders, n.arrivals[total-1].at, want)
		}
		half := make(map[HostID]int) // arrivals while all still send
		for _, a := range n.arrivals[:total/2] {
			half[a.packet.Src]++
		}
		for _, h := range sources {
			if got := half[h]; got < each/2*8/10 || got > each/2*12/10 {
				t.Errorf("%d senders: %d of the first half are from host %d, want about %d", senders, got, h, each/2)
			}
		}
	}
}

// Shared memory lets one port use more than a static share of it, and two of them less each.
func TestSharedAgainstStatic(t *testing.T) {
	queue := func(senders int, shared bool) units.Bytes {
		w := funnel(senders, PortConfig{Link: Link{Rate: 5 * units.Gbps}, Buffer: mB})
		c := PFCConfig{Xoff: 100_000, Xon: 90_000, Headroom: 27_500}
		if shared {
			c = PFCConfig{Alpha: 1, Offset: 3000, Headroom: 27_500}
			w.Switches[0].Buffer.Total = units.Bytes(senders+1)*27_500 + 400_000 // the receiver's port too
		}
		n := newWorld(t, w.protect(c).route())
		var sources []HostID
		for h := 1; h <= senders; h++ {
			sources = append(sources, HostID(h))
		}
		n.flood(0, 1250, 1000, sources...)
		n.run(units.Never)
		if k := n.net.Counters(); k.Dropped != 0 || len(n.arrivals) != 1000*senders {
			t.Fatalf("%+v", k)
		}
		return n.net.Counters().MaxQueue
	}
	between := func(what string, got, low, high units.Bytes) {
		if got < low || got > high {
			t.Errorf("%s: longest queue %d, want %d to %d", what, got, low, high)
		}
	}
	// One port: 400 kB/2, and two: 400 kB/3 each; besides that headrooms.
	between("1, static", queue(1, false), 100_000, 127_500)
	between("1, shared", queue(1, true), 200_000, 227_500)
	between("2, static", queue(2, false), 200_000, 255_000)
	between("2, shared", queue(2, true), 266_000, 322_000)
}

// Without PFC the shared memory drops: a port gets alpha/(1+alpha) of it, two get less each;
// control is not counted.
func TestSharedMemoryDrops(t *testing.T) {
	for _, c := range []struct {
		alpha  float64
		buffer units.Bytes
		want   units.Bytes
	}{{1, 0, 50_000}, {0.25, 0, 20_000}, {0, 0, 100_000}, {1, 30_000, 30_000}} {
		w := funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: c.buffer})
		w.Switches[0].Buffer = BufferConfig{Total: 100_000, Alpha: c.alpha}
		n := newWorld(t, w.route())
		for i := range 200 {
			n.send(0, 1, 0, 1000, i)
		}
		for i := range 20 {
			n.send(0, 1, 0, 1000, 200+i, func(p *Packet) { p.Class = 0 })
		}
		n.run(units.Never)
		k := n.net.Counters()
		if k.MaxQueue < c.want-1000 || k.MaxQueue > c.want+21_000 || k.Dropped == 0 || k.Overflows != 0 {
			t.Errorf("%+v: %+v", c, k)
		}
		control := 0
		for _, a := range n.arrivals {
			if a.packet.Class == 0 {
				control++
			}
		}
		if control != 20 {
			t.Errorf("%+v: %d control packets arrived", c, control)
		}
	}
}

// Control has a bound of its own in a switch that accounts for its memory.
func TestControlIsBoundedByItsPort(t *testing.T) {
	w := funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: 5000})
	n := newWorld(t, w.protect(PFCConfig{Xoff: 50_000, Headroom: 27_500}).route())
	for i := range 20 {
		n.send(0, 1, 0, 1000, i, func(p *Packet) { p.Class = 0 })
	}
	for i := range 20 {
		n.send(0, 1, 0, 1000, 20+i)
	}
	n.run(units.Never)
	// One goes straight onto the link, and five wait, and few more as the link takes some; all the
	// data arrives.
	k := n.net.Counters()
	if p := n.net.PortCounters(0); k.Dropped == 0 || k.Overflows != 0 || p.Drops != k.Dropped || len(n.arrivals) != 40-int(k.Dropped) || k.Dropped > 14 {
		t.Errorf("%+v, %+v", k, p)
	}
}

// Queues that are only sampled do not change what happens; an accounted port is sampled as it will
// be at that instant.
func TestSamplingChangesNothing(t *testing.T) {
	once := func(sample bool) (at []units.Time, events int) {
		w := funnel(4, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: mB})
		n := newWorld(t, w.protect(PFCConfig{Xoff: 5000, Xon: 2500, Headroom: 27_500}).route())
		n.flood(0, 1250, 50, 1, 2, 3, 4)
		for {
			id, now, ok := n.queue.Next()
			if !ok {
				break
			}
			if sample {
				n.net.Sample(now, func(port int, queued units.Bytes) {
					if queued <= 0 || queued%1250 != 0 {
						t.Errorf("%d bytes", queued)
					}
				})
			}
			n.queue.Pop()
			n.net.Fire(now, id)
			events++
		}
		for _, a := range n.arrivals {
			at = append(at, a.at*8+units.Time(a.packet.Src))
		}
		return at, events
	}
	a, e := once(false)
	b, f := once(true)
	if !slices.Equal(a, b) || e != f {
		t.Error("a run that is sampled differs")
	}
}

// ring3 is three switches in a circle, a host at each, whose routes all go round the same way: the
// buffers wait for each other.
func ring3() *wiring {
	w := wire(3, 3)
	for s := range 3 {
		w.link(s, 3+s)
		w.Switches[s].Name = string(rune('a' + s))
	}
	for s := range 3 {
		w.link(3+s, 3+(s+1)%3) // port 6+2s, and the way back
	}
	for s := range 3 {
		sw := &w.Switches[s]
		sw.Groups = [][]int32{{int32(2*s + 1)}, {int32(6 + 2*s)}}
		sw.Route = []int32{1, 1, 1}
		sw.Route[s] = 0
	}
	return w
}

// A circle of buffers that wait for each other stands still for ever; the dump names the circle.
func TestDeadlockIsRecognised(t *testing.T) {
	w := ring3().protect(PFCConfig{Xoff: 5000, Xon: 2500, Headroom: 30_000})
	n := newWorld(t, w.Config)
	sent := 0
	n.onIdle = func(now units.Time, h HostID) {
		if n.net.NICs.Free(h) && sent < 3000 {
			sent++
			n.send(now, h, (h+2)%3, 1250, sent) // two switches on
		}
	}
	for h := range HostID(3) {
		n.onIdle(0, h)
	}
	n.run(units.Never)
	k := n.net.Counters()
	since, stuck := n.net.Stuck()
	if k.Delivered == k.Injected || k.Dropped != 0 || !stuck || since <= 0 || since >= n.queue.Last() {
		t.Fatalf("%+v: no deadlock", k)
	}
	if c := n.net.PortCounters(6); c.Pauses[1] == 0 || c.Paused[1] >= n.queue.Last() || c.Paused[1] == 0 {
		t.Errorf("%+v", c)
	}
	dump := n.net.Waiting([]string{"alice", "bob"})
	text := strings.Join(dump, "\n")
	for _, want := range []string{
		"alice to a (port 0): class 1 paused since ", "host 2 to c (port 4): class 1 paused",
		"a to b (port 6): class 1 paused since ", " bytes wait; b holds ", " bytes for c (port 8)",
		"c to a (port 10)", " bytes for b (port 6)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if len(dump) != 6 {
		t.Errorf("%d lines:\n%s", len(dump), text)
	}
}

// The dump tells of ports that are merely busy, too, and of switches without a name.
func TestWaitingWithoutPauses(t *testing.T) {
	n := newWorld(t, funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: mB}).route())
	for i := range 3 {
		n.send(0, 1, 0, 1000, i)
	}
	n.run(1300 * ns)
	want := []string{"switch 0 to host 0 (port 0): 2 packets of 2000 bytes wait, the link is busy until 1.880 us"}
	if got := n.net.Waiting(nil); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if _, stuck := n.net.Stuck(); stuck {
		t.Error("stuck")
	}
}

// Once lists have grown, pauses cost no allocation.
func TestPausesDoNotAllocate(t *testing.T) {
	w := funnel(4, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: mB})
	n := newWorld(t, w.protect(PFCConfig{Xoff: 5000, Xon: 2500, Headroom: 27_500}).route())
	before := n.net.Counters().Pauses
	n.wantNoAllocations(t, 100, func(k int) Packet { return Packet{Src: HostID(1 + k%4), Size: 1000, Class: 1} }, 200)
	if n.net.Counters().Pauses == before {
		t.Error("nobody was paused")
	}
}
