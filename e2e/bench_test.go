package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weft/internal/testenv"
	"weft/results/store"
)

// weft bench emulates several sizes in one deployment, and its data is right.
func TestPrivBench(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	r := d.run("bench", "--collective", "all-to-all", "--transport", "strack", "--engine", "emu", "--ranks", "4",
		"-b", "16K", "-e", "64K", "-f", "2",
		"-n", "3", "--json").wantCode(0)
	var j struct {
		Run    string `json:"run"`
		Engine string `json:"engine"`
		Rows   []struct {
			Size    int64   `json:"size_bytes"`
			BusBW   float64 `json:"busbw_gb_per_s"`
			Wrong   int64   `json:"wrong"`
			Checked bool    `json:"checked"`
		} `json:"rows"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &j); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	if j.Engine != "emu" || len(j.Rows) != 3 {
		t.Fatalf("%+v", j)
	}
	for i, row := range j.Rows {
		if row.Size != 16<<10<<i || !(row.BusBW > 0) || row.BusBW > 12.5 || row.Wrong != 0 || !row.Checked {
			t.Errorf("%+v", row)
		}
	}
	if _, err := os.Stat(filepath.Join(d.dir, j.Run, "manifest.json")); err != nil {
		t.Error(err)
	}
	if pictures, _ := filepath.Glob(filepath.Join(d.dir, "runs", "bench", "*-busbw.svg")); len(pictures) != 1 {
		t.Errorf("pictures %v", pictures)
	}
}

// Ctrl-C keeps the sizes that were measured.
func TestInterruptedBench(t *testing.T) {
	d := newWorkspace(t)
	p := d.start("bench", "--collective", "all-to-all", "--engine", "sim", "-b", "128", "-e", "1G", "-f", "1024",
		"-n", "20", "--set", "measure.queues=100ns")
	if what := eventually(patience, func() string {
		samples, _ := filepath.Glob(filepath.Join(d.dir, "runs", "bench", "*", store.QueuesFile))
		if len(samples) == 1 {
			if info, err := os.Stat(samples[0]); err == nil && info.Size() > 1<<16 {
				return ""
			}
		}
		return "it measures nothing"
	}); what != "" || !p.running() {
		t.Fatalf("%s; weft said:\n%s%s", what, p.stdout.String(), p.stderr.String())
	}
	p.signal(syscall.SIGINT)
	r := p.wait().wantCode(130)
	if !strings.Contains(r.stdout, "         128             4     float    none      -1 ") ||
		!strings.Contains(r.stdout, "not measured: the run ended before") {
		t.Errorf("what was measured is not shown:\n%s\n%s", r.stdout, r.stderr)
	}
}
