package transport_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weft/transport"
	"weft/transport/cc/uec"
	"weft/transport/wire"
	"weft/units"
)

var (
	controls = []uec.Control{uec.NSCC, uec.RCCC, uec.Both}
	choices  = []uec.Choice{uec.Mixed, uec.REPS, uec.Bitmap, uec.Oblivious, uec.ECMP}
)

// defaultsOf returns the default parameters of a control and a choice of paths.
func defaultsOf(control uec.Control, choice uec.Choice) uec.Params {
	p := uec.Params{CC: control, Paths: choice}
	for _, k := range p.Keys() {
		if text, _ := k.Standard(); text != "" && k.Name != "cc" && k.Name != "paths" {
			if _, err := k.Value.Set(text, false); err != nil {
				panic(err)
			}
		}
	}
	return p
}

// connectUEC opens a connection of the transport uec between two hosts.
func (l *lossy) connectUEC(c transport.ConnID, src, dst int, control uec.Control, choice uec.Choice) {
	p := defaultsOf(control, choice)
	l.rto[c] = transport.DefaultRTOMin
	if err := l.Connect(transport.Spec{
		ID: c, Src: transport.HostID(src), Dst: transport.HostID(dst), Kind: "uec", CC: p, Tries: 1000,
	}); err != nil {
		l.t.Fatalf("%v", err)
	}
}

// Whatever the network loses, duplicates, reorders and trims, up to 30 % each: every byte arrives
// exactly once, the run ends, and no stall exceeds three timeouts.
func TestUECDeliversEveryByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := func(name string) float64 { return rapid.Float64Range(0, 0.3).Draw(t, name) }
		f := faults{loss: share("loss"), copies: share("copies"), hold: share("reorder"), trim: share("trim")}
		drawMessages(t, f, func(l *lossy, c transport.ConnID, src, dst int) {
			l.connectUEC(c, src, dst, rapid.SampledFrom(controls).Draw(t, "cc"), rapid.SampledFrom(choices).Draw(t, "paths"))
		})
	})
}

// The same at the highest fault rates, with messages of hundreds of packets in both directions:
// 28 to 32 % of the packets that are not lost are trimmed, under every control with every choice of
// paths.
func TestUECUnderHeavyLoss(t *testing.T) {
	for _, control := range controls {
		whole, trimmed := 0, 0
		for seed := range uint64(4) {
			l := newLossy(t, faults{loss: 0.3, copies: 0.3, hold: 0.3, trim: 0.3}, seed, 1000)
			for c, ends := range [][2]int{{0, 1}, {1, 0}, {2, 1}} {
				l.connectUEC(transport.ConnID(c), ends[0], ends[1], control, choices[(int(seed)+c)%len(choices)])
				for i := range uint32(3) {
					l.queue(0, ends[0], transport.ConnID(c), transport.Message{ID: i, Size: 300_000 + units.Bytes(i)})
				}
			}
			l.close()
			var c transport.Counters
			for _, e := range l.Hosts {
				c.Add(e.Counters())
			}
			if c.Timeouts == 0 || (c.CreditsIn > 0) != (control != uec.NSCC) {
				t.Errorf("control %d: %+v", control, c)
			}
			whole, trimmed = whole+l.whole, trimmed+l.testNet.Trimmed
		}
		if share := float64(trimmed) / float64(whole); share < 0.28 || share > 0.32 {
			t.Errorf("control %d: %d of %d packets were trimmed", control, trimmed, whole)
		}
		t.Logf("control %d: %d of %d packets were trimmed", control, trimmed, whole)
	}
}

// A trimmed packet costs one round trip and no timeout, and is all that leaves again. The rejection
// names it.
func TestTrimmedPacketLeavesAgainAtOnce(t *testing.T) {
	for _, control := range controls {
		t.Run(fmt.Sprint(control), func(t *testing.T) {
			data := 0
			net, err := newNet(netConfig{
				Hosts: 2, Line: 100 * units.Gbps, Delay: units.Microsecond, MTU: 4000,
				Fault: func(_ units.Time, p *netPacket) (f netFault) {
					if p.Payload > 0 {
						data++
						f.Trim = data == 3
					}
					return f
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			p := defaultsOf(control, uec.Mixed)
			if err := net.Connect(transport.Spec{ID: 0, Src: 0, Dst: 1, Kind: "uec", CC: p}); err != nil {
				t.Fatal(err)
			}
			var done units.Time
			net.Events[0] = func(e transport.Event) { done = e.At }
			if err := net.Send(0, 0, transport.Message{Size: 40_000}); err != nil {
				t.Fatal(err)
			}
			net.Run(units.Second)
			c, d := net.Hosts[0].Counters(), net.Hosts[1].Counters()
			if c.Retransmits != 1 || c.Timeouts != 0 || d.Trimmed != 1 || d.Naks != 1 || d.Duplicates != 0 || net.Trimmed != 1 {
				t.Errorf("sender %+v, receiver %+v", c, d)
			}
			if done == 0 || done > 20*units.Microsecond {
				t.Errorf("done after %v", done)
			}
		})
	}
}

// If almost all of the first window is trimmed, what arrived is less than a receiver acknowledges,
// and more than the window that is left. The sender asks for an acknowledgement, and waits for no
// timeout.
func TestShrunkenWindowAsksForAcknowledgement(t *testing.T) {
	data := 0
	net, err := newNet(netConfig{
		Hosts: 2, Line: 100 * units.Gbps, Delay: units.Microsecond, MTU: 4000,
		Fault: func(_ units.Time, p *netPacket) (f netFault) {
			if p.Payload > 0 {
				data++
				f.Trim = data > 3 && data < 60
			}
			return f
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := net.Connect(transport.Spec{ID: 0, Src: 0, Dst: 1, Kind: "uec", CC: defaultsOf(uec.NSCC, uec.Mixed)}); err != nil {
		t.Fatal(err)
	}
	var done units.Time
	net.Events[0] = func(e transport.Event) { done = e.At }
	if err := net.Send(0, 0, transport.Message{Size: 200_000}); err != nil {
		t.Fatal(err)
	}
	net.Run(units.Second)
	if c := net.Hosts[0].Counters(); c.Timeouts != 0 || c.Probes == 0 || c.Probes > 10 || done == 0 || done > 500*units.Microsecond {
		t.Errorf("done after %v: %+v", done, c)
	}
}

// A header that gets lost costs one timeout of its own packet, however much else arrives.
func TestLostHeaderCostsItsOwnTimeout(t *testing.T) {
	const rto = 50 * units.Microsecond
	var lost units.Time
	var again []units.Time
	net, err := newNet(netConfig{
		Hosts: 2, Line: 100 * units.Gbps, Delay: units.Microsecond, MTU: 4000,
		Fault: func(now units.Time, p *netPacket) (f netFault) {
			var d wire.Data
			if d.Decode(p.Header) == nil && d.PSN == 5 {
				f.Drop = lost == 0
				lost = max(lost, 1)
				again = append(again, now)
			}
			return f
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := net.Connect(transport.Spec{ID: 0, Src: 0, Dst: 1, Kind: "uec", CC: defaultsOf(uec.NSCC, uec.Mixed), RTOMin: rto}); err != nil {
		t.Fatal(err)
	}
	if err := net.Send(0, 0, transport.Message{Size: 2_000_000}); err != nil {
		t.Fatal(err)
	}
	net.Run(units.Second)
	if c := net.Hosts[0].Counters(); c.Timeouts != 1 || c.Retransmits != 1 || c.Recoveries != 0 {
		t.Errorf("%+v", c)
	}
	if wait := again[1] - again[0]; wait < rto || wait > rto+units.Microsecond {
		t.Errorf("the packet left again after %v", wait)
	}
}

// Rejections show that the receiver is alive. A connection whose packets are all rejected bears
// that as long as it bears silence, and then fails, as after silence: it does not go on for ever.
func TestRejectedForEver(t *testing.T) {
	const rto = 50 * units.Microsecond
	silence := rto << (transport.DefaultTries + 1)
	for _, control := range controls {
		for _, trims := range []units.Time{silence / 2, units.Second} {
			net, err := newNet(netConfig{
				Hosts: 2, Line: 100 * units.Gbps, Delay: units.Microsecond, MTU: 4000,
				Fault: func(now units.Time, p *netPacket) netFault {
					return netFault{Trim: p.Payload > 0 && now > 10*units.Microsecond && now < trims}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := transport.Spec{Src: 0, Dst: 1, Kind: "uec", CC: defaultsOf(control, uec.Mixed), RTOMin: rto, Tries: 2}
			if err := net.Connect(s); err != nil {
				t.Fatal(err)
			}
			var ends []transport.Event
			net.Events[0] = func(e transport.Event) { ends = append(ends, e) }
			if err := net.Send(0, 0, transport.Message{Size: 2_000_000}); err != nil {
				t.Fatal(err)
			}
			net.Run(units.Second)
			switch {
			case len(ends) != 1:
				t.Errorf("cc %v, packets rejected until %v: %d ends", control, trims, len(ends))
			case trims < silence && ends[0].Kind != transport.MessageAcked:
				t.Errorf("cc %v, packets rejected until %v: %+v", control, trims, ends[0])
			case trims > silence && (ends[0].Kind != transport.ConnFailed || ends[0].At < silence || ends[0].At > 2*silence):
				t.Errorf("cc %v, packets rejected until %v: %+v", control, trims, ends[0])
			}
		}
	}
}

// Under RCCC two senders share their receiver's line by its credits, which add up to a little less
// than the line. Credits are all that an observer sees of it.
func TestCreditsAddUpToTheLine(t *testing.T) {
	const size = 10_000_000
	seen := &countingObserver{}
	net, err := newNet(netConfig{
		Hosts: 3, Line: 100 * units.Gbps, Delay: units.Microsecond, MTU: 4000, Buffer: units.MB,
		Observer: func(int) transport.Observer { return seen },
	})
	if err != nil {
		t.Fatal(err)
	}
	p := defaultsOf(uec.RCCC, uec.Mixed)
	var done [2]units.Time
	for c := range done {
		if err := net.Connect(transport.Spec{ID: transport.ConnID(c), Src: transport.HostID(c), Dst: 2, Kind: "uec", CC: p}); err != nil {
			t.Fatal(err)
		}
		net.Events[c] = func(e transport.Event) { done[c] = e.At }
		if err := net.Send(c, transport.ConnID(c), transport.Message{Size: size}); err != nil {
			t.Fatal(err)
		}
	}
	net.Run(units.Second)
	whole := (100 * units.Gbps).TransmitTime(2 * size * 4106 / 4000)
	for c, at := range done {
		if at < whole*97/100 || at > whole*103/100 {
			t.Errorf("connection %d is done after %v, both take %v of the line", c, at, whole)
		}
	}
	if net.MaxQueue > 100*units.KB {
		t.Errorf("%d bytes waited", net.MaxQueue)
	}
	in := net.Hosts[0].Counters().CreditsIn
	if in < size/int64(p.PerCredit) {
		t.Errorf("%d credits", in)
	}
	if l := seen.limits; !l.Credited || l.Window != 0 || l.Rate != 0 || seen.windows < int(in) {
		t.Errorf("%d changes seen, the last %+v, of %d credits", seen.windows, l, in)
	}
}

// A credit that is lost, and with it all that says that one is wanted, costs one timeout.
func TestLostCreditsAreAskedFor(t *testing.T) {
	deaf := false
	net, err := newNet(netConfig{
		Hosts: 2, Line: 100 * units.Gbps, Delay: units.Microsecond, MTU: 4000,
		Fault: func(now units.Time, p *netPacket) (f netFault) {
			typ, _ := wire.Peek(p.Header)
			f.Drop = typ == wire.TypeCredit && deaf
			return f
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := defaultsOf(uec.RCCC, uec.Mixed)
	if err := net.Connect(transport.Spec{ID: 0, Src: 0, Dst: 1, Kind: "uec", CC: p}); err != nil {
		t.Fatal(err)
	}
	acked := 0
	net.Events[0] = func(e transport.Event) {
		if e.Kind != transport.MessageAcked {
			t.Fatalf("%+v", e)
		}
		acked++
	}
	if err := net.Send(0, 0, transport.Message{Size: 5_000_000}); err != nil {
		t.Fatal(err)
	}
	net.At(20*units.Microsecond, func() { deaf = true })
	net.At(500*units.Microsecond, func() { deaf = false })
	net.Run(units.Second)
	if c := net.Hosts[0].Counters(); acked != 1 || c.Probes == 0 || c.Retransmits != 0 {
		t.Errorf("%d acknowledged, %+v", acked, c)
	}
}

// Targets of any size keep a receiver's pacer busy for two maximum windows at most, and forged
// packets change nothing but the counter of bad ones.
func TestHostileRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := transport.Path{Propagation: 2 * us, Rates: []units.Bandwidth{units.Gbps}}
		e := pairEndpoint(t, units.Gbps, transport.Spec{Kind: "uec", CC: defaultsOf(uec.Both, uec.Mixed), Forward: path, Reverse: path})
		var out transport.Outgoing
		now, refused := units.Time(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "packets") {
			now += units.Time(rapid.Int64Range(0, int64(20*us)).Draw(t, "wait"))
			in := transport.Incoming{At: now, Src: transport.HostID(rapid.IntRange(0, 2).Draw(t, "src"))}
			var b [transport.MaxHeader]byte
			conn, psn := uint32(rapid.IntRange(0, 2).Draw(t, "conn")), rapid.Uint32Range(0, 25).Draw(t, "psn")
			due := units.Time(rapid.Int64().Draw(t, "due"))
			switch rapid.IntRange(0, 3).Draw(t, "type") {
			case 0:
				(&wire.Reject{Conn: conn, PSN: psn, Due: due}).Encode(b[:])
				in.Header = b[:wire.RejectSize]
			case 1:
				(&wire.Credit{Conn: conn, Granted: rapid.Uint32().Draw(t, "granted")}).Encode(b[:])
				in.Header = b[:wire.CreditSize]
			case 2:
				p := wire.Probe{Conn: conn, PSN: psn, SentAt: due, Request: wire.Request{On: true, Target: rapid.Uint32().Draw(t, "target")}}
				p.Encode(b[:])
				in.Header = b[:p.Len()]
			default:
				d := wire.Data{Flags: wire.Announce, Conn: conn, PSN: psn, Payload: 1, Size: 1, SentAt: due,
					Request: wire.Request{On: true, Target: rapid.Uint32().Draw(t, "target")}, Trimmed: rapid.Bool().Draw(t, "trimmed")}
				d.Encode(b[:])
				in.Header = b[:d.Len()]
				if !d.Trimmed {
					in.Payload = 1
				}
			}
			if _, err := e.Receive(now, &in); err != nil {
				refused++
			}
			for range 3 {
				e.Transmit(now, &out)
			}
		}
		if got := e.Counters().BadPackets; got != refused {
			t.Fatalf("%d refused, %d counted", refused, got)
		}
		credits := e.Counters().Credits
		for end := now + 100*units.Millisecond; now < end; now += 100 * us {
			for e.Transmit(now, &out) {
			}
		}
		if more := e.Counters().Credits - credits; more > 100 {
			t.Fatalf("%d credits after the last request", more)
		}
	})
}
