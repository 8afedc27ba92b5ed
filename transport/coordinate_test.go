package transport

import (
	"errors"
	"testing"

	"weft/params"
	"weft/transport/cc/ccm"
	"weft/transport/cc/dcqcn"
	"weft/transport/wire"
	"weft/units"
)

// pathObserver counts how often a sender set and cleared its coordination and moved to another
// path.
type pathObserver struct{ set, cleared, moved int }

func (*pathObserver) Acked(units.Time, ConnID, Acked)    {}
func (*pathObserver) Limited(units.Time, ConnID, Limits) {}
func (w *pathObserver) Coordinated(_ units.Time, _ ConnID, cc bool, moved bool) {
	switch {
	case moved:
		w.moved++
	case cc:
		w.set++
	default:
		w.cleared++
	}
}

// coordinatedSender returns host 0 of four with a CCM connection to host 1 from port 50000. Nodes
// from 4 on are switches.
func coordinatedSender(t *testing.T, paths int) (*Endpoint, *pathObserver) {
	t.Helper()
	w := &pathObserver{}
	d := params.Defaults[dcqcn.Params]()
	e, err := New(Config{Host: 0, MTU: 1000, LineRate: 100 * units.Gbps, Switches: 4, Observer: w})
	if err == nil {
		s := toySpec(ccm.Params{DCQCN: &d, Timeout: units.Millisecond, Paths: paths, LastResort: ccm.Untagged}, "ccm")
		s.SrcPort, s.NetRTT = 50000, units.Millisecond // no probe in between
		err = e.Open(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

// notice returns a packet with a switch's notice.
func notice(n wire.Notice, from HostID) *Incoming {
	b := make([]byte, wire.NoticeSize)
	n.Encode(b)
	return &Incoming{Src: from, Header: b}
}

// sendTagged sends a packet and returns its coordination tag and source port.
func sendTagged(t *testing.T, e *Endpoint, now units.Time) (wire.Coordination, uint16) {
	t.Helper()
	var out Outgoing
	if err := e.Send(now, 1, Message{ID: uint32(now), Size: 1000}); err != nil {
		t.Fatal(err)
	}
	if !e.Transmit(now, &out) {
		t.Fatal("nothing leaves")
	}
	return wire.PeekCoordination(out.Header[:out.N]), out.SrcPort
}

// CCM draft, section 6.4: type 1 sets the CC indicator of that flow, type 2 clears it, type 3 moves
// it to another path.
func TestSourceHandlesNotifications(t *testing.T) {
	e, w := coordinatedSender(t, 4)
	us := units.Microsecond
	if tag, port := sendTagged(t, e, us); !tag.On || tag.CC || tag.AR != wire.AskSource || port != 50000 {
		t.Fatalf("at first %+v, port %d", tag, port)
	}
	tell := func(at units.Time, kind wire.NoticeKind) {
		t.Helper()
		if _, err := e.Receive(at+us, notice(wire.Notice{Kind: kind, Src: 0, Dst: 1, SrcPort: 50000, Switch: 5, At: at}, 5)); err != nil {
			t.Fatal(err)
		}
	}
	tell(10*us, wire.NeedsCC)
	if tag, _ := sendTagged(t, e, 20*us); !tag.CC {
		t.Error("type 1 did not set the indicator")
	}
	tell(30*us, wire.Released)
	if tag, _ := sendTagged(t, e, 40*us); tag.CC {
		t.Error("type 2 did not unset it")
	}
	tell(50*us, wire.NeedsPath)
	if _, port := sendTagged(t, e, 60*us); port != 50001 {
		t.Errorf("type 3: port %d", port)
	}
	if c := e.Counters(); c.Notices != 3 || c.Repaths != 1 || c.BadPackets != 0 || *w != (pathObserver{1, 1, 1}) {
		t.Errorf("%+v, %+v", c, *w)
	}
}

// A source with one path signals that nothing upstream can choose (CCM draft, section 6.1).
func TestOnePathIsNoARPoint(t *testing.T) {
	e, _ := coordinatedSender(t, 1)
	if tag, _ := sendTagged(t, e, 1); tag.AR != 0 || !tag.On {
		t.Errorf("%+v", tag)
	}
}

// Notices that are forged, replayed, damaged or about flows of other hosts are rejected and
// counted, and change nothing.
func TestForgedNoticesAreRefused(t *testing.T) {
	e, w := coordinatedSender(t, 4)
	us := units.Microsecond
	good := wire.Notice{Kind: wire.NeedsCC, Src: 0, Dst: 1, SrcPort: 50000, Switch: 5, At: 10 * us}
	change := func(f func(*wire.Notice)) wire.Notice { n := good; f(&n); return n }
	damaged := notice(good, 5)
	damaged.Header[20] ^= 1
	long := notice(good, 5)
	long.Payload = 1
	for name, c := range map[string]struct {
		in   *Incoming
		want error
	}{
		"from a host":            {notice(good, 2), ErrForeign},
		"as a host":              {notice(change(func(n *wire.Notice) { n.Switch = 2 }), 2), ErrForeign},
		"of another switch":      {notice(good, 6), ErrForeign},
		"about an unknown port":  {notice(change(func(n *wire.Notice) { n.SrcPort = 50004 }), 5), ErrUnknownConn},
		"about an unknown peer":  {notice(change(func(n *wire.Notice) { n.Dst = 2 }), 5), ErrUnknownConn},
		"about another's flow":   {notice(change(func(n *wire.Notice) { n.Src = 3 }), 5), ErrUnknownConn},
		"damaged":                {damaged, wire.ErrCheck},
		"with a payload":         {long, ErrProtocol},
		"from the future":        {notice(change(func(n *wire.Notice) { n.At = units.Second }), 5), ccm.ErrReplay},
		"older than the timeout": {notice(change(func(n *wire.Notice) { n.At = 0 }), 5), ccm.ErrReplay},
	} {
		if _, err := e.Receive(5*units.Millisecond/4, c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	now := 20 * us
	if _, err := e.Receive(now, notice(good, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Receive(now, notice(change(func(n *wire.Notice) { n.Kind, n.At = wire.Released, 11*us }), 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Receive(now, notice(good, 5)); !errors.Is(err, ccm.ErrReplay) {
		t.Errorf("again: %v", err)
	}
	if c := e.Counters(); c.BadPackets != 11 || c.Notices != 2 || *w != (pathObserver{1, 1, 0}) {
		t.Errorf("%+v, %+v", c, *w)
	}
}
