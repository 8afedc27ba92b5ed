package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"weft/fabric"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// lossless gives every port that leads to a switch PFC in class 1, with the headroom it needs.
func lossless(cfg fabric.Config, xoff units.Bytes) fabric.Config {
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; int(p.To) >= cfg.Hosts {
			p.PFC[1] = fabric.PFCConfig{
				On: true, Xoff: xoff, Xon: xoff - 2*fakeSize, Headroom: fabric.Headroom(p.Rate, p.Delay, 0, fakeSize),
			}
		}
	}
	return cfg
}

// N to 1 with windows far beyond what the buffers hold: nothing is lost, and the link is full from
// the first packet to the last.
func TestLosslessIncast(t *testing.T) {
	const senders, packets = 8, 200
	p := fast
	p.Buffer = 10_000 // control
	hosts := incast(senders, packets, packets)
	s := newSim(t, lossless(star(senders+1, p), 50_000), hosts, Options{Stall: units.Millisecond})
	mustRun(t, s)
	c := s.Counters()
	if c.Dropped != 0 || c.Pauses == 0 || c.Delivered != 2*senders*packets {
		t.Errorf("%+v", c)
	}
	data, ack := fast.Rate.TransmitTime(fakeSize), fast.Rate.TransmitTime(fakeAckSize)
	if want := senders*packets*data + data + 2*ack + 4*us; s.End() != want {
		t.Errorf("ended at %d, want %d", s.End(), want)
	}
	for h := 1; h <= senders; h++ {
		if k := s.net.PortCounters(2 * h); k.Pauses[1] == 0 || k.Paused[1] == 0 || k.Pauses[0] != 0 {
			t.Errorf("host %d: %+v", h, k)
		}
	}
	if waiting := s.Waiting(); len(waiting) != 0 {
		t.Errorf("%q", waiting)
	}
}

// ackOnRequest is a fake that can be asked for acknowledgements alone.
type ackOnRequest struct{ *fake }

func (a ackOnRequest) TransmitControl(now units.Time, out *transport.Outgoing) bool {
	return a.n > 0 && a.Transmit(now, out)
}

// Host 1 sends into a jam and is paused; host 3 sends to host 1, a packet for each acknowledgement.
// Those leave during the pauses if host 1 can be asked for them; otherwise host 3 waits with it.
func TestAcknowledgementsLeaveDuringPauses(t *testing.T) {
	finished := func(ask bool) units.Time {
		const jam = 1000
		p := fast
		cfg := lossless(star(4, p), 20_000)
		cfg.Ports[1].Rate = units.Gbps // to host 0
		fakes := []*fake{newFake(0, 0, 0, 0), newFake(1, 0, jam, jam), newFake(2, 0, jam, jam), newFake(3, 1, 100, 1)}
		hosts := make([]Host, len(fakes))
		for i, f := range fakes {
			f.rto = units.Second
			hosts[i] = f
			if ask {
				hosts[i] = ackOnRequest{f}
			}
		}
		s := newSim(t, cfg, hosts, Options{})
		mustRun(t, s)
		if c := s.Counters(); c.Dropped != 0 || c.Pauses == 0 {
			t.Errorf("%+v", c)
		}
		return fakes[3].finished
	}
	roundTrip := 4*us + 2*fast.Rate.TransmitTime(fakeSize) + 2*fast.Rate.TransmitTime(fakeAckSize)
	if got := finished(true); got < 100*roundTrip || got > 100*(roundTrip+fast.Rate.TransmitTime(fakeSize)) {
		t.Errorf("done at %d, want little more than %d", got, 100*roundTrip)
	}
	if got := finished(false); got < 200*roundTrip {
		t.Errorf("done at %d without acknowledgements in pauses", got)
	}
}

// prober sends data packets with room for telemetry, and keeps what it receives.
type prober struct {
	*fake
	room uint8
	got  [][]wire.Hop
}

func (p *prober) Transmit(_ units.Time, out *transport.Outgoing) bool {
	if p.next == p.total {
		return false
	}
	d := wire.Data{Room: p.room}
	d.Encode(out.Header[:])
	out.Dst, out.Size, out.Payload, out.Class, out.ECT = p.dst, 1250, 1000, 1, true
	out.N = int(wire.DataSize + wire.TelemetrySize(int(p.room)))
	p.next++
	return true
}

func (p *prober) Receive(_ units.Time, in *transport.Incoming) (transport.Placement, error) {
	p.got = append(p.got, slices.Clone(in.INT))
	p.acked = uint32(len(p.got)) // of the receiver: done when all are here
	return transport.Placement{}, nil
}

// What switches write reaches the receiver of packets that have room for it, and of no others.
func TestTelemetryReachesTheReceiver(t *testing.T) {
	for _, room := range []uint8{0, 1, 5} {
		sender := &prober{fake: newFake(0, 1, 3, 3), room: room}
		sender.acked = 3 // it waits for nothing
		receiver := &prober{fake: newFake(1, 0, 3, 0)}
		receiver.next, receiver.rto = 3, 0
		p := fast
		p.Rate = 10 * units.Gbps
		s := newSim(t, star(2, p), []Host{sender, receiver}, Options{})
		mustRun(t, s)
		for i, hops := range receiver.got {
			var want []wire.Hop
			if room > 0 { // packets come every 0.1 µs, and the link takes 1 µs for each
				want = []wire.Hop{{At: 1100*ns + units.Time(i)*us, Sent: units.Bytes(i) * 1250, Queued: units.Bytes(i*(2-i)) * 1250}}
			}
			if !slices.Equal(hops, want) {
				t.Errorf("room for %d, packet %d: %+v, want %+v", room, i, hops, want)
			}
		}
		if len(receiver.got) != 3 {
			t.Errorf("%d packets", len(receiver.got))
		}
	}
}

func TestOnlyDataAsksForTelemetry(t *testing.T) {
	var data, bare, ack [wire.MaxPayload]byte
	(&wire.Data{Room: 2}).Encode(data[:])
	(&wire.Data{}).Encode(bare[:])
	(&wire.Ack{Room: 2}).Encode(ack[:])
	if !asksTelemetry(data[:]) || asksTelemetry(bare[:]) || asksTelemetry(ack[:]) || asksTelemetry(nil) || asksTelemetry([]byte{0, 0, 0, 255}) {
		t.Error("asked by the wrong packets")
	}
}

// ring returns three switches in a circle with a host each, whose routes all go round in the same
// direction.
func ring() fabric.Config {
	cfg := fabric.Config{Hosts: 3, Switches: make([]fabric.SwitchConfig, 3)}
	link := func(a, b fabric.NodeID) {
		there, back := fast, fast
		there.From, there.To, back.From, back.To = a, b, b, a
		cfg.Ports = append(cfg.Ports, there, back)
	}
	for i := range fabric.NodeID(3) {
		link(i, 3+i)
	}
	for i := range fabric.NodeID(3) {
		link(3+i, 3+(i+1)%3)
	}
	for i := range 3 {
		sw := &cfg.Switches[i]
		sw.Name = []string{"north", "east", "west"}[i]
		sw.Groups = [][]int32{{int32(2*i + 1)}, {int32(6 + 2*i)}}
		sw.Route = []int32{1, 1, 1}
		sw.Route[i] = 0
	}
	return lossless(cfg, 10_000)
}

// Switches wait for each other: the run ends with a description of the deadlock, whether or not
// timers keep hosts busy.
func TestDeadlockEndsTheRun(t *testing.T) {
	for _, rto := range []units.Time{0, 100 * us} {
		var hosts []*fake
		for h := range 3 {
			f := newFake(h, (h+2)%3, 500, 500)
			f.rto = rto
			hosts = append(hosts, f)
		}
		s := newSim(t, ring(), hosts, Options{Names: []string{"a", "b", "c"}, Stall: units.Millisecond, Limit: units.Second})
		err := s.Run(context.Background())
		var stall *StallError
		if !errors.As(err, &stall) || len(stall.Waiting) != 3 || len(stall.Network) < 6 {
			t.Fatalf("rto %d: %v", rto, err)
		}
		for _, want := range []string{"north to east (port 6): class 1 paused since ", "a to north (port 0): class 1 paused", "; east holds "} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}
		if rto == 0 && (stall.Paused != -1 || !strings.Contains(err.Error(), "no event is left")) {
			t.Errorf("%v", err)
		}
		if rto > 0 && (stall.Paused <= 0 || stall.At-stall.Paused < units.Millisecond || stall.At > 3*units.Millisecond ||
			!strings.Contains(err.Error(), "in a port that has been paused since ")) {
			t.Errorf("%v", err)
		}
	}
}

// Actions happen at their instants, in order.
func TestActions(t *testing.T) {
	var done []units.Time
	cut := func(up bool) func(units.Time, *fabric.Network) error {
		return func(now units.Time, net *fabric.Network) error {
			done = append(done, now)
			net.Links().SetUp(now, up, 0, 1)
			return nil
		}
	}
	f := newFake(0, 1, 1000, 20)
	f.rto = 100 * us
	s := newSim(t, star(2, fast), []*fake{f, newFake(1, 0, 0, 0)}, Options{Actions: []Action{
		{At: 70 * us, Do: cut(true)}, {At: 20 * us, Do: cut(false)}, {At: units.Second, Do: cut(false)},
	}})
	mustRun(t, s)
	if want := []units.Time{20 * us, 70 * us}; !slices.Equal(done, want) {
		t.Errorf("at %v, want %v", done, want)
	}
	if c := s.Counters(); c.Cut == 0 || f.timeouts == 0 || f.acked != 1000 {
		t.Errorf("%+v, %d timeouts", c, f.timeouts)
	}
	broken := errors.New("no such port")
	fails := func(units.Time, *fabric.Network) error { return broken }
	s = newSim(t, star(2, fast), incast(1, 10, 10), Options{Actions: []Action{{At: us, Do: fails}}})
	if err := s.Run(context.Background()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "action at 1.000 us") {
		t.Errorf("%v", err)
	}
	for _, a := range []Action{{At: -1, Do: fails}, {At: 1}} {
		if _, err := New(star(2, fast), incast(1, 1, 1), Options{Actions: []Action{a}}); err == nil {
			t.Errorf("%+v", a)
		}
	}
}
