package fabric

import (
	"slices"
	"testing"

	"weft/units"
)

// telemetrySink is a world that records the telemetry of each delivered packet.
type telemetrySink struct {
	*world
	hops [][]Hop
}

func (k *telemetrySink) Deliver(now units.Time, p *Packet) {
	k.hops = append(k.hops, slices.Clone(k.net.Telemetry(p)))
	k.world.Deliver(now, p)
}

func newTelemetrySink(t *testing.T, cfg Config) *telemetrySink {
	k := &telemetrySink{world: newWorld(t, cfg)}
	k.net.sink = k
	return k
}

// withINT has switches add telemetry to a packet.
func withINT(p *Packet) { p.INT = true }

// Ten packets of 1000 bytes onto a link of 10 Gb/s: packet i starts at 1.08 + 0.8·i µs, when i
// packets have been sent and the others wait.
func TestTelemetryOfAQueue(t *testing.T) {
	n := newTelemetrySink(t, funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: mB}).route())
	for i := range 10 {
		n.send(0, 1, 0, 1000, i, withINT)
	}
	n.run(units.Never)
	for i, hops := range n.hops {
		queued := 0
		if i > 0 { // packet 0 finds nobody and leaves nobody; when packet 1 starts, all the others are there
			queued = 9 - i
		}
		want := []Hop{{At: 1080*ns + units.Time(i)*800*ns, Sent: units.Bytes(i) * 1000, Queued: units.Bytes(queued) * 1000, Rate: 10 * units.Gbps}}
		if !slices.Equal(hops, want) {
			t.Errorf("packet %d: %+v, want %+v", i, hops, want)
		}
	}
}

// Each switch on the path records, in order; NICs do not. Both classes count as queued. A packet
// without INT carries no records.
func TestTelemetryOfAPath(t *testing.T) {
	w := chain(3)
	w.Ports[2].Rate = 40 * units.Gbps
	n := newTelemetrySink(t, w.route())
	n.send(0, 0, 1, 1000, 0)
	n.send(0, 0, 1, 1000, 1, withINT, func(p *Packet) { p.Class = 0 })
	n.send(0, 0, 1, 1000, 2)
	n.run(units.Never)
	// Packet 0 occupies the 40 Gb/s link from 1.08 to 1.28 µs; packet 1 comes at 1.16 µs, and
	// packet 2 at 1.24 µs.
	want := []Hop{
		{At: 1280 * ns, Sent: 1000, Queued: 1000, Rate: 40 * units.Gbps},
		{At: 2480 * ns, Sent: 1000, Rate: 100 * units.Gbps},
		{At: 3560 * ns, Sent: 1000, Rate: 100 * units.Gbps},
	}
	if !slices.Equal(n.hops[1], want) || n.hops[0] != nil || n.hops[2] != nil {
		t.Errorf("%+v", n.hops)
	}
}

// A packet has room for eight records, a packet from the pool starts again without any, and their
// storage is allocated once.
func TestTelemetryHasRoomForEight(t *testing.T) {
	n := newTelemetrySink(t, chain(10).route())
	for i := range 2 {
		n.send(units.Time(i)*100*us, 0, 1, 1000, i, withINT)
		n.run(units.Never)
		if len(n.hops[i]) != MaxHops || n.hops[i][7].At != units.Time(i)*100*us+8*(us+80*ns) {
			t.Errorf("%d hops: %+v", len(n.hops[i]), n.hops[i])
		}
	}
	n.wantNoAllocations(t, 10, func(int) Packet { return Packet{Dst: 1, Size: 1000, INT: true} }, 10)
}

// Packets of a paused class count as queued.
func TestTelemetryTellsOfPausedPackets(t *testing.T) {
	n := newTelemetrySink(t, chain(1).route())
	n.send(0, 0, 1, 1000, 0)
	n.send(0, 0, 1, 1000, 1)
	n.net.pfc.hold(n.net, 0, 2, 1, true) // the port to host 1
	n.run(5 * us)
	if len(n.arrivals) != 0 {
		t.Fatalf("%d arrivals through a paused port", len(n.arrivals))
	}
	n.send(5*us, 0, 1, 500, 2, withINT, func(p *Packet) { p.Class = 0 })
	n.run(20 * us)
	if want := []Hop{{At: 6040 * ns, Queued: 2000, Rate: 100 * units.Gbps}}; len(n.hops) != 1 || !slices.Equal(n.hops[0], want) {
		t.Errorf("%+v", n.hops)
	}
}
