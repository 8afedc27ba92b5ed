package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/results/record"
)

// writeManifest writes a manifest that lists the files of a directory as they are now.
func writeManifest(t *testing.T, dir string, names ...string) {
	t.Helper()
	m := record.Manifest{Format: Format, Status: "ok"}
	for _, name := range names {
		f, err := sum(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, f)
	}
	if err := writeJSON(filepath.Join(dir, ManifestFile), m); err != nil {
		t.Fatal(err)
	}
}

// A data file that is whole, but another run's, is told by all that read one.
func TestAnotherRunsFileIsRefused(t *testing.T) {
	dir, content, ends := threeGroups(t)
	writeManifest(t, dir, QueuesFile)
	if err := Scan(dir, QueuesFile, func([]queueRow) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, QueuesFile), content[:ends[1]], 0o644); err != nil {
		t.Fatal(err)
	}
	wantForeign(t, dir, "was changed or damaged after the run")
	if err := os.Rename(filepath.Join(dir, QueuesFile), filepath.Join(dir, WindowsFile)); err != nil {
		t.Fatal(err)
	}
	if err := Scan(dir, WindowsFile, func([]queueRow) error { return nil }); err == nil || !strings.Contains(err.Error(), "does not name it") {
		t.Errorf("a file that the manifest does not name: %v", err)
	}
}

// wantForeign checks that no reader accepts queues.parquet.
func wantForeign(t *testing.T, dir, text string) {
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

// A pipe that nobody writes to, and a device, are refused at once: as data, manifest, summary and lab.
func TestPipesAndDevicesAreRefused(t *testing.T) {
	dir, _, _ := threeGroups(t)
	writeManifest(t, dir, QueuesFile)
	replace := func(name string) {
		file := filepath.Join(dir, name)
		_ = os.Remove(file)
		if err := unix.Mkfifo(file, 0o600); err != nil {
			t.Error(err)
		}
	}
	told := make(chan bool)
	go func() {
		defer close(told)
		replace(QueuesFile)
		wantForeign(t, dir, "not a regular file")
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
	case <-told:
	case <-time.After(quiettest.Patience):
		t.Fatal("a pipe without a writer is waited for")
	}
}

// Export holds the format of the run against its own, as all other readers do.
func TestExportRefusesNewerRuns(t *testing.T) {
	dir, _, _ := threeGroups(t)
	if err := writeJSON(filepath.Join(dir, ManifestFile), record.Manifest{Format: Format + 1, Status: "ok"}); err != nil {
		t.Fatal(err)
	}
	wantForeign(t, dir, "take a newer weft")
}
