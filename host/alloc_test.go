package host

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"weft/collectives/schedule"
	"weft/collectives/symbolic"
	"weft/transport"
	"weft/units"
)

// shuttle carries one data packet from a to b and the acknowledgements back, all within a fixed
// delay.
type shuttle struct {
	t    testing.TB
	a, b *Host
	now  units.Time
	out  transport.Outgoing
	in   transport.Incoming
}

// newShuttle returns two started hosts; a has one message of size bytes for b.
func newShuttle(t testing.TB, kind int, size units.Bytes) *shuttle {
	net := buildNetwork(t, 2, kind, job{Spec: incast(size, 1)})
	s := &shuttle{t: t, a: net.hosts[0], b: net.hosts[1]}
	s.a.Start(0)
	s.b.Start(0)
	return s
}

// roundTrip carries the next data packet to b and the acknowledgements back.
func (s *shuttle) roundTrip() {
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
	payload := s.a.Payload(&s.out, nil)
	pl, err := s.b.Receive(s.now, &s.in)
	if err != nil {
		s.t.Fatal(err)
	}
	s.b.Deliver(s.now, pl, payload)
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
			s.roundTrip()
		}
		if n := testing.AllocsPerRun(5000, s.roundTrip); n != 0 {
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
				s.roundTrip()
			}
		})
	}
}

// What a host of a large permutation holds before anything has happened, and once its message is
// under way.
func BenchmarkPermutationHost(b *testing.B) {
	const n = 1024
	all := plansOf(b, n, []job{{Spec: permutation(b, n, 2*units.MB)}})
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

// What 64 groups of 32 ranks on 2048 hosts hold, all with 100 MiB in pieces of 128 KiB under way at
// once (STrack, section 4.3), transport and verification included; and what 64 all-reduces over all
// 2048 hosts hold, one after the other, before they begin and with the first under way, and all at
// once.
func BenchmarkJobs(b *testing.B) {
	const n, groups = 2048, 64
	spec := func(algorithm string, ranks int) schedule.Spec {
		return schedule.Spec{
			Collective: schedule.AllReduce, Algorithm: algorithm, Ranks: ranks, Size: 100 * units.MiB, Chunk: 128 * units.KiB,
		}
	}
	uncut := func(algorithm string) schedule.Spec {
		s := spec(algorithm, n)
		s.Chunk = 0
		return s
	}
	at := rand.New(rand.NewPCG(1, 1)).Perm(n)
	for name, jobs := range map[string]func(i int) job{
		"groups/ring":               func(i int) job { return job{Spec: spec(schedule.Ring, 32), ranks: at[32*i : 32*i+32]} },
		"groups/double-binary-tree": func(i int) job { return job{Spec: spec(schedule.DoubleBinaryTree, 32), ranks: at[32*i : 32*i+32]} },
		"all/halving-doubling":      func(int) job { return job{Spec: spec(schedule.HalvingDoubling, n), previous: true} },
		"all/ring":                  func(int) job { return job{Spec: spec(schedule.Ring, n), previous: true} },

		// All 64 at once, messages uncut.
		"all-at-once/halving-doubling":   func(int) job { return job{Spec: uncut(schedule.HalvingDoubling)} },
		"all-at-once/double-binary-tree": func(int) job { return job{Spec: uncut(schedule.DoubleBinaryTree)} },
	} {
		b.Run(name, func(b *testing.B) {
			all := make([]job, groups)
			for i := range all {
				all[i] = jobs(i)
			}
			measure := func() float64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return float64(m.HeapAlloc) / float64(units.MB)
			}
			for b.Loop() {
				begin := measure()
				p := plansOf(b, n, all)
				planned := measure()
				x := symbolic.New(1)
				hosts := make([]*Host, n)
				for i := range hosts {
					h, err := New(p[i], x.Memory(), nil)
					if err != nil {
						b.Fatal(err)
					}
					hosts[i] = h
				}
				made := measure()
				var out transport.Outgoing
				for _, h := range hosts {
					h.Start(0)
					h.Transmit(0, &out)
				}
				b.ReportMetric(planned-begin, "MB-of-plans")
				b.ReportMetric(made-planned, "MB-of-hosts")
				b.ReportMetric(measure()-made, "MB-of-running")
				runtime.KeepAlive(hosts)
				runtime.KeepAlive(p)
			}
		})
	}
}
