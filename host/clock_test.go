package host

import (
	"testing"

	"weft/clocksync"
	oscillator "weft/clocksync/clock"
	"weft/clocksync/node"
	"weft/clocksync/noise"
	"weft/params"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// clockedPlan returns the plan of a host without items whose clock runs PTP.
func clockedPlan(self transport.HostID) Plan {
	var protocols node.Protocols
	params.SetDefaults(&protocols.PTP)
	return Plan{
		Host: self, Name: "h", Seed: 1,
		Endpoint: transport.Config{Host: self, MTU: 4096, LineRate: 100 * units.Gbps},
		Clock: &node.Config{
			Clock: oscillator.Config{Grid: units.Millisecond, Offset: units.Microsecond}, Sync: node.PTP, Protocols: protocols, Sample: units.Millisecond,
			Setup: clocksync.Setup{Self: clocksync.Node(self), Nodes: 2, Seed: 1},
		},
		Until: 20 * units.Millisecond,
	}
}

// hostPair is two hosts with a path of 1 us between them.
type hostPair struct{ hosts [2]*Host }

// run carries packets between the hosts until an instant.
func (w *hostPair) run(t *testing.T, until units.Time) {
	t.Helper()
	var out transport.Outgoing
	now := units.Time(0)
	for now < until {
		next := until
		for _, h := range w.hosts {
			if d, ok := h.Deadline(); ok {
				next = min(next, max(d, now))
			}
		}
		now = next
		for _, h := range w.hosts {
			h.Advance(now)
		}
		for i := 0; i < 2; i++ {
			for w.hosts[i].Transmit(now, &out) {
				in := transport.Incoming{At: now, Src: transport.HostID(i), Port: out.DstPort, Header: out.Header[:out.N]}
				if out.SrcPort < 49152 || out.Size < 64 || out.Payload != 0 {
					t.Fatalf("a message from port %d of %d bytes", out.SrcPort, out.Size)
				}
				if _, err := w.hosts[out.Dst].Receive(now, &in); err != nil {
					t.Fatal(err)
				}
				i = 0 // the other may answer
			}
		}
		now += units.Microsecond
	}
}

func TestHostKeepsItsClockBesideItsWork(t *testing.T) {
	var w hostPair
	for i := range w.hosts {
		h, err := New(clockedPlan(transport.HostID(i)), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Start(0)
		w.hosts[i] = h
	}
	if w.hosts[0].Done() || w.hosts[0].Resting() {
		t.Error("a host is done before its time")
	}
	w.run(t, 21*units.Millisecond)
	if !w.hosts[0].Done() || !w.hosts[0].Resting() {
		t.Error("a host without items is not done in time")
	}
	r, ok := w.hosts[1].Clock(21 * units.Millisecond)
	if !ok || r.Packets == 0 || len(r.Samples) != 22 {
		t.Fatalf("%d messages, %d samples", r.Packets, len(r.Samples))
	}
	if first, last := r.Samples[1], r.Samples[21]; first.State == clocksync.Locked || last.State != clocksync.Locked {
		t.Errorf("the clock went from %v to %v", first, last)
	}
}

func TestStampsOfAClockReachTheHeader(t *testing.T) {
	p := clockedPlan(0)
	p.Clock.Sync = node.None
	h, err := New(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Start(0)
	in := transport.Incoming{At: 5, Header: make([]byte, wire.DataSize)}
	_, _ = h.Receive(5, &in) // no connection has it
	if in.ClockOffset != units.Microsecond {
		t.Errorf("a packet is stamped %d ps off, want the clock's offset", in.ClockOffset)
	}
}

func TestHostRefusesWhatNobodyListensTo(t *testing.T) {
	p := clockedPlan(0)
	p.Clock, p.Until = nil, 0
	h, err := New(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Receive(1, &transport.Incoming{At: 1, Port: clocksync.EventPort, Header: []byte{1}}); err == nil {
		t.Error("a host without synchronization takes its messages")
	}
	if _, ok := h.Clock(1); ok {
		t.Error("a host without a clock reports one")
	}
	for what, change := range map[string]func(*Plan){
		"another's clock": func(p *Plan) { p.Clock.Setup.Self = 1 },
		"a bad clock":     func(p *Plan) { p.Clock.Stamp = noise.Stamp{Jitter: -1} },
		"bad background":  func(p *Plan) { p.Background = &Background{Load: 2} },
	} {
		p := clockedPlan(0)
		if change(&p); p.Clock != nil {
			if _, err := New(p, nil, nil); err == nil {
				t.Errorf("%s is accepted", what)
			}
		}
	}
}

func TestBackgroundHasItsLoad(t *testing.T) {
	p := clockedPlan(0)
	p.Clock, p.Background = nil, &Background{Load: 0.5, Burst: 4, Packet: 1000, Hosts: 3}
	h, err := New(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Start(0)
	var out transport.Outgoing
	var sent units.Bytes
	to := map[transport.HostID]int{}
	line := units.NewLine(100 * units.Gbps)
	now := units.Time(0)
	for now < 20*units.Millisecond {
		if h.Transmit(now, &out) {
			if out.DstPort != DiscardPort || out.Dst == 0 || out.Dst > 2 || out.Size != 1000 {
				t.Fatalf("a packet of %d bytes to host %d, port %d", out.Size, out.Dst, out.DstPort)
			}
			sent += out.Size
			to[out.Dst]++
			now += line.Transmit(out.Size)
			continue
		}
		d, ok := h.Deadline()
		if !ok {
			t.Fatal("nothing more comes")
		}
		now = max(now+1, d)
		h.Advance(now)
	}
	whole := (100 * units.Gbps).BytesIn(20 * units.Millisecond)
	if share := float64(sent) / float64(whole); share < 0.48 || share > 0.52 {
		t.Errorf("%.3f of the line, want half", share)
	}
	if to[1] < to[2]/2 || to[2] < to[1]/2 {
		t.Errorf("hosts get %v", to)
	}
	if _, err := h.Receive(now, &transport.Incoming{At: now, Port: DiscardPort}); err != nil {
		t.Errorf("what is to be discarded is refused: %v", err)
	}
	if !h.Resting() {
		t.Error("background traffic is work")
	}
}
