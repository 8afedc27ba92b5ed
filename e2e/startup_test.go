package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkCommand tells how long commands take that somebody waits for, from the start of the
// process to its end: simulating two hosts, and checking a lab of 8,192 hosts and 1,280 switches.
// Beside the mean, which others on the machine make, it tells the least.
func BenchmarkCommand(b *testing.B) {
	for _, c := range []struct {
		name, lab string
		args      []string
	}{
		{"run-2-hosts", "topology: {kind: star, hosts: 2}\nworkload: [{collective: permute, size: 64KB}]\n",
			[]string{"run", "--engine", "sim", "--out", "runs"}},
		{"validate-9472-nodes", "topology: {kind: fat-tree, k: 32}\nworkload: [{collective: permute, size: 2MB}]\n",
			[]string{"validate"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			lab := filepath.Join(dir, "lab.yaml")
			if err := os.WriteFile(lab, []byte("weft: 1\nname: lab\n"+c.lab), 0o644); err != nil {
				b.Fatal(err)
			}
			var took, cpu []time.Duration
			for b.Loop() {
				cmd := exec.Command(weft, append(slices.Clone(c.args), lab)...)
				cmd.Dir = dir
				began := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				took, cpu = append(took, time.Since(began)),
					append(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
			b.ReportMetric(slices.Min(took).Seconds()*1e3, "least-ms")
			b.ReportMetric(slices.Min(cpu).Seconds()*1e3, "least-cpu-ms")
		})
	}
}
