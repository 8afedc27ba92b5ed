package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// With --kernel uml the same command line runs under User Mode Linux, and its exit code is
// returned.
func TestKernelUML(t *testing.T) {
	for _, args := range [][]string{
		{"run", "labs/quickstart.yaml", "--kernel", "uml"},
		{"run", "labs/quickstart.yaml", "--engine", "both", "--kernel=uml"},
		{"bench", "--kernel", "uml", "--engine", "emu"},
		{"clock", "labs/quickstart.yaml", "--set", "clocks.sync=ptp", "--kernel", "uml"},
	} {
		var booted []string
		var out, words strings.Builder
		f := &fake{}
		a := &app{stdout: &out, stderr: &words, engine: f, boot: func(_ context.Context, args []string, _ io.Writer) (int, error) {
			booted = args
			return exitMissed, nil
		}}
		if code := a.execute(t.Context(), args); code != exitMissed || !slices.Equal(booted, args) || len(f.runs) > 0 || out.Len()+words.Len() > 0 {
			t.Errorf("%q: code %d, booted %q, ran %q\n%s%s", args, code, booted, f.runs, &out, &words)
		}
	}
	var words strings.Builder
	a := &app{stdout: &words, stderr: &words, engine: &fake{}, boot: func(context.Context, []string, io.Writer) (int, error) { return 0, errors.New("no kernel") }}
	if code := a.execute(t.Context(), []string{"run", "labs/quickstart.yaml", "--kernel", "uml"}); code != exitFailed || words.String() != "weft: no kernel\n" {
		t.Errorf("code %d, %q", code, &words)
	}
}

// An interruption before the program under User Mode Linux can report it is reported here, once.
func TestUnreportedInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	quiet, loud := &trackedWriter{to: new(strings.Builder)}, &trackedWriter{to: new(strings.Builder)}
	if _, err := loud.Write([]byte("weft: interrupted\n")); err != nil {
		t.Fatal(err)
	}
	if err := quiet.interruption(ctx, exitInterrupted); err != nil {
		t.Errorf("nobody interrupted, but %v", err)
	}
	cancel()
	if err := errors.Join(loud.interruption(ctx, exitInterrupted), quiet.interruption(ctx, exitOK)); err != nil {
		t.Error(err)
	}
	var words strings.Builder
	a := &app{stdout: &words, stderr: &words, engine: &fake{}, boot: func(context.Context, []string, io.Writer) (int, error) {
		return exitInterrupted, quiet.interruption(ctx, exitInterrupted)
	}}
	if code := a.execute(ctx, []string{"run", "labs/quickstart.yaml", "--kernel", "uml"}); code != exitInterrupted || !strings.Contains(words.String(), "everything was torn down") {
		t.Errorf("code %d, %q", code, &words)
	}
}

// A process that already is under User Mode Linux continues.
func TestInsideUML(t *testing.T) {
	t.Setenv("WEFT_UML", "6.1")
	f := &fake{}
	if code, _, stderr := weft(t, f, "run", "labs/quickstart.yaml", "--kernel", "uml"); code != 0 || !slices.Equal(f.runs, []string{"quickstart auto"}) {
		t.Errorf("code %d, ran %q\n%s", code, f.runs, stderr)
	}
}
