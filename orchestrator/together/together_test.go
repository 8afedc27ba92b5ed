package together

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/launcher"
)

// job returns a job of three hosts that collects its output.
func job(lines *[]string) *Job {
	return &Job{Hosts: []string{"a", "b", "c"}, Args: []string{"prog", "x"}, Env: []string{"MINE=1"},
		Line: func(rank int, errors bool, line []byte) {
			*lines = append(*lines, fmt.Sprintf("%d %t %s", rank, errors, line))
		}}
}

// Programs are told about each other, and their lines come whole, with their rank.
func TestRun(t *testing.T) {
	var lines []string
	j := job(&lines)
	j.Launch = launcher.Of("torchrun")
	endings, first := j.Run(t.Context(), func(_ context.Context, p Program, in, out, errs *os.File) (Exit, error) {
		if !slices.Contains(p.Env, "MASTER_ADDR=a") || !slices.Contains(p.Env, fmt.Sprint("RANK=", p.Rank)) || p.Env[len(p.Env)-1] != "MINE=1" {
			t.Errorf("rank %d is told %q", p.Rank, p.Env)
		}
		fmt.Fprintf(out, "%s %d\npart", p.Args, p.Rank)
		fmt.Fprintln(errs, "oh")
		return Exit{}, nil
	})
	slices.Sort(lines)
	want := "0 false [prog x] 0|0 false part|0 true oh|1 false [prog x] 1|1 false part|1 true oh|2 false [prog x] 2|2 false part|2 true oh"
	if got := strings.Join(lines, "|"); got != want || first != -1 || len(endings) != 3 || endings[2].Failed() || !endings[2].Ran {
		t.Errorf("%d, %+v, %s", first, endings, got)
	}
}

// Output is whole, even if whoever takes it is slow and its program has long ended, and a daemon
// that goes on printing holds nobody up.
func TestSlowReader(t *testing.T) {
	lines, slow := 0, true
	j := &Job{Hosts: []string{"a"}, Line: func(int, bool, []byte) {
		if lines++; slow {
			slow = false
			time.Sleep(lastOutput + 100*time.Millisecond) // the reader is slow
		}
	}}
	over := make(chan struct{})
	var daemon sync.WaitGroup
	defer daemon.Wait()
	defer close(over)
	_, first := j.Run(t.Context(), func(_ context.Context, _ Program, in, out, errs *os.File) (Exit, error) {
		held, err := unix.Dup(int(out.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10000 {
			fmt.Fprintln(out, "line", i)
		}
		daemon.Go(func() {
			kept := os.NewFile(uintptr(held), "output")
			defer kept.Close()
			<-over
		})
		return Exit{}, nil
	})
	if lines != 10000 || first != -1 {
		t.Errorf("%d of 10000 lines", lines)
	}
}

// When one fails, the others are ended and name it; when the time is over, all are.
func TestFailures(t *testing.T) {
	var lines []string
	wait := func(fails int) Exec {
		return func(ctx context.Context, p Program, in, out, errs *os.File) (Exit, error) {
			if p.Rank == fails {
				return Exit{Code: 139, Signal: "SIGSEGV"}, nil
			}
			<-ctx.Done()
			return Exit{Code: 143}, nil
		}
	}
	endings, first := job(&lines).Run(t.Context(), wait(1))
	if first != 1 || endings[1].How() != "ended by SIGSEGV" || endings[0].How() != "it was ended, since b failed" || endings[2].With != "b" {
		t.Errorf("%d, %+v", first, endings)
	}
	j := job(&lines)
	j.Timeout = time.Millisecond
	if endings, _ = j.Run(t.Context(), wait(3)); endings[0].How() != "it did not end within 1ms" || endings[2].Cut != endings[0].Cut ||
		!endings[2].Late || j.Hint(endings) != "" {
		t.Errorf("%+v", endings)
	}
	if j.Launch = (&launcher.Kind{Late: "a known bug"}); j.Hint(endings) != "a known bug" || j.Hint(endings[:0]) != "" {
		t.Errorf("%q", j.Hint(endings))
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if endings, _ = job(&lines).Run(ctx, wait(3)); endings[0].How() != "it was interrupted" {
		t.Errorf("%+v", endings)
	}
	// What ended all of them is said of each, also of one that ends as the others are being ended.
	endings, _ = job(&lines).Run(ctx, func(ctx context.Context, _ Program, _, _, _ *os.File) (Exit, error) {
		return Exit{Code: 125, Ended: "no network"}, ctx.Err()
	})
	if endings[0].How() != "no network" || endings[0].Err != nil {
		t.Errorf("%+v", endings)
	}
	endings, first = job(&lines).Run(t.Context(), func(_ context.Context, p Program, _, _, _ *os.File) (Exit, error) {
		return Exit{}, errors.New(j.Hosts[p.Rank] + ": no such program")
	})
	if first < 0 || endings[first].How() != "no such program" {
		t.Errorf("%d, %+v", first, endings)
	}
}

// A launcher runs on the first host, and what it asks for on the others; that is no output.
func TestLauncher(t *testing.T) {
	var lines []string
	j := job(&lines)
	j.Launch = &launcher.Kind{
		Leader: func(program, hosts []string) []string { return append([]string{"mpirun", hosts[2]}, program...) },
		Ask: func(line string, hosts []string) (launcher.Asked, bool) {
			host, ok := strings.CutPrefix(line, "ASK ")
			return launcher.Asked{Rank: slices.Index(hosts, host), Args: []string{"proxy"}}, ok
		},
		Talk: func(line string) bool { return line == "END" },
	}
	exec := func(_ context.Context, p Program, in, out, errs *os.File) (Exit, error) {
		switch fmt.Sprint(p.Rank, p.Args) {
		case "0 [mpirun c prog x]":
			fmt.Fprintln(out, "hello\nASK b\nEND\nASK b\nworld")
			return Exit{}, nil
		case "1 [proxy]":
			return Exit{}, nil
		}
		t.Errorf("%d runs %q", p.Rank, p.Args)
		return Exit{}, nil
	}
	endings, first := j.Run(t.Context(), exec)
	if got := strings.Join(lines, "|"); got != "0 false hello|0 false world" || first != -1 || !endings[1].Ran || endings[2].Ran {
		t.Errorf("%d, %+v, %s", first, endings, got)
	}
	j.Launch.Ask = func(string, []string) (launcher.Asked, bool) {
		return launcher.Asked{Rank: 3, Args: []string{"x"}}, true
	}
	endings, first = j.Run(t.Context(), func(ctx context.Context, p Program, in, out, errs *os.File) (Exit, error) {
		fmt.Fprintln(out, "x")
		<-ctx.Done()
		return Exit{Code: 1}, nil
	})
	if first != 0 || !strings.Contains(endings[0].How(), "a host that is not the job's") {
		t.Errorf("%d, %+v", first, endings)
	}
}
