package transport_test

import (
	"errors"
	"math"
	"testing"

	"weft/params"
	"weft/transport"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/swift"
	"weft/transport/wire"
	"weft/units"
)

// withKind returns s with another transport in its default parameters.
func withKind(kind string, s transport.Spec) transport.Spec {
	s.Kind = kind
	switch kind {
	case "roce":
		s.CC = params.Defaults[dcqcn.Params]()
	case "swift":
		s.CC = params.Defaults[swift.Params]()
	case "hpcc":
		s.CC = params.Defaults[hpcc.Params]()
	}
	return s
}

// CC: the first marked packet lets a notification leave at once, ahead of its acknowledgement, and
// it cuts the rate of its connection, of no other.
func TestMarkBringsANotification(t *testing.T) {
	a, b := withKind("roce", pc4Spec(1)), withKind("roce", pc4Spec(2))
	a.CC, _ = dcqcnPaper()
	b.CC = a.CC
	s := newScript(t, a, b)
	s.send(1, 1, 2000)
	s.send(2, 1, 2000)
	all := s.transmit(s.a)
	s.now += us // packets are paced at the line rate
	all = append(all, s.transmit(s.a)...)
	if len(all) != 4 || !all[0].out.ECT {
		t.Fatalf("%d packets, ECN-capable: %v", len(all), all[0].out.ECT)
	}
	s.now += 3 * us
	for i := range all {
		if _, err := s.b.Receive(s.now, &transport.Incoming{
			At: s.now, Header: all[i].out.Header[:all[i].out.N], Payload: all[i].out.Payload, CE: s.data(all[i]).Conn == 1,
		}); err != nil {
			t.Fatal(err)
		}
	}
	back := s.transmit(s.b)
	if len(back) != 5 { // the second mark of connection 1 came within the interval
		t.Fatalf("%d packets back, want four acknowledgements and a notification", len(back))
	}
	var c wire.CNP
	if err := c.Decode(back[0].out.Header[:back[0].out.N]); err != nil || c.Conn != 1 || c.PSN != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if o := back[0].out; o.Size != 78 || o.Class != 0 || o.ECT || o.Payload != 0 || o.Dst != 0 {
		t.Errorf("%+v", o)
	}
	s.now += 3 * us
	s.deliver(s.a, back...)
	if got, want := s.a.Counters(), int64(1); got.CNPsIn != want || got.AcksIn != 4 {
		t.Errorf("%+v", got)
	}
	if got := s.b.Counters(); got.CNPs != 1 || got.Acks != 4 {
		t.Errorf("%+v", got)
	}
	if at, ok := s.a.Deadline(); !ok || at > s.now+55*us {
		t.Errorf("deadline %v, %v: the recovery timer is not armed", at, ok)
	}
}

// dcqcnPaper returns DCQCN in the paper's mode, and a switch that marks from 40 kB on.
func dcqcnPaper() (dcqcn.Params, func(units.Bytes) bool) {
	return dcqcn.Params{
		Mode: dcqcn.Paper, Clamp: dcqcn.ClampAlways, CNPInterval: 50 * us, G: 1.0 / 256, InitialAlpha: 1, AlphaInterval: 55 * us,
		MinRate: params.Rate{Rate: 100 * units.Mbps}, RPTimer: 55 * us, ByteCounter: 10 * units.MB, F: 5, RAI: params.Rate{Rate: 40 * units.Mbps}, RHAI: params.Rate{Rate: 200 * units.Mbps},
	}, func(queued units.Bytes) bool { return queued > 40*units.KB }
}

func TestNotificationsThatAreRefused(t *testing.T) {
	s := newScript(t, withKind("roce", pc4Spec(1)), pc4Spec(2))
	good := wire.CNP{Conn: 1}
	send := func(c wire.CNP, from transport.HostID, payload units.Bytes, cut int) error {
		header := make([]byte, wire.CNPSize)
		c.Encode(header)
		_, err := s.a.Receive(0, &transport.Incoming{Src: from, Header: header[:len(header)-cut], Payload: payload})
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"cut short", send(good, 1, 0, 1), wire.ErrShort},
		{"unknown connection", send(wire.CNP{Conn: 9}, 1, 0, 0), transport.ErrUnknownConn},
		{"foreign host", send(good, 5, 0, 0), transport.ErrForeign},
		{"with payload", send(good, 1, 7, 0), transport.ErrProtocol},
		{"to a transport that has none", send(wire.CNP{Conn: 2}, 1, 0, 0), transport.ErrProtocol},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
		}
	}
	if got := s.a.Counters(); got.BadPackets != 5 || got.CNPsIn != 0 {
		t.Errorf("%+v", got)
	}
}

// CC: data leaves room for one record per switch, which counts as wire bytes; the acknowledgement
// takes them back.
func TestTelemetryGoesThereAndBack(t *testing.T) {
	s := newScript(t, withKind("hpcc", pc4Spec(1)))
	s.send(1, 1, 1000)
	p := s.transmitOne(s.a)
	if got, want := p.out.N, 56+16; got != want || p.out.Size != units.Bytes(1000+want)+wire.Overhead {
		t.Errorf("header of %d bytes, packet of %d", p.out.N, p.out.Size)
	}
	if d := s.data(p); d.Room != 1 || d.Baseline != 4*us/2+2*(100*units.Gbps).TransmitTime(p.out.Size) {
		t.Errorf("%+v", d)
	}
	h := wire.Hop{At: 2 * us, Sent: 16000, Queued: 6400}
	if d := s.data(p); !d.Records(p.out.Header[:p.out.N]).Stamp(h) {
		t.Fatal("no room")
	}
	s.now += 3 * us
	s.deliver(s.b, p)
	back := s.transmitOne(s.b)
	if got := s.ack(back); got.Room != 1 || back.out.N != 52+16 || back.out.Size != 68+wire.Overhead {
		t.Errorf("%+v in %d bytes", got, back.out.N)
	}
	a := s.ack(back)
	if hops := a.Records(back.out.Header[:back.out.N]).AppendHops(nil); len(hops) != 1 || hops[0] != h {
		t.Errorf("%+v", hops)
	}
	s.now += 3 * us
	s.deliver(s.a, back)
	s.wantEvents(s.a, transport.MessageAcked)
}

// A controller that asks for telemetry cannot work without it: acknowledgements that lack it are
// rejected.
func TestTelemetryThatIsMissing(t *testing.T) {
	s := newScript(t, withKind("hpcc", pc4Spec(1)), pc4Spec(2))
	s.send(1, 1, 1000)
	s.send(2, 1, 1000)
	all := s.transmit(s.a)
	s.now += 3 * us
	s.deliver(s.b, all...)
	back := s.transmit(s.b)
	s.now += 3 * us
	if _, err := s.receive(s.a, &back[0]); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("an acknowledgement without telemetry: %v", err)
	}
	room := forgeAck(wire.Ack{Conn: 2, Expected: 1, SentAt: 0, Count: 1, Room: 1})
	room.out.N += 16
	if _, err := s.receive(s.a, &room); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("telemetry that nobody asked for: %v", err)
	}
	empty := forgeAck(wire.Ack{Conn: 1, Expected: 1, SentAt: 0, Count: 1, Room: 1})
	empty.out.N += 16
	if _, err := s.receive(s.a, &empty); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("room without a record: %v", err)
	}
}

func TestPathsWithoutSwitchesHaveNoTelemetry(t *testing.T) {
	for _, links := range []int{1, wire.MaxHops + 2} {
		c := withKind("hpcc", pc4Spec(1))
		c.Forward.Rates = make([]units.Bandwidth, links)
		for i := range c.Forward.Rates {
			c.Forward.Rates[i] = 100 * units.Gbps
		}
		if err := newEndpoint(t, 0).Open(c); err == nil {
			t.Errorf("hpcc on a path of %d links", links)
		}
	}
}

func TestOpenRefusesBadParameters(t *testing.T) {
	for _, kind := range []string{"roce", "swift", "hpcc", "rocev3"} {
		c := pc4Spec(1)
		c.Kind = kind // its parameters are zero
		if err := newEndpoint(t, 0).Open(c); err == nil {
			t.Errorf("%s without parameters", kind)
		}
	}
}

// runIncast has n hosts of a star send size bytes each to one host, and returns when the last
// message was acknowledged.
func runIncast(t *testing.T, cfg netConfig, n int, size units.Bytes, s transport.Spec) (net *testNet, last units.Time) {
	t.Helper()
	cfg.Hosts = n + 1
	net, err := newNet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for i := 1; i <= n; i++ {
		c := s
		c.ID, c.Src, c.Dst = transport.ConnID(i), transport.HostID(i), 0
		if err := net.Connect(c); err != nil {
			t.Fatal(err)
		}
		net.Events[i] = func(e transport.Event) {
			if e.Kind == transport.MessageAcked {
				done, last = done+1, e.At
			}
		}
		if err := net.Send(i, c.ID, transport.Message{ID: 1, Size: size}); err != nil {
			t.Fatal(err)
		}
	}
	net.Run(10 * units.Second)
	if err := net.CheckConservation(); err != nil {
		t.Error(err)
	}
	if done != n {
		t.Fatalf("%d of %d messages done", done, n)
	}
	for i, e := range net.Hosts {
		if c := e.Counters(); c.BadPackets > 0 {
			t.Errorf("host %d: %+v", i, c)
		}
	}
	return net, last
}

// Scenario B1: one flow has the line to itself (HPCC leaves 5 % of it free).
func TestOneFlow(t *testing.T) {
	for kind, share := range map[string]float64{"roce": 1, "swift": 1, "hpcc": 0.95} {
		cfg := star(0)
		cfg.INT = telemetryApart
		const size = 10 * units.MB
		_, last := runIncast(t, cfg, 1, size, withKind(kind, transport.Spec{}))
		over := wire.DataSize + wire.Overhead
		if kind == "hpcc" {
			over += wire.TelemetrySize(1)
		}
		packets := (size + 4095) / 4096
		ideal := (100*units.Gbps).TransmitTime(size+packets*over).Seconds()/share + 4.7e-6
		if got := last.Seconds() / ideal; math.Abs(got-1) > 0.02 {
			t.Errorf("%s: %v, %.3f of the ideal", kind, last, got)
		}
	}
}

// An N-to-1 incast takes about as long as the line needs, without losses in a buffer that holds the
// first windows. DCQCN with the parameters of NICs recovers its rate slowly: scenario B2, which
// keeps the line full, needs pauses.
func TestIncast(t *testing.T) {
	_, mark := dcqcnPaper()
	for _, kind := range []string{"roce", "swift", "hpcc"} {
		for _, where := range []netTelemetry{telemetryApart, telemetryInHeader} {
			cfg := star(0)
			cfg.INT, cfg.Buffer, cfg.Mark = where, 0, mark
			net, last := runIncast(t, cfg, 16, 5*units.MB, withKind(kind, transport.Spec{}))
			share := cfg.Line.TransmitTime(16*5*units.MB).Seconds() / last.Seconds()
			if share < 0.75 || kind != "roce" && share < 0.88 {
				t.Errorf("%s: %v, %.1f %% of the line", kind, last, 100*share)
			}
			var c transport.Counters
			for _, e := range net.Hosts {
				c.Add(e.Counters())
			}
			if (c.CNPsIn > 0) != (kind == "roce") || c.CNPs != c.CNPsIn || c.Retransmits > 0 {
				t.Errorf("%s: %+v", kind, c)
			}
		}
	}
}

// Bolt's Swift, which waits instead of pacing: in a burst of 400 flows from 20 hosts, windows fall
// far below a packet, and every wait ends.
func TestBoltCompatIncast(t *testing.T) {
	cfg := star(21)
	cfg.Buffer = 0
	net, err := newNet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	var last units.Time
	for i := range 400 {
		s := withKind("swift", transport.Spec{ID: transport.ConnID(i), Src: transport.HostID(1 + i%20)})
		changeParams(&s, func(p *swift.Params) { p.BoltCompat = true })
		if err := net.Connect(s); err != nil {
			t.Fatal(err)
		}
		net.Events[s.Src] = func(e transport.Event) { done, last = done+1, e.At }
		if err := net.Send(int(s.Src), s.ID, transport.Message{ID: 1, Size: 200 * units.KB}); err != nil {
			t.Fatal(err)
		}
	}
	net.Run(units.Second)
	if err := net.CheckConservation(); err != nil {
		t.Error(err)
	}
	if ideal := cfg.Line.TransmitTime(400 * 200 * units.KB); done != 400 || last < ideal || last > 3*ideal {
		t.Errorf("%d of 400 done, the last at %v; the line needs %v", done, last, ideal)
	}
}
