package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/series"
	"weft/results/store"
)

// Outputs that cannot be written are errors before anything runs.
func TestOutputsAreCheckedBeforeAnythingRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("gone", link); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	folder, plain := t.TempDir(), t.TempDir()
	if err := os.Symlink("gone", filepath.Join(folder, "quickstart")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(plain, "quickstart"), "")
	for _, c := range []struct{ flag, path, says string }{
		{"--out", folder, filepath.Join(folder, "quickstart") + " is a symbolic link to gone, which does not exist"},
		{"--out", plain, "cannot store runs: create a directory in " + filepath.Join(plain, "quickstart") + ": not a directory"},
		{"--junit", pipe, "junit report: open " + pipe + ": it is a FIFO or a socket that nobody reads"},
		{"--summary", pipe, "summary: open " + pipe + ": it is a FIFO or a socket that nobody reads"},
		{"--summary", filepath.Join(link, "x"), "summary: open "},
		{"--summary", filepath.Dir(file), "is a directory"},
		{"--junit", filepath.Join(file, "x"), "junit report: open "},
		{"--junit", filepath.Dir(file), "is a directory"},
		{"--out", file, "cannot store runs"},
		{"--out", link, link + " is a symbolic link to gone, which does not exist"},
		{"--out", filepath.Join(link, "x"), link + " is a symbolic link to gone, which does not exist"},
		{"--out", filepath.Join(file, "x"), "not a directory"},
	} {
		f := &fake{}
		code, _, stderr := weft(t, f, "run", "labs/quickstart.yaml", c.flag, c.path)
		if code != exitUsage || !strings.Contains(stderr, c.says) || len(f.runs) > 0 {
			t.Errorf("%s %s: code %d, stderr %q, ran %v", c.flag, c.path, code, stderr, f.runs)
		}
	}
	bench := filepath.Join(folder, "bench")
	if err := os.Symlink("gone", bench); err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	if code, _, stderr := weft(t, f, "bench", "--engine", "sim", "--ranks", "2", "-b", "8", "-n", "1", "--out", folder); code != exitUsage ||
		!strings.Contains(stderr, bench+" is a symbolic link to gone, which does not exist") || len(f.runs) > 0 {
		t.Errorf("weft bench: code %d, stderr %q, ran %v", code, stderr, f.runs)
	}
	for _, flag := range []string{"--junit", "--summary"} {
		if code, stdout, stderr := weft(t, &fake{}, "run", "labs/quickstart.yaml", flag, "/dev/full"); code != exitFailed ||
			!strings.Contains(stderr, "no space left on device") || stdout == "" {
			t.Errorf("%s: a report that does not fit: code %d, stderr %q, stdout %q", flag, code, stderr, stdout)
		}
	}
	for _, flag := range []string{"--junit", "--summary"} { // a FIFO with a reader
		reader, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		code, _, stderr := weft(t, &fake{}, "run", "labs/quickstart.yaml", flag, pipe)
		text, err := io.ReadAll(reader)
		reader.Close()
		if code != exitOK || err != nil || !strings.Contains(string(text), "quickstart") {
			t.Errorf("%s: code %d, stderr %q, the reader has %q, %v", flag, code, stderr, text, err)
		}
	}
}

// Reading a pipe that nobody writes to would block forever.
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

// The points of a sweep run at once, and their directories are in order.
func TestSweepLeavesDirectoriesInOrder(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "sweep.yaml")
	write(t, path, `weft: 1
name: sweep
topology: {kind: star, hosts: 4}
workload: [{collective: permute, size: 64KB}]
sweep: {seed: [5, 3, 9, 1]}
`)
	code, _, words := weft(t, orchestrated{}, "run", path, "--engine", "sim", "--out", root)
	if code != exitOK {
		t.Fatalf("code %d: %s", code, words)
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
	flags.Engine.Kind = "both"
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
	for _, j := range series.Jobs(files, began) {
		if j.Series.Began != began {
			t.Errorf("%s began %v", j.Lab.Name, j.Series.Began)
		}
		got = append(got, fmt.Sprintf("%s %s %d of %d", j.Lab.Name, j.Engine, j.Series.Number, j.Series.Of))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Without --out, runs are written to runs, or to WEFT_OUT, and read from there.
func TestRunsGoToRuns(t *testing.T) {
	dir := t.TempDir()
	lab := filepath.Join(dir, "tiny.yaml")
	write(t, lab, "weft: 1\nname: tiny\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 64KB}]\n")
	t.Chdir(dir)
	for _, c := range []struct{ env, want string }{{"", "runs"}, {"elsewhere", "elsewhere"}} {
		t.Setenv(store.RootVar, c.env)
		code, _, words := weft(t, orchestrated{}, "run", lab, "--engine", "sim")
		if code != exitOK {
			t.Fatalf("WEFT_OUT=%q: code %d: %s", c.env, code, words)
		}
		if dirs, _ := filepath.Glob(filepath.Join(dir, c.want, "tiny", "*", store.SummaryFile)); len(dirs) != 1 {
			t.Errorf("WEFT_OUT=%q: runs in %s: %q", c.env, c.want, dirs)
		}
		if code, stdout, stderr := weft(t, &fake{}, "results", "ls"); code != exitOK || !strings.Contains(stdout, c.want+"/tiny/") {
			t.Errorf("WEFT_OUT=%q: results ls: code %d, stdout %q, stderr %q", c.env, code, stdout, stderr)
		}
		if code, _, stderr := weft(t, &fake{}, "results", "show", "tiny"); code != exitOK {
			t.Errorf("WEFT_OUT=%q: results show: code %d, stderr %q", c.env, code, stderr)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v; want the lab and two directories of runs", entries, err)
	}

	t.Setenv(store.RootVar, "")
	const hint = "results holds runs of an earlier version: add --out results"
	if _, _, stderr := weft(t, &fake{}, "results", "ls"); stderr != "" {
		t.Errorf("a hint that nobody needs: %q", stderr)
	}
	if err := os.Rename("runs", "results"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"results", "ls"}, {"results", "show", "tiny"}} {
		if _, _, stderr := weft(t, &fake{}, args...); !strings.Contains(stderr, hint) {
			t.Errorf("weft %q: stderr %q, want %q", args, stderr, hint)
		}
	}
}
