package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/shell"
	"weft/orchestrator/launcher"
	"weft/orchestrator/together"
)

// Programs on several nodes are told about each other, their lines have the node in front, and each
// end is reported.
func TestPrivExecAll(t *testing.T) {
	_, h := newGuardedLab(t)
	hosts, err := h.Hosts()
	if err != nil || len(hosts) < 2 || hosts[0] != "h0" {
		t.Fatalf("the hosts are %v, %v", hosts, err)
	}
	nodes := []string{"h1", "h0"}
	run := func(kind, script string, timeout time.Duration) (endings []together.Ending, first int, out string) {
		var stdout, stderr bytes.Buffer
		endings, first = h.ExecAll(t.Context(), &together.Job{Hosts: nodes, Launch: launcher.Of(kind), Timeout: timeout,
			Args: []string{"/bin/sh", "-c", script}, Env: []string{"MINE=x"},
			Line: func(rank int, errors bool, line []byte) {
				to := &stdout
				if errors {
					to = &stderr
				}
				fmt.Fprintf(to, "%s: %s\n", nodes[rank], line)
			}}, false)
		lines := slices.Sorted(strings.Lines(stdout.String()))
		return endings, first, strings.Join(lines, "") + stderr.String()
	}
	endings, first, out := run("torchrun", "echo $RANK of $WORLD_SIZE with $MASTER_ADDR $MINE; printf part", 0)
	const want = "h0: 1 of 2 with h1 x\nh0: part\nh1: 0 of 2 with h1 x\nh1: part\n"
	if first != -1 || out != want || endings[0].Failed() || endings[1].Failed() {
		t.Errorf("first failure %d of %+v, output %q", first, endings, out)
	}

	// One fails; the other has a child that would hold the output for a minute.
	const fails = "test $(hostname) = h0 && exit 7; sleep 60 & wait"
	begin := quiettest.Start()
	endings, first, _ = run("", fails, 0)
	if first != 1 || endings[1].How() != "exit status 7" || endings[0].How() != "it was ended, since h0 failed" {
		t.Errorf("first failure %d of %+v", first, endings)
	}
	if code, out := runProgram(t, h, Exec{Node: "h1", Args: []string{"sh", "-c", "cat /proc/[0-9]*/comm | grep -c sleep"}}); code != 1 {
		t.Errorf("a child was left: %s", out)
	}
	begin.AtMost(t, 30*time.Second, "the end of a program that does not end by itself")
	quiettest.Check(t, 3, func() error { // on a busy machine a program that ends at once may take as long
		endings, first, _ = run("", "test $(hostname) = h0 || sleep 60", time.Second)
		if first != 0 || endings[0].How() != "it did not end within 1s" || endings[1].Failed() {
			return fmt.Errorf("first failure %d of %+v", first, endings)
		}
		return nil
	})
}

// A launcher, and what it asks for, see the folder of the program that they are to start.
func TestPrivLauncherSeesTheProgram(t *testing.T) {
	_, h := newGuardedLab(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "mine.sh")
	write := os.WriteFile(script, []byte("#!/bin/sh\necho in $(hostname)\n"), 0o755)
	if err := errors.Join(write, os.Chmod(script, 0o755), os.Chmod(dir, 0o755)); err != nil { // whatever the umask
		t.Fatal(err)
	}
	kind := &launcher.Kind{
		Leader: func(program, hosts []string) []string {
			return []string{"sh", "-c", "echo ask; exec " + shell.Quote(program[0])}
		},
		Ask: func(line string, hosts []string) (launcher.Asked, bool) {
			return launcher.Asked{Rank: 1, Args: []string{"sh", "-c", shell.Quote(script)}}, line == "ask"
		},
	}
	var lines []string
	endings, first := h.ExecAll(t.Context(), &together.Job{Hosts: []string{"h0", "h1"}, Launch: kind, Args: []string{script},
		Line: func(_ int, _ bool, line []byte) { lines = append(lines, string(line)) }}, false)
	slices.Sort(lines)
	if got := strings.Join(lines, ", "); first != -1 || got != "in h0, in h1" {
		t.Errorf("first failure %d of %+v, output %q", first, endings, got)
	}
}
