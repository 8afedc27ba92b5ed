package host

import (
	"errors"
	"strings"
	"testing"

	"weft/collectives/schedule"
	"weft/transport"
	"weft/units"
)

func TestNewRefuses(t *testing.T) {
	for want, change := range map[string]func(p *Plan){
		"endpoint is of host 1":            func(p *Plan) { p.Endpoint.Host = 1 },
		"mtu":                              func(p *Plan) { p.Endpoint.MTU = 0 },
		"is open already":                  func(p *Plan) { p.Conns = append(p.Conns, p.Conns[0]) },
		"repeated 0 times":                 func(p *Plan) { p.Items[0].Repeat = 0 },
		"has no algorithm":                 func(p *Plan) { p.Items[0].Algorithm = "telepathy" },
		"rank 7 is not below 3":            func(p *Plan) { p.Items[0].Rank = 7 },
		"does not begin here":              func(p *Plan) { p.Items[0].Conns[0].Conn = 9999 },
		"does not end here":                func(p *Plan) { p.Items[0].Expect[0].Conn = 9999 },
		"leads to host 1, which is not":    func(p *Plan) { p.Items[0].Conns[0].Rank = 2 },
		"leads to host 2, which is not":    func(p *Plan) { p.Items[0].Expect[0].Rank = 9 },
		"is listed twice":                  func(p *Plan) { p.Items[0].Conns = append(p.Items[0].Conns, p.Items[0].Conns[0]) },
		"carry more than 2^32 messages":    func(p *Plan) { p.Items[0].Repeat = 1 << 40 },
		"connection 100 to rank 1 would c": func(p *Plan) { p.Items[1].Repeat = 1<<30 + 1 },
	} {
		p := plansOf(t, 3, []job{{Spec: ringAllReduce(1200, 0)}, {Spec: ringAllReduce(1200, 0)}})[0]
		change(&p)
		_, err := New(p, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "h0") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// oneWayPair returns two hosts with one item from h0 to h1. change alters h1's plan, so that the
// two disagree.
func oneWayPair(t *testing.T, change func(p *Plan)) *network {
	net := newNetwork(2)
	for i, p := range plansOf(t, 2, []job{{Spec: incast(8*units.KB, 1), repeat: 2}}) {
		if i == 1 && change != nil {
			change(&p)
		}
		h, err := New(p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		net.hosts = append(net.hosts, h)
	}
	return net
}

// What the receiver's plan does not know is an error, never part of a result.
func TestMismatchFails(t *testing.T) {
	for want, change := range map[string]func(p *Plan){
		"expects another size":    func(p *Plan) { p.Items[0].Size = 4 * units.KB },
		"no step of the plan rec": func(p *Plan) { p.Items[0].Repeat = 1 },
		"no step of the plan":     func(p *Plan) { p.Items = nil },
	} {
		net := oneWayPair(t, change)
		net.run(t)
		// A host without items is done before anything comes: go on for as long as packets do.
		for net.hosts[1].Failed() == nil && net.step() {
		}
		err := net.hosts[1].Failed()
		var m *MessageError
		if !errors.As(err, &m) || !strings.Contains(err.Error(), want) || m.Host != "h1" || m.From != 0 {
			t.Errorf("error %v, want %q", err, want)
		}
		if !strings.Contains(net.hosts[1].Waiting(), want) {
			t.Errorf("waiting %q", net.hosts[1].Waiting())
		}
	}
}

// A program that sends where the plan has no connection fails when it gets there, by name.
func TestNoConnection(t *testing.T) {
	for i, change := range []func(p *Plan){
		func(p *Plan) { p.Items[0].Conns = nil },
		func(p *Plan) { p.Items[0].Expect = nil },
	} {
		net := newNetwork(3)
		for r, p := range plansOf(t, 3, []job{{Spec: ringAllReduce(1200, 0)}}) {
			if r == 0 {
				change(&p)
			}
			h, err := New(p, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			net.hosts = append(net.hosts, h)
		}
		net.run(t)
		if err := net.hosts[0].Failed(); !errors.Is(err, errNoConn) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// Messages handed to the machine below the transport, as a broken transport might.
func TestArriveRefuses(t *testing.T) {
	fresh := func() (*Host, transport.ConnID) {
		net := oneWayPair(t, nil)
		h := net.hosts[1]
		h.Start(0)
		return h, h.in[0].conn
	}
	h, c := fresh()
	first := transport.Placement{Conn: c, Size: 8 * units.KB, Payload: 4096}
	m, _, err := h.arrive(&first)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := h.arrive(&first); err != nil || again != m {
		t.Errorf("the second packet: %p, %v", again, err)
	}
	m.closed, h.in[0].last = true, nil
	if _, _, err := h.arrive(&first); !errors.Is(err, errTwice) {
		t.Errorf("a message that is complete: %v", err)
	}
	for want, pl := range map[error]transport.Placement{
		errNoReceive: {Conn: c, Message: 1, Tag: 0, Size: 8 * units.KB, Payload: 1},
		errSize:      {Conn: c, Message: 1, Tag: 1, Size: 4 * units.KB, Payload: 1},
	} {
		if _, _, err := h.arrive(&pl); !errors.Is(err, want) {
			t.Errorf("%+v: %v", pl, err)
		}
	}
	if _, _, err := h.arrive(&transport.Placement{Conn: 9999}); err == nil {
		t.Error("an unknown connection")
	}
	h, _ = fresh()
	h.runs[0].repeat = 1
	if _, _, err := h.arrive(&first); !errors.Is(err, errTwice) {
		t.Errorf("a repetition that is over: %v", err)
	}
	h, _ = fresh()
	if h.arriving, h.offset, err = h.arrive(&first); err != nil {
		t.Fatal(err)
	}
	h.land(0, &first, nil)
	h.land(0, &first, nil)
	if !errors.Is(h.Failed(), errOverlap) {
		t.Errorf("a packet placed twice: %v", h.Failed())
	}
	h, _ = fresh()
	h.closed(0, &transport.Event{Conn: c, Message: transport.Message{Size: 8 * units.KB}})
	if !errors.Is(h.Failed(), errIncomplete) {
		t.Errorf("complete without a byte: %v", h.Failed())
	}
}

// When the other side is gone, the run ends by name: host, peer, item, step.
func TestConnectionFails(t *testing.T) {
	net := buildNetwork(t, 3, symbolicMemory, job{Spec: ringAllReduce(30*units.KB, 0)})
	net.lose = func(p *packet) bool { return p.dst == 2 && p.data }
	net.run(t)
	err := net.hosts[1].Failed()
	var s *StepError
	if !errors.As(err, &s) || !errors.Is(err, transport.ErrFailed) {
		t.Fatal(err)
	}
	if s.Host != "h1" || s.Peer != 2 || s.PeerHost != 2 || s.Item != 0 || s.Step != 0 || s.Kind != schedule.Send {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"host h1", "all-reduce", "send of 10000 bytes", "host 2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	unfinished := 0
	for _, f := range net.hosts[1].Flows() {
		if f.Acked == 0 {
			unfinished++
			if f.Size != 10*units.KB || f.Dst != 2 {
				t.Errorf("%+v", f)
			}
		}
	}
	if unfinished == 0 {
		t.Error("the flow that failed is not among them")
	}
	// It goes no further, but still answers.
	acks := net.hosts[1].Counters().Acks
	for range 1000 {
		net.step()
	}
	if net.hosts[1].Done() || net.hosts[1].Counters().Acks < acks {
		t.Error("a failed host went on")
	}
}

// A stalled run says what each host waits for.
func TestWaiting(t *testing.T) {
	net := buildNetwork(t, 3, noMemory,
		job{Spec: ringAllReduce(90*units.KB, 0)},
		job{Spec: ringAllReduce(90*units.KB, 0), previous: true},
		job{Spec: ringAllReduce(90*units.KB, 0), start: units.Second})
	if w := net.hosts[0].Waiting(); w != "host h0: was not started" {
		t.Errorf("%q", w)
	}
	packets := 0
	net.lose = func(p *packet) bool { // h1 sends one packet and falls silent
		if p.src == 1 {
			packets++
		}
		return p.src == 1 && packets > 1
	}
	for i, h := range net.hosts {
		h.Start(0)
		net.transmit(i)
	}
	for net.now < 30*units.Microsecond {
		net.step()
	}
	want := "host h2: item 0 (all-reduce ring), rank 2, repetition 0 of 1, 7 of 8 steps left: " +
		"step 1, 4096 of 30000 bytes from rank 1 on host 1; " +
		"step 3, 0 of 30000 bytes from rank 1 on host 1; step 5, 0 of 30000 bytes from rank 1 on host 1; " +
		"item 1 (all-reduce) starts after the one before it; " +
		"item 2 (all-reduce) starts at 1000000.000 us"
	if w := net.hosts[2].Waiting(); w != want {
		t.Errorf("%q\nwant\n%q", w, want)
	}
	if w := net.hosts[0].Waiting(); !strings.Contains(w, "step 0, 30000 bytes sent to rank 1 on host 1 and not acknowledged") {
		t.Errorf("%q", w)
	}
}
