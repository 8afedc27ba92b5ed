package table

import (
	"fmt"
	"io"
	"time"
)

// Pace shows progress and the time left at the present speed: as a bar on a terminal, elsewhere as
// an occasional line. A quiet pace shows nothing.
type Pace struct {
	words io.Writer
	bar   *Progress // nil without a terminal
	quiet bool
	now   func() time.Time

	what  string // task under way
	began time.Time
	said  time.Time // time of the last line, or of the start before any
	share float64   // share in the last line
	last  float64   // share at the last call of Set
	seen  []progressAt
}

// progressAt is the share of a task that was done at an instant.
type progressAt struct {
	at    time.Time
	share float64
}

// NewPace returns a pace that writes to words, with a bar if that is a terminal. now returns the
// present time.
func NewPace(words io.Writer, terminal, quiet bool, now func() time.Time) *Pace {
	p := &Pace{words: words, quiet: quiet, now: now}
	if terminal && !quiet {
		p.bar = NewProgress(words)
	}
	return p
}

// Without a bar, a new line follows lineAfter after the last one if at least lineShare more is
// done, and after lineEvery in any case. Ours: a run of an hour logs about 60 lines, a run of a
// minute a few.
const (
	lineAfter = 10 * time.Second
	lineShare = 0.1
	lineEvery = time.Minute
)

// The time left appears after leftAfter and beyond leftShare, since the first steps predict little.
// It appears only while the speed of the last quarter of the time is within a factor of leftSteady
// of that of the whole: the rest of work that is not steady cannot be predicted. Ours.
const (
	leftAfter  = 2 * time.Second
	leftShare  = 0.02
	leftSteady = 1.5
	maxSeen    = 256 // instants remembered
)

// Set shows under a label that done of total is done. A new task, or less progress than before,
// restarts the clock.
func (p *Pace) Set(what, label string, done, total int64) {
	if p.quiet || total <= 0 {
		return
	}
	now, share := p.now(), min(max(float64(done)/float64(total), 0), 1)
	if what != p.what || share < p.last {
		p.what, p.began, p.said, p.share, p.seen = what, now, now, 0, p.seen[:0]
	}
	p.last = share
	left := ""
	if d, known := p.left(now, share); known {
		left = ", " + lasting(d) + " left"
	}
	if p.bar != nil {
		p.bar.Set(label+left, done, total)
		return
	}
	if since := now.Sub(p.said); share < 1 && since >= lineAfter && (share-p.share >= lineShare || since >= lineEvery) {
		p.said, p.share = now, share
		// 99.9 is not shown as 100
		fmt.Fprintf(p.words, "%s: %d %%%s\n", label, int(100*float64(done)/float64(total)), left)
	}
}

// left returns the time left, and remembers the progress.
func (p *Pace) left(now time.Time, share float64) (d time.Duration, known bool) {
	took := now.Sub(p.began)
	if len(p.seen) == maxSeen { // keep every second
		for i := range maxSeen / 2 {
			p.seen[i] = p.seen[2*i]
		}
		p.seen = p.seen[:maxSeen/2]
	}
	p.seen = append(p.seen, progressAt{now, share})
	if share <= leftShare || share >= 1 || took < leftAfter {
		return 0, false
	}
	mark := p.seen[0] // the last before the last quarter of the time
	for _, s := range p.seen {
		if now.Sub(s.at) < took/4 {
			break
		}
		mark = s
	}
	whole := float64(took) * (1 - share) / share
	recent := float64(now.Sub(mark.at)) * (1 - share) / (share - mark.share)
	if !(recent < leftSteady*whole && whole < leftSteady*recent) {
		return 0, false
	}
	return time.Duration(max(whole, recent)), true
}

// lasting formats a duration that is only roughly known: seconds below ten of them, then five
// seconds, and minutes from two of them on.
func lasting(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return max(d.Round(time.Second), time.Second).String()
	case d < 115*time.Second:
		return d.Round(5 * time.Second).String()
	}
	return fmt.Sprintf("%dm", int(d.Minutes()+0.5))
}

// Say writes a line of text.
func (p *Pace) Say(line string) {
	if p.quiet {
		return
	}
	p.bar.Clear()
	fmt.Fprintln(p.words, line)
}

// Clear removes the bar, so that others can write.
func (p *Pace) Clear() { p.bar.Clear() }
