package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/results/record"
)

// writeManifest writes a manifest that lists the current files of a directory.
func writeManifest(t *testing.T, dir string, names ...string) {
	t.Helper()
	m := record.Manifest{Format: Format, Status: "ok"}
	for _, name := range names {
		f, err := fileSum(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, f)
	}
	if err := writeJSON(filepath.Join(dir, ManifestFile), m); err != nil {
		t.Fatal(err)
	}
}

// All readers return an error for an intact file of another run.
func TestFileOfAnotherRun(t *testing.T) {
	dir, content, ends := threeGroups(t)
	writeManifest(t, dir, QueuesFile)
	if err := Scan(dir, QueuesFile, func([]queueRow) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, QueuesFile), content[:ends[1]], 0o644); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, "changed or damaged after the run")
	if err := os.Rename(filepath.Join(dir, QueuesFile), filepath.Join(dir, WindowsFile)); err != nil {
		t.Fatal(err)
	}
	if err := Scan(dir, WindowsFile, func([]queueRow) error { return nil }); err == nil || !strings.Contains(err.Error(), "does not list it") {
		t.Errorf("a file that the manifest does not name: %v", err)
	}
}

// wantRefused checks that every reader returns an error with text for queues.parquet.
func wantRefused(t *testing.T, dir, text string) {
	t.Helper()
	_, numbers := Numbers(dir, QueuesFile, "time_ps")
	for how, err := range map[string]error{
		"Scan":    Scan(dir, QueuesFile, func([]queueRow) error { t.Error("rows were read"); return nil }),
		"Numbers": numbers,
		"Export":  Export(new(bytes.Buffer), dir, QueuesFile, "csv"),
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v; want: %s", how, err, text)
		}
	}
}

// All readers return an error at once for a pipe without a writer, in place of data, manifest,
// summary and lab.
func TestPipes(t *testing.T) {
	dir, _, _ := threeGroups(t)
	writeManifest(t, dir, QueuesFile)
	replace := func(name string) {
		file := filepath.Join(dir, name)
		_ = os.Remove(file)
		if err := unix.Mkfifo(file, 0o600); err != nil {
			t.Error(err)
		}
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		replace(QueuesFile)
		wantRefused(t, dir, "not a regular file")
		for name, read := range map[string]func() error{
			SummaryFile:  func() error { _, err := ReadSummary(dir); return err },
			ManifestFile: func() error { _, err := ReadManifest(dir); return err },
			LabFile:      func() error { _, err := ReadLab(dir); return err },
		} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
			replace(name)
			if err := read(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(quiettest.Patience):
		t.Fatal("a reader waits for a pipe without a writer")
	}
}

// Export checks the format of the run, as all other readers do.
func TestExportOfNewerRun(t *testing.T) {
	dir, _, _ := threeGroups(t)
	if err := writeJSON(filepath.Join(dir, ManifestFile), record.Manifest{Format: Format + 1, Status: "ok"}); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, "use a newer weft")
}

// A summary with a number that no run can have is an error that names it, not a better result.
// Numbers that can be below 0 stay what they are.
func TestNegativeNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`"network":{"drops":-5}`:                         "network.drops",
		`"network":{"timeouts":-1,"drops":0}`:            "network.timeouts",
		`"network":{"ccm":{"lost":-1}}`:                  "network.ccm.lost",
		`"network":{"queue_delay_us":{"p99":-0.5}}`:      "network.queue_delay_us.p99",
		`"flows":{"count":1,"fct_us":{"mean":-3}}`:       "flows.fct_us.mean",
		`"rtt_us":{"mean":-1e-9}`:                        "rtt_us.mean",
		`"lab_time_us":-1`:                               "lab_time_us",
		`"collectives":[{"name":"x"},{"busbw_gbps":-1}]`: "collectives.1.busbw_gbps",
		`"metrics":[{"name":"x","count":-1}]`:            "metrics.0.count",
		`"fidelity":{"verdict":"ok","crossings":-1}`:     "fidelity.crossings",
		`"clocks":{"packets":-1}`:                        "clocks.packets",
		`"metrics":[{"name":"x","count":1,"min":-2,"p50":-1,"values":[-2],"groups":[{"at":"a=1","count":1,"p50":-1}]}]`: "",
		`"expect":[{"that":"x","got":-1,"want":-2}]`:                          "",
		`"clocks":{"reference_ns":{"mean":-4},"g8273_2":[]}`:                  "",
		`"programs":[{"item":0,"hosts":[{"host":"h0","exit":-1}]}]`:           "",
		`"fidelity":{"verdict":"ok","stalls":[{"process":"x","from_us":-3}]}`: "",
		`"network":{"drops":5},"point":{"x":-1}`:                              "",
	} {
		dir := t.TempDir()
		text := `{"format":` + strconv.Itoa(Format) + `,"status":"ok",` + text + `}`
		if err := os.WriteFile(filepath.Join(dir, SummaryFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		writeManifest(t, dir, SummaryFile)
		_, err := ReadSummary(dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "damaged: "+want+" is negative")) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
