package run

import (
	"errors"
	"testing"

	"weft/collectives/symbolic"
	"weft/host"
	"weft/sim"
	"weft/transport"
	"weft/transport/cc/ccm"
	"weft/transport/wire"
	"weft/units"
)

const forgedLab = `
weft: 1
name: forged
topology: {kind: star, hosts: 4}
transport: {kind: ccm, ccm: {paths: 4}}
workload: [{collective: incast, ranks: [h0], root: h1, size: 20MB}]
`

// simulateHosts simulates forgedLab with hosts that wrap returns, and returns them and the end of
// the run. wrap has the index of the host.
func simulateHosts[H sim.Host](t *testing.T, wrap func(i int, h *host.Host) H) ([]H, units.Time) {
	t.Helper()
	x := build(t, forgedLab)
	exchange := symbolic.New(x.Lab.Seed)
	hosts := make([]H, len(x.Plans))
	for i, p := range x.Plans {
		h, err := host.New(p, exchange.Memory(), nil)
		if err != nil {
			t.Fatal(err)
		}
		hosts[i] = wrap(i, h)
	}
	s, err := sim.New(x.Fabric, hosts, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return hosts, s.End()
}

// forger is a host that also floods another one with notifications that no switch has sent, at
// fixed intervals.
type forger struct {
	*host.Host
	every, next units.Time
	sent        int
	until       units.Time
}

func (f *forger) Transmit(now units.Time, out *transport.Outgoing) bool {
	if f.Host.Transmit(now, out) {
		return true
	}
	if f.every == 0 || now < f.next || now >= f.until {
		return false
	}
	f.next = now + f.every
	n := wire.Notice{Kind: wire.NeedsCC, Src: 0, Dst: 1, SrcPort: uint16(49152 + f.sent%16384), Switch: 4, At: now}
	if f.sent%4 == 1 {
		n.Kind, n.Last = wire.NeedsCC, true
	}
	if f.sent%4 == 2 {
		n.Kind = wire.NeedsPath
	}
	*out = transport.Outgoing{Dst: 0, SrcPort: wire.Port, Size: wire.NoticeSize + wire.Overhead, N: wire.NoticeSize}
	n.Encode(out.Header[:])
	if f.sent%4 == 3 {
		out.Header[30] ^= 0xff // malformed: a wrong check
	}
	f.sent++
	return true
}

func (f *forger) Deadline() (units.Time, bool) {
	at, ok := f.Host.Deadline()
	if f.every > 0 && f.next < f.until && (!ok || f.next < at) {
		return f.next, true
	}
	return at, ok
}

// besieged is a host that receives, for every packet, notifications of each kind that it must
// refuse, from the address of the switch itself. No host can send those (TestCoordinationInFrames).
// They must be refused all the same.
type besieged struct {
	*host.Host
	each, sent int
	port       uint16 // of the flow that it sends
	heard      wire.Notice
	refused    [4]int // by reason: address, flow, age, form
}

func (b *besieged) Transmit(now units.Time, out *transport.Outgoing) bool {
	ok := b.Host.Transmit(now, out)
	if ok && out.Payload > 0 {
		b.port = out.SrcPort
	}
	return ok
}

func (b *besieged) Receive(now units.Time, in *transport.Incoming) (transport.Placement, error) {
	for range b.each {
		b.forge(now)
	}
	return b.Host.Receive(now, in)
}

func (b *besieged) forge(now units.Time) {
	if b.heard.Kind == 0 { // the only true notification, which changes nothing
		b.heard = wire.Notice{Kind: wire.Released, Src: 0, Dst: 1, SrcPort: b.port, Switch: 4, At: now}
		var header [wire.NoticeSize]byte
		b.heard.Encode(header[:])
		if _, err := b.Host.Receive(now, &transport.Incoming{At: now, Src: 4, Header: header[:]}); err != nil {
			panic(err)
		}
	}
	n := wire.Notice{Kind: wire.NeedsCC, Src: 0, Dst: 1, SrcPort: b.port, Switch: 4, At: now}
	from := transport.HostID(4)
	var header [wire.NoticeSize]byte
	switch b.sent % 6 {
	case 0: // from another host
		from = 2
	case 1: // about an unknown flow
		n.SrcPort, n.Last = 1, true
	case 2: // about a flow of another host
		n.Src, n.Kind = 3, wire.NeedsPath
	case 3: // a replay
		n = b.heard
	case 4: // from the future
		n.At, n.Last = now+units.Second, true
	}
	n.Encode(header[:])
	if b.sent%6 == 5 {
		header[30] ^= 0xff // malformed
	}
	b.sent++
	_, err := b.Host.Receive(now, &transport.Incoming{At: now, Src: from, Header: header[:]})
	for i, why := range []error{transport.ErrForeign, transport.ErrUnknownConn, ccm.ErrReplay, wire.ErrCheck} {
		if errors.Is(err, why) {
			b.refused[i]++
		}
	}
}

// Forged, replayed or malformed notifications from the switch's address slow a flow by at most 5 %.
func TestForgedNotificationsOfTheSwitch(t *testing.T) {
	finish := func(each int) (units.Time, *besieged, transport.Counters) {
		hosts, end := simulateHosts(t, func(i int, h *host.Host) *besieged {
			if i > 0 {
				return &besieged{Host: h}
			}
			return &besieged{Host: h, each: each}
		})
		return end, hosts[0], hosts[0].Counters()
	}
	alone, _, _ := finish(0)
	flooded, target, c := finish(60)
	forged := target.sent
	t.Logf("alone %v, with %d forged notifications %v; refused for address, flow, age, form: %d", alone, forged, flooded, target.refused)
	if r := target.refused; r != [4]int{forged / 6, forged / 3, forged / 3, forged / 6} {
		t.Errorf("%d forged, refused for address, flow, age, form: %d", forged, r)
	}
	if forged < 10_000 || c.Notices != 1 || c.Refused != int64(forged) || c.Repaths != 0 {
		t.Errorf("%d forged, %d refused, %d handled, %d changes of path", forged, c.Refused, c.Notices, c.Repaths)
	}
	if float64(flooded) > 1.05*float64(alone) {
		t.Errorf("%v with a flood, %v without", flooded, alone)
	}
}

// Forged notifications of all kinds are refused and counted, and a flood of them at half the link
// rate slows a flow by at most 5 %: notifications of congestion and of better paths must come from
// a switch's address.
func TestForgedNotifications(t *testing.T) {
	finish := func(every units.Time) (at units.Time, forged, bad, handled int64) {
		hosts, end := simulateHosts(t, func(i int, h *host.Host) *forger {
			f := &forger{Host: h, until: 3 * units.Millisecond}
			if i == 2 {
				f.every = every
			}
			return f
		})
		c := hosts[0].Counters()
		return end, int64(hosts[2].sent), c.BadPackets, c.Notices
	}
	alone, _, bad, handled := finish(0)
	if bad != 0 || handled != 0 {
		t.Fatalf("without a flood %d packets were refused and %d notifications handled", bad, handled)
	}
	flooded, forged, bad, handled := finish(14 * units.Nanosecond) // 49 Gb/s
	t.Logf("alone %v, with %d forged notifications %v: %+.2f %%", alone, forged, flooded, 100*(float64(flooded)/float64(alone)-1))
	if handled != 0 || bad < forged*9/10 || forged < 100_000 {
		t.Errorf("%d forged, %d refused, %d handled", forged, bad, handled)
	}
	if float64(flooded) > 1.05*float64(alone) {
		t.Errorf("%v with a flood, %v without", flooded, alone)
	}
}
