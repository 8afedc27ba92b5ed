package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/results/store"
)

// What stands in the way of what runs are to leave is found before they are made.
func TestOutputsAreCheckedBeforeAnythingRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, c := range []struct{ flag, path, says string }{
		{"--junit", filepath.Join(file, "x"), "junit report: open "},
		{"--junit", filepath.Dir(file), "is a directory"},
		{"--out", file, "nowhere to keep results"},
		{"--out", filepath.Join(file, "x"), "not a directory"},
	} {
		f := &fake{}
		code, _, stderr := weft(t, f, "run", "labs/quickstart.yaml", c.flag, c.path)
		if code != exitUsage || !strings.Contains(stderr, c.says) || len(f.runs) > 0 {
			t.Errorf("%s %s: code %d, stderr %q, ran %v", c.flag, c.path, code, stderr, f.runs)
		}
	}
	if code, stdout, stderr := weft(t, &fake{}, "run", "labs/quickstart.yaml", "--junit", "/dev/full"); code != exitFailed ||
		!strings.Contains(stderr, "no space left on device") || stdout == "" {
		t.Errorf("a report that does not fit: code %d, stderr %q, stdout %q", code, stderr, stdout)
	}
}

// A pipe that nobody writes to would be read for ever.
func TestOnlyRegularFilesAreLabs(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, "/dev/zero"} {
		for _, command := range []string{"validate", "run", "explain"} {
			code, _, stderr := weft(t, &fake{}, command, name)
			if code != exitUsage || !strings.Contains(stderr, name) || !strings.Contains(stderr, "not a regular file") {
				t.Errorf("weft %s %s: code %d, stderr %q", command, name, code, stderr)
			}
		}
	}
}

// The simulator itself, in this process: the points of a sweep run side by side, and their directories are in order.
func TestSweepLeavesDirectoriesInOrder(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "sweep.yaml")
	write(t, path, `weft: 1
name: sweep
topology: {kind: star, hosts: 4}
workload: [{collective: permute, size: 64KB}]
sweep: {seed: [5, 3, 9, 1]}
`)
	var out, words strings.Builder
	if code := run(t.Context(), []string{"run", path, "--engine", "sim", "--out", root}, &out, &words); code != exitOK {
		t.Fatalf("code %d: %s", code, words.String())
	}
	dirs, err := filepath.Glob(filepath.Join(root, "sweep", "[0-9]*"))
	if err != nil || len(dirs) != 4 {
		t.Fatalf("%v, %v", dirs, err)
	}
	for i, seed := range []uint64{5, 3, 9, 1} {
		s, err := store.ReadSummary(dirs[i])
		if err != nil {
			t.Fatal(err)
		}
		m, err := store.ReadManifest(dirs[i])
		if err != nil {
			t.Fatal(err)
		}
		if s.Seed != seed || !s.Verified || m.Status != "ok" || m.Seed != seed {
			t.Errorf("%s is of seed %d, %s; want %d", dirs[i], s.Seed, m.Status, seed)
		}
	}
}

func TestRunsAreNumberedByLab(t *testing.T) {
	var flags labFlags
	flags.engine.Kind = "both"
	files, err := flags.load([]string{"labs/smoke/star.yaml", "labs/smoke/permute.yaml", "labs/smoke/star.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := []string{
		"smoke-star sim 1 of 4", "smoke-star emu 2 of 4",
		"smoke-permute sim 1 of 4", "smoke-permute emu 2 of 4", "smoke-permute sim 3 of 4", "smoke-permute emu 4 of 4",
		"smoke-star sim 3 of 4", "smoke-star emu 4 of 4",
	}
	var got []string
	for _, j := range jobsOf(files, began) {
		if j.series.Began != began {
			t.Errorf("%s began %v", j.lab.Name, j.series.Began)
		}
		got = append(got, fmt.Sprintf("%s %s %d of %d", j.lab.Name, j.engine, j.series.Number, j.series.Of))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
