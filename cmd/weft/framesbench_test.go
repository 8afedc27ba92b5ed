package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkFrames measures what frames and view.html cost, in milliseconds (more-ms) and in per
// cent of the processor time of a simulation without them (%), by runs of either kind in turn
// within one process. The bar is 3 %, or 10 ms in shorter runs: two more data files and a page take
// some of it.
func BenchmarkFrames(b *testing.B) {
	for _, c := range []struct {
		name, topology, workload string
	}{
		{"incast", "{kind: star, hosts: 17, link: {rate: 100Gbps, delay: 1us}, mtu: 4096}", "{collective: incast, ranks: 16, size: 1500KB}"},
		{"permute", "{kind: fat-tree, k: 8, link: {rate: 100Gbps, delay: 1us}}", "{collective: permute, ranks: all, size: 100KB}"},
		{"mid-permute", "{kind: fat-tree, k: 8, link: {rate: 100Gbps, delay: 1us}}", "{collective: permute, ranks: all, size: 1500KB}"},
		{"long-incast", "{kind: star, hosts: 17, link: {rate: 100Gbps, delay: 1us}, mtu: 4096}", "{collective: incast, ranks: 16, size: 150MB}"},
		{"long-permute", "{kind: fat-tree, k: 8, link: {rate: 100Gbps, delay: 1us}}", "{collective: permute, ranks: all, size: 10MB}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			lab := filepath.Join(b.TempDir(), "lab.yaml")
			text := "weft: 1\nname: bench\ntransport: {kind: pc4}\nqueues: {buffer: 5bdp}\n" +
				"topology: " + c.topology + "\nworkload: [" + c.workload + "]\n"
			if err := os.WriteFile(lab, []byte(text), 0o644); err != nil {
				b.Fatal(err)
			}
			a := &app{stdout: io.Discard, stderr: io.Discard, engine: orchestrated{}}
			took := func(view string) float64 {
				flags := runFlags{out: b.TempDir(), quiet: true}
				flags.lab.Engine.Kind, flags.lab.Set = "sim", []string{"measure.view=" + view}
				before := processorTime(b)
				if err := a.run(b.Context(), []string{lab}, flags); err != nil {
					b.Fatal(err)
				}
				return processorTime(b) - before
			}
			var with, without []float64
			for b.Loop() {
				without, with = append(without, took("off")), append(with, took("auto"))
			}
			slices.Sort(without)
			slices.Sort(with)
			off, on := without[len(without)/2], with[len(with)/2]
			b.ReportMetric(1e3*off, "off-ms")
			b.ReportMetric(1e3*(on-off), "more-ms")
			b.ReportMetric(100*(on/off-1), "%")
		})
	}
}

// processorTime returns the seconds of processor time that this process has used.
func processorTime(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(fmt.Errorf("getrusage: %w", err))
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
