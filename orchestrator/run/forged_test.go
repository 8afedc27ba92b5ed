package run

import (
	"context"
	"testing"

	"weft/collectives/symbolic"
	"weft/host"
	"weft/sim"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// forger is a host that also floods another with notifications that no switch has sent, one every so often.
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
		out.Header[30] ^= 0xff // malformed: the check is wrong
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

// Forged notifications are refused and counted, whatever they say, and a flood of half a line of them slows no flow by more than
// 5 %: what it is told of incast, last resorts and other paths comes from no switch's address.
func TestForgedNotifications(t *testing.T) {
	finish := func(every units.Time) (at units.Time, forged, bad, heeded int64) {
		x := build(t, "weft: 1\nname: forged\ntopology: {kind: star, hosts: 4}\ntransport: {kind: ccm, ccm: {paths: 4}}\nworkload:\n  - {collective: incast, ranks: [h0], root: h1, size: 20MB}\n")
		exchange := symbolic.New(x.Lab.Seed)
		hosts := make([]*forger, len(x.Plans))
		for i, p := range x.Plans {
			h, err := host.New(p, exchange.Memory(), nil)
			if err != nil {
				t.Fatal(err)
			}
			hosts[i] = &forger{Host: h, until: 3 * units.Millisecond}
		}
		hosts[2].every = every
		s, err := sim.New(x.Fabric, hosts, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		c := hosts[0].Counters()
		return s.End(), int64(hosts[2].sent), c.BadPackets, c.Notices
	}
	alone, _, bad, heeded := finish(0)
	if bad != 0 || heeded != 0 {
		t.Fatalf("without a flood %d packets were refused and %d notifications heeded", bad, heeded)
	}
	flooded, forged, bad, heeded := finish(14 * units.Nanosecond) // 49 Gb/s
	t.Logf("alone %v, with %d forged notifications %v: %+.2f %%", alone, forged, flooded, 100*(float64(flooded)/float64(alone)-1))
	if heeded != 0 || bad < forged*9/10 || forged < 100_000 {
		t.Errorf("%d forged, %d refused, %d heeded", forged, bad, heeded)
	}
	if float64(flooded) > 1.05*float64(alone) {
		t.Errorf("%v with a flood, %v without", flooded, alone)
	}
}
