package host

import (
	"runtime"
	"testing"

	"weft/collectives/symbolic"
	"weft/transport"
	"weft/units"
)

// shuttle carries one data packet from a to b and the acknowledgements back, all within a fixed delay.
type shuttle struct {
	t    testing.TB
	a, b *Host
	now  units.Time
	out  transport.Outgoing
	in   transport.Incoming
}

func newShuttle(t testing.TB, kind int, size units.Bytes) *shuttle {
	net := build(t, 2, kind, job{Spec: incast(size, 1)})
	s := &shuttle{t: t, a: net.hosts[0], b: net.hosts[1]}
	s.a.Start(0)
	s.b.Start(0)
	return s
}

func (s *shuttle) packet() {
	for !s.a.Transmit(s.now, &s.out) {
		at, ok := s.a.Deadline()
		if !ok {
			s.t.Fatal(s.a.Waiting())
		}
		s.now = max(at, s.now)
		s.a.Advance(s.now)
	}
	s.now += 2 * units.Microsecond
	s.in = transport.Incoming{At: s.now, Src: 0, Header: s.out.Header[:s.out.N], Payload: s.out.Payload}
	payload := s.a.Payload(&s.out)
	pl, err := s.b.Receive(s.now, &s.in)
	if err != nil {
		s.t.Fatal(err)
	}
	copy(s.b.Place(pl), payload)
	s.b.Placed(s.now, pl)
	for s.b.Transmit(s.now, &s.out) {
		s.now += 2 * units.Microsecond
		s.in = transport.Incoming{At: s.now, Src: 1, Header: s.out.Header[:s.out.N]}
		if _, err := s.a.Receive(s.now, &s.in); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A packet costs no allocation, whatever the memory.
func TestPacketsDoNotAllocate(t *testing.T) {
	for _, kind := range kinds {
		s := newShuttle(t, kind, 40*units.MB)
		for range 1000 {
			s.packet()
		}
		if n := testing.AllocsPerRun(5000, s.packet); n != 0 {
			t.Errorf("memory %d: %.2f allocations per packet", kind, n)
		}
	}
}

// A packet sent, placed, acknowledged and taken in, at both hosts together.
func BenchmarkPacket(b *testing.B) {
	for kind, name := range []string{"none", "real", "symbolic"} {
		b.Run(name, func(b *testing.B) {
			s := newShuttle(b, kind, units.Bytes(1+b.N/1000)*1000*mtu)
			b.SetBytes(mtu)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				s.packet()
			}
		})
	}
}

// What a host of a large permutation holds before anything has happened, and once its message is under way.
func BenchmarkPermutationHost(b *testing.B) {
	const n = 1024
	all := plans(b, n, []job{{Spec: permutation(b, n, 2*units.MB)}})
	measure := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		x := symbolic.New(1)
		before := measure()
		hosts := make([]*Host, n)
		for i := range hosts {
			h, err := New(all[i], x.Memory(), nil)
			if err != nil {
				b.Fatal(err)
			}
			hosts[i] = h
		}
		made := measure()
		var out transport.Outgoing
		for i := range hosts {
			hosts[i].Start(0)
			hosts[i].Transmit(0, &out)
		}
		b.ReportMetric((made-before)/n, "B/host")
		b.ReportMetric((measure()-before)/n, "B/running-host")
		runtime.KeepAlive(hosts)
	}
}
