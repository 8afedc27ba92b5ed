package main

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"weft/orchestrator/paper"
	"weft/results/record"
)

// How long a paper still takes follows from what its runs so far took, and is not said before.
func TestPaperTimeFollowsItsRuns(t *testing.T) {
	var work paperWork
	for range 3 {
		work.figures = append(work.figures, figureWork{Figure: &paper.Figure{}, guess: time.Minute})
	}
	if got := work.place(0); got != "1 of 3" {
		t.Errorf("before any run: %s", got)
	}
	if got := work.total(); !strings.Contains(got, "on idle processors") {
		t.Errorf("in all: %s", got)
	}
	work.figures[0].took([]*record.Summary{{WallS: 200}, {WallS: 100}}) // five times the guess
	left, measured := work.left(1)
	if want := 10 * time.Minute / time.Duration(runtime.NumCPU()); left != want || !measured || !strings.HasSuffix(work.place(1), " left") {
		t.Errorf("%v left, want %v: %s", left, want, work.place(1))
	}
}
