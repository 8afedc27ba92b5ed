package main

import (
	"fmt"
	"io"
	"time"

	"weft/results/table"
)

// pace shows progress and the time left at the present speed: as a bar on a terminal, elsewhere as
// a line now and then. A quiet pace shows nothing.
type pace struct {
	words io.Writer
	bar   *table.Progress // nil: there is no terminal
	quiet bool
	now   func() time.Time

	what  string // the task under way
	began time.Time
	said  time.Time // instant of the last line, or of the start before any
	share float64   // share that the last line told
	last  float64   // share of the last call of set
}

// newPace returns a pace that writes to standard error.
func (a *app) newPace(quiet bool) *pace {
	p := &pace{words: a.stderr, quiet: quiet, now: a.time}
	if !quiet && terminal(a.stderr) {
		p.bar = table.NewProgress(a.stderr)
	}
	return p
}

// time returns the present instant, by the test's clock if there is one.
func (a *app) time() time.Time {
	if a.now != nil {
		return a.now()
	}
	return time.Now()
}

// Without a bar a line follows the one before after lineAfter if lineShare more is done, and after
// lineEvery in any case. Chosen so that a run of an hour logs about 60 lines, one of a minute a
// few.
const (
	lineAfter = 10 * time.Second
	lineShare = 0.1
	lineEvery = time.Minute
)

// The time left is shown after leftAfter and beyond leftShare: the first steps predict little.
const (
	leftAfter = 2 * time.Second
	leftShare = 0.02
)

// set shows under a label that done of total is done. Another task than before, or less progress,
// restarts the clock.
func (p *pace) set(what, label string, done, total int64) {
	if p.quiet || total <= 0 {
		return
	}
	now, share := p.now(), min(max(float64(done)/float64(total), 0), 1)
	if what != p.what || share < p.last {
		p.what, p.began, p.said, p.share = what, now, now, 0
	}
	p.last = share
	left := ""
	if took := now.Sub(p.began); share > leftShare && share < 1 && took >= leftAfter {
		left = ", " + lasting(time.Duration(float64(took)*(1-share)/share)) + " left"
	}
	if p.bar != nil {
		p.bar.Set(label+left, done, total)
		return
	}
	if since := now.Sub(p.said); share < 1 && since >= lineAfter && (share-p.share >= lineShare || since >= lineEvery) {
		p.said, p.share = now, share
		fmt.Fprintf(p.words, "%s: %.0f %%%s\n", label, 100*share, left)
	}
}

// lasting formats a duration to the second.
func lasting(d time.Duration) string { return max(d.Round(time.Second), time.Second).String() }

// say writes a line of words.
func (p *pace) say(line string) {
	if p.quiet {
		return
	}
	p.bar.Clear()
	fmt.Fprintln(p.words, line)
}

// clear removes the bar, so that others can write.
func (p *pace) clear() { p.bar.Clear() }
