package fabric

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"weft/internal/fuzztest"
	"weft/internal/splitmix"
	"weft/units"
)

// steps records the network's steps with their instants.
func steps(n *world) *[]Step {
	var all []Step
	n.net.Observers.Follow(func(s Step) { all = append(all, s) })
	return &all
}

// stepTimes returns when the steps of one kind happened.
func stepTimes(all []Step, what StepKind) (at []units.Time) {
	for _, s := range all {
		if s.What == what {
			at = append(at, s.At)
		}
	}
	return at
}

// key returns the key of a flow in the tables of switches.
func key(src, dst HostID, port uint16) uint64 {
	return uint64(uint32(splitmix.Mix(FlowHash(src, dst, port, 4793))))<<32 | uint64(uint32(dst))
}

// A queue that is short for less than a round trip releases no flow. When it is short for longer,
// the release is at a known instant: the switch looks twice per round trip from when it has told
// the first source, and must find the port light for one round trip.
func TestReleaseTakesARoundTripOfLight(t *testing.T) {
	n, _ := coordinated(t, funnel(1, PortConfig{Link: Link{Rate: units.Gbps, Delay: us}, Buffer: mB}), nil)
	all := steps(n)
	const rtt, tick = 10 * us, 100 * ns
	for i := range 16 { // 8 µs each
		n.send(0, 1, 0, 1000, i, withTag(Tag{On: true}, 5))
	}
	at := units.Time(0)
	until := func(light bool) units.Time { // runs up to where the queue is light, or is not any more
		for (n.net.ports[0].depth(n.net, at, 1) <= 5000) != light {
			at += tick
			n.run(at)
		}
		return at
	}
	until(false)
	dip := until(true)
	at += 6 * us
	n.run(at)
	for i := range 8 {
		n.send(at, 1, 0, 1000, 16+i, withTag(Tag{On: true}, 5))
	}
	if back := until(false); back-dip <= rtt/2 || back-dip >= rtt {
		t.Fatalf("light for %v: this shows nothing", back-dip)
	}
	light := until(true)
	n.run(units.Second)
	told, released := stepTimes(*all, ToldCC), stepTimes(*all, ToldReleased)
	if len(told) == 0 || len(released) != 1 {
		t.Fatalf("told at %v, released at %v", told, released)
	}
	looks := (light - told[0] + rtt/2 - 1) / (rtt / 2)
	if want := told[0] + looks*(rtt/2) + rtt; released[0] != want {
		t.Errorf("light from %v on, released at %v, want %v", light, released[0], want)
	}
}

// What a switch knows of an incast expires when its flows have gone silent, even if the queue
// stands.
func TestIncastExpires(t *testing.T) {
	n, _ := coordinated(t, funnel(1, PortConfig{Link: Link{Rate: units.Gbps, Delay: us}, Buffer: mB}), nil)
	all := steps(n)
	for i := range 200 {
		n.send(0, 1, 0, 1000, i, withTag(Tag{On: true}, 5))
	}
	n.run(100 * us)
	jam(n, 0)
	n.run(FlowExpiry)
	w := &n.net.ccm.switches[0]
	if len(w.ports) != 1 || len(w.incast[0].flows) != 1 {
		t.Fatalf("%d ports with incast before it expires", len(w.ports))
	}
	flows := &n.net.balancing.switches[0].flows
	if flows.know(FlowExpiry, key(1, 0, 5)) == nil {
		t.Error("the flow is forgotten too early")
	}
	n.run(FlowExpiry + 100*us)
	told := len(stepTimes(*all, ToldCC))
	if len(w.ports) != 0 || len(w.port) != 0 || len(w.incast) != 0 || n.queue.Len() != 0 {
		t.Errorf("%d ports with incast, %d pending after it has expired", len(w.ports), n.queue.Len())
	}
	n.run(units.Second)
	if flows.know(FlowExpiry+100*us, key(1, 0, 5)) != nil {
		t.Error("the flow is known for ever")
	}
	if got := len(stepTimes(*all, ToldCC)); got != told {
		t.Errorf("told %d times after it was forgotten", got-told)
	}
}

// A flow may return to a port that it was asked to avoid after a round trip.
func TestExclusionLastsARoundTrip(t *testing.T) {
	n, _ := coordinated(t, diamond(), nil)
	all := steps(n)
	i, at := 0, units.Time(0)
	send := func(until units.Time) {
		for ; at < until; at += us {
			n.run(at)
			n.send(at, 0, 1, 1000, i, withTag(Tag{On: true}, 1))
			i++
		}
	}
	send(10 * us)
	f := n.net.balancing.switches[0].flows.know(at, key(0, 1, 1))
	first := f.port
	jam(n, first+2) // what it leads to
	send(60 * us)
	heard, moved := stepTimes(*all, HeardPath), stepTimes(*all, Moved)
	if len(heard) != 1 || len(moved) != 1 || f.port == first || f.away != noPort {
		t.Fatalf("heard at %v, moved at %v, on port %d, kept off %d", heard, moved, f.port, f.away)
	}
	jam(n, f.port)
	send(100 * us)
	if moved = stepTimes(*all, Moved); len(moved) != 2 || f.port != first {
		t.Errorf("moved at %v, on port %d, want %d again", moved, f.port, first)
	}
}

// While it lasts the flow stays where it is, light or not.
func TestExclusionHolds(t *testing.T) {
	n, _ := coordinated(t, diamond(), func(c *Config) { c.CCM.RTT = units.Millisecond })
	all := steps(n)
	at := units.Time(0)
	for i := range 200 {
		at = units.Time(i) * us
		n.run(at)
		n.send(at, 0, 1, 1000, i, withTag(Tag{On: true}, 1))
		f := n.net.balancing.switches[0].flows.know(at, key(0, 1, 1))
		switch {
		case i == 10:
			jam(n, f.port+2)
		case f != nil && len(stepTimes(*all, Moved)) == 1:
			jam(n, f.port)
		}
	}
	if moved := stepTimes(*all, Moved); len(moved) != 1 {
		t.Errorf("moved at %v", moved)
	}
}

// The state of switches for 10,000 flows is bounded, and is gone when they have been silent for
// FlowExpiry.
func TestIncastOfTenThousandFlows(t *testing.T) {
	n, _ := coordinated(t, funnel(10, PortConfig{Link: Link{Rate: units.Gbps, Delay: us}, Buffer: units.GB}), nil)
	const sent = 10_000
	for i := range sent {
		n.send(units.Time(i)*10*ns, HostID(1+i%10), 0, 1000, i, withTag(Tag{On: true}, uint16(i)))
	}
	n.run(200 * us)
	flows, w := &n.net.balancing.switches[0].flows, &n.net.ccm.switches[0]
	live := func(now units.Time) (known, told int) {
		for i := range sent {
			if flows.know(now, key(HostID(1+i%10), 0, uint16(i))) != nil {
				known++
			}
		}
		for _, in := range w.incast {
			told += len(in.flows)
			if len(in.at) != len(in.flows) {
				t.Errorf("%d flows, %d in the index", len(in.flows), len(in.at))
			}
		}
		return known, told
	}
	known, told := live(200 * us)
	c := n.net.Counters().CCM
	each, both := unsafe.Sizeof(flowEntry{}), unsafe.Sizeof(incastFlow{})
	t.Logf("after %d flows: %d known, in a table of %d (%d KiB); %d told, of at most %d at a port (%d KiB); %d made room",
		sent, known, len(flows.entries), uintptr(len(flows.entries))*each/1024, told, maxIncast, maxIncast*both/1024, c.Forgotten)
	if known < sent*9/10 || told != maxIncast || c.MostFlows != maxIncast || c.Forgotten == 0 ||
		len(flows.entries) > maxFlows {
		t.Errorf("%d known, %d told, %+v, %d entries", known, told, c, len(flows.entries))
	}
	after := 200*us + FlowExpiry + 100*us
	n.run(after)
	known, told = live(after)
	t.Logf("%v later: %d known, %d told", after-200*us, known, told)
	if known != 0 || told != 0 || len(w.ports) != 0 {
		t.Errorf("%d known, %d told, %d ports with incast after they have expired", known, told, len(w.ports))
	}
	n.run(units.Second)
	if n.queue.Len() != 0 {
		t.Errorf("%d pending", n.queue.Len())
	}
}

// Whatever tags hosts write, switches with full queues do not fail, ask no switch that does not
// exist, and lose no packet.
func FuzzTags(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte{0, 0, 0, 1, 0, 0xff, 0xff, 2, 0, 0xea, 0x60, 3, 1, 0, 1, 4, 2, 0, 4, 5}, uint8(0xff))
	corpus.Add([]byte{0, 0, 5, 1, 0, 0, 5, 1, 3, 0, 2, 1}, uint8(5))
	corpus.Fuzz(func(t *testing.T, tags []byte, jammed uint8) {
		n, _ := coordinated(t, diamond(), nil)
		all := steps(n)
		for bit, port := range []int32{2, 4, 6, 8, 3, 5, 7, 9} {
			if jammed>>bit&1 != 0 {
				jam(n, port)
			}
		}
		at, sent := units.Time(0), 0
		for i := 0; len(tags) >= 4 && i < 200; i, tags = i+1, tags[4:] {
			tag := Tag{On: tags[0]&2 == 0, CC: tags[0]&1 != 0, AR: binary.BigEndian.Uint16(tags[1:])}
			for range 12 { // enough of one flow to congest a port
				n.run(at)
				n.send(at, HostID(tags[3]&1), HostID(1-tags[3]&1), 1000, sent, withTag(tag, uint16(tags[3])))
				at, sent = at+us, sent+1
			}
		}
		n.run(units.Second)
		for _, s := range *all {
			if s.What == ToldPath && (int(s.To) < 0 || int(s.To) >= 2+len(n.net.balancing.switches)) {
				t.Fatalf("asked of nobody: %+v", s)
			}
		}
		if c := n.net.Counters(); c.Injected < int64(sent) || c.Delivered > c.Injected {
			t.Fatalf("%d sent: %+v", sent, c)
		}
	})
}
