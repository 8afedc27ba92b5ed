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
