package fabric

import (
	"slices"
	"strings"
	"testing"

	"weft/units"
)

// diamond is host 0, switch a, two switches of equal distance, switch d, host 1. The ports from a
// to the two are 2 and 6, those from the two to d are 4 and 8.
func diamond() *wiring {
	w := wire(2, 4)
	a, b, c, d := 2, 3, 4, 5
	w.link(0, a)
	w.link(a, b)
	w.link(b, d)
	w.link(a, c)
	w.link(c, d)
	w.link(d, 1)
	return w
}

// Packets on a link and those that wait for it are cut off with the link; the others arrive.
func TestLinkDownCutsOff(t *testing.T) {
	n := newWorld(t, funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps, Delay: us}, Buffer: mB}).route())
	for i := range 10 {
		n.send(0, 1, 0, 1000, i)
	}
	n.run(4000 * ns)
	// Packet i starts at 1.08 + 0.8·i µs and arrives 1.8 µs later: 0 and 1 have; 2 and 3 are on the
	// link; 6 wait.
	n.net.Links().SetUp(4000*ns, false, 0, 1)
	n.check()
	if k := n.net.Counters(); k.Delivered != 2 || k.Cut != 8 || k.CutBytes != 8000 || n.net.PortCounters(0).Cut != 8 || n.net.Links().Up(0) {
		t.Errorf("%+v", k)
	}
	// While it is down there is no path.
	n.send(4000*ns, 1, 0, 1000, 10)
	n.run(10 * us)
	if k := n.net.Counters(); k.Cut != 9 || k.Dropped != 0 {
		t.Errorf("%+v", k)
	}
	n.net.Links().SetUp(10*us, true, 0, 1)
	n.send(10*us, 1, 0, 1000, 11)
	n.run(units.Never)
	if got, want := n.numbers(), []int{0, 1, 11}; !slices.Equal(got, want) || !n.net.Links().Up(0) {
		t.Errorf("arrived %v, want %v", got, want)
	}
	n.net.Links().SetUp(n.queue.Last(), true, 0, 1) // it is
	n.check()
}

// A switch takes a dead port out of its groups at once, also for packets in flight to the switch,
// and back in.
func TestECMPExcludesDeadPorts(t *testing.T) {
	n := newWorld(t, diamond().route())
	flows := func(now units.Time, from int) (via [2]int) {
		before := [2]int64{n.net.PortCounters(2).Packets, n.net.PortCounters(6).Packets}
		for i := range 40 {
			n.send(now, 0, 1, 1000, from+i)
		}
		n.run(now + 100*us)
		return [2]int{int(n.net.PortCounters(2).Packets - before[0]), int(n.net.PortCounters(6).Packets - before[1])}
	}
	if via := flows(0, 0); via[0] == 0 || via[1] == 0 || via[0]+via[1] != 40 {
		t.Fatalf("%v", via)
	}
	n.send(100*us, 0, 1, 1000, 40) // on its way to the switch when
	n.run(100*us + 500*ns)
	n.net.Links().SetUp(100*us+500*ns, false, 6, 7) // one of the two goes
	if via := flows(101*us, 41); via != [2]int{41, 0} {
		t.Errorf("%v", via)
	}
	n.net.Links().SetUp(300*us, true, 6, 7)
	if via := flows(300*us, 100); via[0] == 0 || via[1] == 0 {
		t.Errorf("%v", via)
	}
	if k := n.net.Counters(); k.Delivered != 121 || k.Cut+k.Dropped != 0 {
		t.Errorf("%+v", k)
	}
	// Both: no path at all.
	n.net.Links().SetUp(500*us, false, 2, 3, 6, 7)
	flows(500*us, 200)
	if k := n.net.Counters(); k.Cut != 40 || k.Dropped != 0 {
		t.Errorf("%+v", k)
	}
}

// Knowledge is local: a switch whose neighbour has lost its path still sends to it until it gets
// other routes.
func TestReroute(t *testing.T) {
	w := diamond()
	n := newWorld(t, w.route())
	send := func(now units.Time) int64 {
		before := n.net.Counters().Delivered
		for i := range 40 {
			n.send(now, 0, 1, 1000, i)
		}
		n.run(now + 100*us)
		return n.net.Counters().Delivered - before
	}
	n.net.Links().SetUp(0, false, 8, 9) // from c to d
	if got := send(0); got == 0 || got == 40 {
		t.Errorf("%d arrived", got)
	}
	around := w.route()
	for i := range around.Switches {
		around.Switches[i].Groups = slices.Clone(around.Switches[i].Groups)
	}
	a := &around.Switches[0]
	a.Groups[a.Route[1]] = []int32{2}
	if err := n.net.Links().Reroute(around.Switches); err != nil {
		t.Fatal(err)
	}
	if got := send(200 * us); got != 40 {
		t.Errorf("%d arrived", got)
	}
	// New tables do not bring back ports that are down, and packets in flight follow the tables.
	n.send(400*us, 0, 1, 1000, 0)
	n.run(400*us + 100*ns)
	n.net.Links().SetUp(400*us+100*ns, false, 2, 3)
	a.Groups[a.Route[1]] = []int32{2, 6}
	if err := n.net.Links().Reroute(around.Switches); err != nil {
		t.Fatal(err)
	}
	before := n.net.PortCounters(6).Packets
	n.run(500 * us)
	if got := n.net.PortCounters(6).Packets - before; got != 1 {
		t.Errorf("%d went by port 6", got)
	}
	if err := n.net.Links().Reroute(around.Switches[1:]); err == nil || !strings.Contains(err.Error(), "tables of 3 switches, the network has 4") {
		t.Errorf("%v", err)
	}
	a.Groups[0] = []int32{99}
	if err := n.net.Links().Reroute(around.Switches); err == nil || !strings.Contains(err.Error(), "port 99 is not one of its own") {
		t.Errorf("%v", err)
	}
}

// A NIC that is down is not free; its host is asked again when the NIC is up.
func TestNICDown(t *testing.T) {
	n := newWorld(t, chain(1).route())
	n.send(0, 0, 1, 1250, 0)
	n.send(0, 0, 1, 1250, 1)
	n.net.Links().SetUp(50*ns, false, 0, 1)
	n.check()
	if n.net.NICs.Free(0) || n.net.NICs.FreeFor(0, 0) || n.net.NICs.Queued(0) != 0 {
		t.Error("free, or holds something")
	}
	n.send(60*ns, 0, 1, 1250, 2)
	n.run(5 * us)
	if k := n.net.Counters(); k.Cut != 3 || len(n.idles) != 0 {
		t.Errorf("%+v, idle %v", k, n.idles)
	}
	n.net.Links().SetUp(5*us, true, 0, 1)
	if want := []idling{{5 * us, 0}}; !slices.Equal(n.idles, want) || !n.net.NICs.Free(0) {
		t.Errorf("idle %v", n.idles)
	}
	n.send(5*us, 0, 1, 1250, 3)
	n.run(units.Never)
	if got := n.numbers(); !slices.Equal(got, []int{3}) {
		t.Errorf("arrived %v", got)
	}
}

// A link that goes down ends the pauses of its port. If it comes up while the far end still has the
// class paused, it starts paused. What waits at the far end is not lost, and memory is given back.
func TestPauseAcrossAFlap(t *testing.T) {
	w := funnel(1, PortConfig{Link: Link{Rate: units.Gbps}, Buffer: mB}) // a packet takes 10 µs
	w.protect(PFCConfig{Xoff: 5000, Xon: 2500, Headroom: 27_500})
	n := newWorld(t, w.route())
	n.flood(0, 1250, 100, 1)
	n.run(20 * us)
	before := n.net.PortCounters(2)
	if before.Pauses[1] != 1 || before.Paused[1] == 0 {
		t.Fatalf("%+v", before)
	}
	n.net.Links().SetUp(20*us, false, 2, 3)
	n.check()
	if k := n.net.PortCounters(2); k.Paused[1] != 17_500*ns {
		t.Errorf("%+v", k)
	}
	n.run(30 * us)
	n.net.Links().SetUp(30*us, true, 2, 3)
	n.check()
	if n.net.NICs.Free(1) || n.net.PortCounters(2).Pauses[1] != 2 {
		t.Error("does not begin with the pause")
	}
	// Taken down again until the far end has nothing left: it comes up without.
	n.net.Links().SetUp(40*us, false, 2, 3)
	n.run(400 * us)
	n.check()
	n.net.Links().SetUp(400*us, true, 2, 3)
	if n.net.NICs.Free(1) { // it has asked for a packet already
		t.Error("did not go on")
	}
	n.run(units.Never)
	k := n.net.Counters()
	if k.Dropped != 0 || k.Delivered+k.Cut != 100 || n.net.pfc.memories[0].used != 0 {
		t.Errorf("%+v", k)
	}
}

// Frames in flight are lost with the link, and so are packets that wait on the account of others.
func TestCutOffPacketsGiveMemoryBack(t *testing.T) {
	w := funnel(2, PortConfig{Link: Link{Rate: units.Gbps}, Buffer: mB})
	w.protect(PFCConfig{Xoff: 5000, Xon: 2500, Headroom: 27_500})
	n := newWorld(t, w.route())
	n.flood(0, 1250, 20, 1, 2)
	n.run(2000 * ns) // pauses are on their way
	if n.net.pfc.frames[2].empty() {
		t.Fatal("no frame on its way")
	}
	n.net.Links().SetUp(2000*ns, false, 2, 3)
	n.check()
	n.run(3 * us)
	n.net.Links().SetUp(3*us, false, 0, 1) // the link everybody waits for
	n.check()
	n.run(units.Never)
	k := n.net.Counters()
	if n.net.pfc.memories[0].used != 0 || k.Injected != k.Delivered+k.Dropped+k.Cut || k.Overflows != 0 {
		t.Errorf("%+v", k)
	}
}

// A link that changes its rate or its delay does so for the packets that start then, and nothing
// overtakes.
func TestSetLine(t *testing.T) {
	n := newWorld(t, funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps, Delay: 10 * us}, Buffer: mB}).route())
	for i := range 6 {
		n.send(0, 1, 0, 1000, i)
	}
	n.run(2 * us)
	// Packets 0 and 1 are on the link, 1 until 2.68 µs. From packet 2 on twice as fast.
	if err := n.change(2*us, 0, func(l *Link) { l.Rate, l.Delay = 20*units.Gbps, 10*us }); err != nil {
		t.Fatal(err)
	}
	n.run(3 * us) // packet 2 from 2.68 to 3.08 µs, arriving at 13.08 µs
	// From packet 3 on 1 µs: not before the link can be used without overtaking, 12.08 µs.
	if err := n.change(3*us, 0, func(l *Link) { l.Rate, l.Delay = 20*units.Gbps, us }); err != nil {
		t.Fatal(err)
	}
	n.check()
	n.run(units.Never)
	var at []units.Time
	for _, a := range n.arrivals {
		at = append(at, a.at)
	}
	want := []units.Time{11_880 * ns, 12_680 * ns, 13_080 * ns, 13_480 * ns, 13_880 * ns, 14_280 * ns}
	if !slices.Equal(at, want) || !slices.IsSorted(n.numbers()) {
		t.Errorf("arrived at %v, want %v", at, want)
	}
	for _, c := range []struct {
		rate  units.Bandwidth
		delay units.Time
	}{{0, us}, {units.Gbps, -1}} {
		if err := n.change(n.queue.Last(), 0, func(l *Link) { l.Rate, l.Delay = c.rate, c.delay }); err == nil {
			t.Errorf("%+v", c)
		}
	}
}

// Of a NIC, too: its host is asked when the link can be used again.
func TestSetLineOfANIC(t *testing.T) {
	n := newWorld(t, chain(1).route())
	n.send(0, 0, 1, 1250, 0)
	n.run(200 * ns)
	if err := n.change(200*ns, 0, func(l *Link) { l.Rate, l.Delay = 100*units.Gbps, 100*ns }); err != nil {
		t.Fatal(err)
	}
	n.check()
	if n.net.NICs.Free(0) { // packet 0 arrives at 1.1 µs
		t.Error("free, although packets would overtake")
	}
	n.run(units.Never)
	if want := []idling{{100 * ns, 0}, {1000 * ns, 0}}; !slices.Equal(n.idles, want) {
		t.Errorf("idle %v, want %v", n.idles, want)
	}
	if err := n.change(n.queue.Last(), 2, func(l *Link) { l.Rate, l.Delay = units.Gbps, us }); err != nil { // nothing is on it
		t.Fatal(err)
	}
	n.send(n.queue.Last(), 0, 1, 1250, 1)
	n.run(units.Never)
	if len(n.arrivals) != 2 {
		t.Errorf("%d arrivals", len(n.arrivals))
	}
}
