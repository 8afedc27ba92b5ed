package run

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"weft/internal/poller"
)

// BenchmarkFlows measures the cost of a flow in whole runs of 16,000 to a million of them: the
// direct all-to-all of a fat-tree, with a packet of 1 KB under PC4 for each pair of hosts, checked
// data and written results.
func BenchmarkFlows(b *testing.B) {
	for _, k := range []int{8, 12, 16} {
		hosts := k * k * k / 4
		flows := hosts * (hosts - 1)
		b.Run(fmt.Sprintf("hosts=%d/flows=%d", hosts, flows), func(b *testing.B) {
			text := fmt.Sprintf("weft: 1\nname: flows\ntopology: {kind: fat-tree, k: %d}\nworkload: [{collective: all-to-all, algorithm: direct, size: %dKB}]\n", k, hosts)
			l := parse(b, text)
			var before, after runtime.MemStats
			var cpu int64
			var wall time.Duration
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				began, used := time.Now(), poller.CPU()
				s, err := runLab(b.Context(), l, Options{Engine: "sim", Root: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				wall, cpu = wall+time.Since(began), cpu+poller.CPU()-used
				runtime.ReadMemStats(&after)
				if f := s.Flows; f.Count != int64(flows) || f.Unfinished != 0 {
					b.Fatalf("%+v, want %d", f, flows)
				}
			}
			all := float64(flows * b.N)
			b.ReportMetric(all/wall.Seconds(), "flows/s")
			b.ReportMetric(float64(cpu)/all, "cpu-ns/flow")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(flows), "bytes/flow") // of the last run, network included
		})
	}
}
