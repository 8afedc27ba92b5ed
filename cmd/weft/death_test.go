package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
)

// children lists the processes that this one has started for a lab: pid by what they are, "node" or "fabric".
func children(t *testing.T) map[int]string {
	t.Helper()
	out := map[int]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone
		}
		_, after, _ := strings.Cut(string(text), ") ") // state, parent
		fields := strings.Fields(after)
		if len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		args := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if what := args[len(args)-1]; err == nil && (what == "node" || what == "fabric") {
			out[pid] = what
		}
	}
	return out
}

// watched is the engines themselves, and tells when the first bytes were delivered.
type watched struct {
	orchestrated
	moving chan bool
}

func (w watched) Run(ctx context.Context, l *lab.Lab, o orchestrate.Options) (*record.Summary, error) {
	show := o.Progress
	o.Progress = func(p orchestrate.Progress) {
		show(p)
		if p.Done > 0 {
			select {
			case w.moving <- true:
			default:
			}
		}
	}
	return w.orchestrated.Run(ctx, l, o)
}

// When a process of the lab dies, the run ends at once, says which, keeps what it has and leaves nothing.
func TestPrivDeathOfAProcessEndsTheRun(t *testing.T) {
	needEmulation(t)
	for _, victim := range []string{"node", "fabric"} {
		t.Run(victim, func(t *testing.T) {
			root := t.TempDir()
			var out, words strings.Builder
			moving := make(chan bool, 1)
			a := &app{stdout: &out, stderr: &words, engine: watched{moving: moving}}
			code := make(chan int, 1)
			go func() {
				code <- a.execute(t.Context(), []string{"run", "labs/smoke/star.yaml", "--engine", "emu", "--dilation", "1000000", "--out", root})
			}()
			select {
			case <-moving:
			case <-time.After(20 * time.Second):
				t.Fatal("nothing was delivered within 20 s")
			}
			for pid, what := range children(t) {
				if what == victim {
					if err := unix.Kill(pid, unix.SIGKILL); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			killed := time.Now()
			select {
			case got := <-code:
				if got != exitFailed {
					t.Errorf("code %d, want %d", got, exitFailed)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("the run went on for 10 s")
			}
			t.Logf("ended %v after the death", time.Since(killed))
			if !strings.Contains(words.String(), "died: signal: killed") {
				t.Errorf("weft said %q", words.String())
			}
			if left := children(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			dirs, _ := filepath.Glob(filepath.Join(root, "*", "*"))
			s := summaryOf(t, dirs, words.String())
			if s.Status != "failed" || !strings.Contains(s.Error, "died") {
				t.Errorf("status %q, error %q", s.Status, s.Error)
			}
		})
	}
}

// A disk that fills up fails the run, and the reason is told.
func TestPrivFullDiskFailsTheRun(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mount("weft-test", root, "tmpfs", 0, "size=32k"); err != nil {
		t.Skipf("no file system to fill: %v", err)
	}
	defer func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	}()
	var out, words strings.Builder
	code := run(t.Context(), []string{"run", "labs/quickstart.yaml", "--engine", "sim", "--out", root}, &out, &words)
	if code != exitFailed || !strings.Contains(words.String(), "no space left on device") {
		t.Errorf("code %d, weft said %q", code, words.String())
	}
	if !strings.Contains(out.String(), "quickstart") {
		t.Errorf("nothing is shown: %q", out.String())
	}
}
