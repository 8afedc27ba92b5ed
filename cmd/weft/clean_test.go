package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/orchestrator/deploy"
)

// Whatever clean cannot look at is listed with the reason, and it never says that there is nothing
// to clean then.
func TestCleanSaysWhatItDidNotLookAt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(deploy.RootVar, filepath.Join(dir, "state"))
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	squeue := "#!/bin/sh\necho 'squeue: error: no controller answers' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "squeue"), []byte(squeue), 0o755); err != nil {
		t.Fatal(err)
	}
	engine := []string{"containers of labs", "tasks on a swarm"}
	for _, c := range []struct {
		name, variable, value string
		want                  []string
		why                   string
	}{
		{"dead engine", "DOCKER_HOST", "unix://" + dead, engine, "ocker"},
		{"wrong address", "DOCKER_HOST", "unix://" + filepath.Join(dir, "none"), engine, "ocker"},
		{"no address", "DOCKER_HOST", "garbage", engine, "garbage"},
		{"remote engine", "DOCKER_HOST", "tcp://127.0.0.1:1", engine, "127.0.0.1:1"},
		{"Slurm", "PATH", dir, []string{"jobs of Slurm"}, "no controller answers"},
		{"temporary files", "TMPDIR", filepath.Join(dir, "none"), []string{"files of agents"}, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DOCKER_HOST", "") // this machine's, which may be there
			t.Setenv(c.variable, c.value)
			code, stdout, stderr := weft(t, nil, "clean", "--json")
			var swept []deploy.Swept
			if err := json.Unmarshal([]byte(stdout), &swept); err != nil || code != 0 {
				t.Fatalf("code %d, %v: %s%s", code, err, stdout, stderr)
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(swept, func(s deploy.Swept) bool {
					return s.Lab == want && s.What == deploy.NotLookedAt && strings.Contains(s.Why, c.why)
				}) {
					t.Errorf("%q is not told: %s", want, stdout)
				}
			}
			if _, stdout, stderr := weft(t, nil, "clean"); strings.Contains(stderr, "nothing to clean") ||
				!strings.Contains(stdout, c.want[0]+": not looked at (") {
				t.Errorf("it says %s%s", stdout, stderr)
			}
		})
	}
}
