package sim

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"weft/fabric"
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

// permutation returns a fat-tree of k-port switches whose hosts each send so many packets to another.
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

// The bar of the simulator: 1,024 hosts on three tiers at 100 Gb/s, a permutation of 2 MB in packets of 4 KB,
// an acknowledgement for each. The hosts are fakes: this is the engine's own part.
func BenchmarkPermutation(b *testing.B) {
	const k, packets = 16, 500
	var events, delivered int64
	var wall time.Duration
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		cfg, hosts := permutation(k, packets, 40)
		s, err := New(cfg, hosts, Options{})
		if err != nil {
			b.Fatal(err)
		}
		built := time.Now()
		if err := s.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
		wall += time.Since(built)
		b.ReportMetric(built.Sub(began).Seconds()*1e3, "build-ms")
		runtime.ReadMemStats(&after)
		events += s.Events()
		delivered += s.QueueDelay().Count()
		if want := int64(cfg.Hosts) * packets; s.QueueDelay().Count() < want {
			b.Fatalf("%d data packets, want %d", s.QueueDelay().Count(), want)
		}
		b.ReportMetric(float64(s.End())/float64(units.Microsecond), "lab-µs")
		b.ReportMetric(float64(s.QueueDelay().Quantile(0.99))/float64(units.Microsecond), "queue-p99-µs")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(cfg.Hosts), "bytes/host")
	}
	b.ReportMetric(float64(delivered)/wall.Seconds(), "packets/s")
	b.ReportMetric(float64(events)/wall.Seconds(), "events/s")
	b.ReportMetric(float64(wall.Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(float64(events)/float64(delivered), "events/packet")
}
