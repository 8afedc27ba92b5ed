package sim

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"weft/collectives/symbolic"
	"weft/fabric"
	"weft/host"
	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/units"
)

// derangement returns a random permutation of n in which nobody is mapped to itself.
func derangement(n int, seed uint64) []int {
	p := rand.New(rand.NewPCG(seed, 0)).Perm(n)
	for i := range p {
		if p[i] == i {
			j := (i + 1) % n
			p[i], p[j] = p[j], p[i]
		}
	}
	return p
}

// permutation returns a fat-tree of k-port switches whose hosts each send a number of packets to
// another one.
func permutation(k int, packets, window uint32) (fabric.Config, []*fake) {
	p := fast
	p.ECN = fabric.ECNConfig{On: true, Kmin: 40_000, Kmax: 120_000, Pmax: 1}
	cfg := fatTree(k, p)
	hosts := make([]*fake, cfg.Hosts)
	for h, dst := range derangement(cfg.Hosts, 1) {
		hosts[h] = newFake(h, dst, packets, window)
	}
	return cfg, hosts
}

// realPermutation is the same with hosts that run the collective over PC4 and check what they
// receive.
func realPermutation(tb testing.TB, k int, packets uint32) (fabric.Config, []*host.Host) {
	cfg := fatTree(k, fast)
	to := derangement(cfg.Hosts, 1)
	ranks := make([]transport.HostID, cfg.Hosts)
	plans := make([]host.Plan, cfg.Hosts)
	for h := range plans {
		ranks[h] = transport.HostID(h)
		plans[h] = host.Plan{Host: ranks[h], Seed: 1, Endpoint: transport.Config{
			Host: ranks[h], MTU: fakePayload, LineRate: fast.Rate, Seed: 1,
		}}
		plans[h].Items = []host.Item{{
			Collective: "permute", Algorithm: "direct", Ranks: ranks, Rank: h, Root: -1, Repeat: 1,
			Size: units.Bytes(packets) * fakePayload, Permute: to,
		}}
	}
	for h := range plans {
		c := transport.Spec{
			ID: transport.ConnID(h), Src: ranks[h], Dst: ranks[to[h]], SrcPort: uint16(49152 + h),
			Forward: pathBetween(k, h, to[h]), Reverse: pathBetween(k, to[h], h),
			Kind: "pc4", CC: pc4.Defaults(), Initial: fast.Rate, Collective: "permute",
		}
		src, dst := &plans[h], &plans[to[h]]
		src.Conns, dst.Conns = append(src.Conns, c), append(dst.Conns, c)
		src.Items[0].Conns = []host.Peer{{Rank: to[h], Conn: c.ID}}
		dst.Items[0].Expect = []host.Peer{{Rank: h, Conn: c.ID}}
	}
	exchange := symbolic.New(1)
	hosts := make([]*host.Host, cfg.Hosts)
	for h := range hosts {
		var err error
		if hosts[h], err = host.New(plans[h], exchange.Memory(), nil); err != nil {
			tb.Fatal(err)
		}
	}
	return cfg, hosts
}

// pathBetween is the path between two hosts of a fat-tree of k-port switches.
func pathBetween(k, a, b int) transport.Path {
	links := 6
	switch {
	case a/(k/2) == b/(k/2):
		links = 2
	case a/(k*k/4) == b/(k*k/4):
		links = 4
	}
	p := transport.Path{Propagation: units.Time(links) * fast.Delay}
	for range links {
		p.Rates = append(p.Rates, fast.Rate)
	}
	return p
}

// The hosts of a permutation end it, and have received what they should.
func TestRealHosts(t *testing.T) {
	cfg, hosts := realPermutation(t, 4, 100)
	s := newSim(t, cfg, hosts, Options{})
	mustRun(t, s)
	for h := range hosts {
		for _, d := range hosts[h].Dones() {
			if d.Wrong != 0 || d.Checked == 0 {
				t.Errorf("host %d: %+v", h, d)
			}
		}
	}
	if n, err := s.Refused(); n != 0 {
		t.Errorf("refused %d: %v", n, err)
	}
	if got, want := s.QueueDelay().Count(), int64(16*100); got < want {
		t.Errorf("%d data packets, want %d", got, want)
	}
}

// The bar of the simulator: 1,024 hosts on three tiers at 100 Gb/s, a permutation of 2 MB in
// packets of 4 KB, an acknowledgement for each. "engine" has fakes for hosts and is the engine's
// own share; "lossless" is the same with PFC everywhere; "pc4" is all of it.
func BenchmarkPermutation(b *testing.B) {
	const k, packets = 16, 500
	b.Run("engine", func(b *testing.B) {
		benchmark(b, packets, func() (fabric.Config, []*fake) { return permutation(k, packets, 40) })
	})
	b.Run("lossless", func(b *testing.B) {
		benchmark(b, packets, func() (fabric.Config, []*fake) {
			cfg, hosts := permutation(k, packets, 40)
			return lossless(cfg, 50_000), hosts
		})
	})
	b.Run("pc4", func(b *testing.B) {
		benchmark(b, packets, func() (fabric.Config, []*host.Host) { return realPermutation(b, k, packets) })
	})
}

func benchmark[H Host](b *testing.B, packets int64, hosts func() (fabric.Config, []H)) {
	var events, delivered, count int64
	var wall time.Duration
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		cfg, hosts := hosts()
		s := newSim(b, cfg, hosts, Options{})
		began := time.Now()
		mustRun(b, s)
		wall += time.Since(began)
		runtime.ReadMemStats(&after)
		events += s.Events()
		delivered += s.QueueDelay().Count()
		count = int64(cfg.Hosts)
		if s.QueueDelay().Count() < count*packets {
			b.Fatalf("%d data packets, want %d", s.QueueDelay().Count(), count*packets)
		}
	}
	b.ReportMetric(float64(delivered)/wall.Seconds(), "packets/s")
	b.ReportMetric(float64(events)/wall.Seconds(), "events/s")
	b.ReportMetric(float64(wall.Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(float64(events)/float64(delivered), "events/packet")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(count), "bytes/host") // of the last run, network included
}
