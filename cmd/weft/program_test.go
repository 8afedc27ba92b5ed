package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The program of weft run -- CMD is kept with its flags and absolute paths, to run it again.
func TestProgramGiven(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a.py", "conf"} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var p programFlags
	var got []string
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, args []string) error {
		_, c, err := p.command(cmd, args)
		if c != nil {
			got = c.Given
		}
		return err
	}}
	p.register(cmd.Flags())
	cmd.SetArgs([]string{"star", "--file", "conf", "-e", "A=1", "-e", "B=2", "--launch", "torchrun", "--", "./a.py", "-n", "3"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"--launch", "torchrun", "--env", "A=1", "--env", "B=2", "--file", filepath.Join(dir, "conf"),
		"--", filepath.Join(dir, "a.py"), "-n", "3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The errors of a script without execute permission, and of a launcher such as mpirun, say what to
// do instead.
func TestProgramHints(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.py", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "quickstart", "--", "./a.py"}, {"exec", "h0", "--", "./a.py"}} {
		code, _, stderr := weft(t, &fake{}, args...)
		if code != exitUsage || !strings.Contains(stderr, "./a.py may not be run: chmod +x ./a.py") {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
	}
	var b strings.Builder
	a := &app{stderr: &b}
	a.explainLauncher("weft exec", "/usr/bin/mpirun")
	a.explainLauncher("weft exec", "python3")
	if want := "weft: /usr/bin/mpirun started all its processes on one host; to have one on each, leave it out: " +
		"weft exec --launch mpich or openmpi ... -- CMD\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if code, _, stderr := weft(t, &fake{}, "run", "quickstart", "--view", "--watch"); code != exitUsage ||
		!strings.Contains(stderr, "leave out one") {
		t.Errorf("code %d, %s", code, stderr)
	}
}
