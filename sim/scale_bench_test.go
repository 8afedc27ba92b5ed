package sim

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/crew"
	"weft/internal/poller"
	"weft/transport"
	"weft/units"
)

// BenchmarkScale shows what an event costs as the network grows from 128 to 8,192 hosts, and what a
// second processor brings: fat-trees of 100 Gb/s and 1 µs, packets of 4 KB with an acknowledgement
// each. A permutation has a flow for each host; an all-to-all has one for each packet, a million at
// 8,192 hosts; an incast has 31 hosts send to the next. Hosts are fakes: this is the engine's own
// share.
func BenchmarkScale(b *testing.B) {
	for _, pattern := range []string{"permutation", "all-to-all", "incast"} {
		for _, k := range []int{8, 16, 32} {
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/hosts=%d/processors=%d", pattern, k*k*k/4, workers), func(b *testing.B) {
					benchmarkScale(b, pattern, k, workers)
				})
			}
		}
	}
}

// benchmarkScale measures a pattern on a fat-tree of k-port switches, by the number of workers.
func benchmarkScale(b *testing.B, pattern string, k, workers int) {
	c := crew.New(workers)
	defer c.Close()
	var events, packets, cpu int64
	var wall time.Duration
	var before, after runtime.MemStats
	hosts := 0
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		cfg, fakes := benchNetwork(pattern, k)
		hosts = cfg.Hosts
		opts := Options{Each: c.Each}
		opts.Parts, opts.Count = cfg.Partition()
		s := newSim(b, cfg, fakes, opts)
		began, used := time.Now(), poller.CPU()
		mustRun(b, s)
		wall, cpu = wall+time.Since(began), cpu+poller.CPU()-used
		runtime.ReadMemStats(&after)
		events += s.Events()
		packets += s.QueueDelay().Count()
	}
	b.ReportMetric(float64(wall.Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(float64(cpu)/float64(events), "cpu-ns/event") // what others on the machine take does not count, but for the cache
	b.ReportMetric(float64(events)/wall.Seconds(), "events/s")
	b.ReportMetric(float64(packets)/wall.Seconds(), "packets/s")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(hosts), "bytes/host")
}

// benchNetwork returns a network and its hosts for a pattern.
func benchNetwork(pattern string, k int) (fabric.Config, []Host) {
	packets := uint32(128)
	if k < 32 {
		packets = 512
	}
	cfg, fakes := permutation(k, packets, 40)
	hosts := make([]Host, len(fakes))
	for h, f := range fakes {
		hosts[h] = f
		switch pattern {
		case "all-to-all":
			hosts[h] = &nextHost{fake: f, hosts: cfg.Hosts}
		case "incast":
			f.dst = transport.HostID(h / 32 * 32)
			f.window = 4
			if h%32 == 0 {
				f.total, f.dst = 0, 0
			}
			f.total /= 16
		}
	}
	return cfg, hosts
}

// nextHost is a fake that sends each packet to the next host.
type nextHost struct {
	*fake
	hosts int
}

// Transmit is the fake's, to another host each time.
func (a *nextHost) Transmit(now units.Time, out *transport.Outgoing) bool {
	a.dst = transport.HostID((int(a.id) + 1 + int(a.next)%(a.hosts-1)) % a.hosts)
	return a.fake.Transmit(now, out)
}
