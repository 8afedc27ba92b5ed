package huygens

import (
	"weft/clocksync"
	"weft/units"
)

// repeats are reports or solutions that leave again, since messages seem to be lost: whoever has had one counts the others as
// stale. Nothing acknowledges them, since a window is over before an acknowledgement would help.
type repeats struct {
	letters []letter
	at      units.Time // when they leave again, by the monotonic clock; Never: not
	left    int        // how often
	lossy   bool
}

const (
	repeatTimes = 2          // after the first time. With half of all messages lost an eighth of the reports are
	repeatAfter = 32         // a 32nd of the window: the last is there before windows are solved
	lossyShare  = 15.0 / 16. // of the probes that are expected, below which messages are taken to be lost
)

// begin forgets what was to be repeated.
func (r *repeats) begin(lossy bool) {
	*r = repeats{letters: r.letters[:0], at: units.Never, lossy: lossy}
}

// keep has a message repeated, if messages are lost.
func (r *repeats) keep(now clocksync.Now, to clocksync.Node, window units.Time, write func(b []byte) int) {
	if !r.lossy {
		return
	}
	l := letter{to: to}
	l.n = write(l.b[:])
	r.letters = append(r.letters, l)
	r.at, r.left = now.Mono+window/repeatAfter, repeatTimes
}

// repeat sends them once more.
func (a *Agent) repeat(now clocksync.Now) {
	r := &a.again
	for i := range r.letters {
		l := &r.letters[i]
		a.post(l.to, false, func(b []byte) int { return copy(b, l.b[:l.n]) })
	}
	r.at = units.Never
	if r.left--; r.left > 0 {
		r.at = now.Mono + a.cfg.Window/repeatAfter
	}
}

// lossy says whether fewer probes came in a whole window than were to, and counts anew.
func (a *Agent) lossy() bool {
	expected := float64(2 * a.cfg.Pairs * len(a.neighbours))
	few := a.toldOK && float64(a.arrived) < lossyShare*expected
	a.arrived = 0
	return few
}
