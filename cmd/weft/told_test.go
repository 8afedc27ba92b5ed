package main

import (
	"errors"
	"strings"
	"testing"

	"weft/orchestrator/series"
)

// The error of a run whose summary has the reason only names the run.
func TestPrintedFailuresAreBrief(t *testing.T) {
	cause := errors.New("ring: nothing moves\n  a waits for b\n  b waits for a")
	other := errors.New("report: no space left")
	left := func(f series.Failed) bool { return f.Started }
	err := joinErrors([]error{nil, series.Failed{Name: "ring", Started: true, Err: cause}, other}, left)
	if got := err.Error(); got != "ring failed; see its summary\nreport: no space left" {
		t.Errorf("got %q", got)
	}
	if !errors.Is(err, cause) || !errors.Is(err, other) {
		t.Error("a cause is hidden from who asks for it")
	}
	if got := joinErrors([]error{series.Failed{Name: "ring", Started: true, Err: cause}, series.Failed{Name: "star", Started: true, Err: cause}}, left).Error(); got != "2 runs failed; the reasons are above" {
		t.Errorf("got %q", got)
	}
	twice := series.Failed{Name: "ring", Started: true, Err: other}
	if got := joinErrors([]error{series.Failed{Name: "ring", Started: true, Err: cause}, twice}, left).Error(); got != "ring failed; see its summary" {
		t.Errorf("a run with two errors: %q", got)
	}
	if got := joinErrors([]error{series.Failed{Name: "ring", Started: false, Err: cause}}, left).Error(); !strings.Contains(got, "nothing moves") {
		t.Errorf("a run that left no summary: %q", got)
	}
	if err := joinErrors([]error{nil, nil}, left); err != nil {
		t.Errorf("nothing failed: %v", err)
	}
}

// Runs that failed for the same reason share one line.
func TestEqualFailuresShareALine(t *testing.T) {
	cause, other := errors.New("link a-b is down"), errors.New("no memory")
	var errs []error
	for _, name := range []string{"x n=1", "x n=2", "x n=3"} {
		errs = append(errs, series.Failed{Name: name, Started: true, Err: cause})
	}
	err := joinErrors(append(errs, series.Failed{Name: "y", Started: true, Err: other}), func(series.Failed) bool { return false })
	if got, want := err.Error(), "x n=1, x n=2, x n=3: link a-b is down\ny: no memory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, cause) || !errors.Is(err, other) {
		t.Error("a cause is hidden from who asks for it")
	}
}
