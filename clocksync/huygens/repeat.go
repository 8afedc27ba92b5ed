package huygens

import (
	"weft/clocksync"
	"weft/units"
)

// repeats are reports or solutions that are sent again because the network loses messages. A
// receiver counts duplicates as stale. Nothing is acknowledged: the window would be over before an
// acknowledgement could help.
type repeats struct {
	letters []letter
	at      units.Time // when they leave again, by the monotonic clock; Never: not
	left    int        // number of repetitions left
	lossy   bool       // messages are lost
}

// Our choices.
const (
	repeatTimes = 2          // repetitions: if half of all messages are lost, an eighth of the reports are
	repeatAfter = 32         // interval, as a divisor of the window: the last comes before windows are solved
	lossyShare  = 15.0 / 16. // share of the expected probes below which messages are lost
)

// begin drops the messages, for the next window.
func (r *repeats) begin(lossy bool) {
	*r = repeats{letters: r.letters[:0], at: units.Never, lossy: lossy}
}

// keep schedules repetitions of a message, if messages are lost.
func (r *repeats) keep(now clocksync.Now, to clocksync.Node, window units.Time, write func(b []byte) int) {
	if !r.lossy {
		return
	}
	l := letter{to: to}
	l.n = write(l.b[:])
	r.letters = append(r.letters, l)
	r.at, r.left = now.Mono+window/repeatAfter, repeatTimes
}

// repeat sends the kept messages again.
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

// lossy reports whether too few probes arrived in the last window, and restarts the count.
func (a *Agent) lossy() bool {
	expected := float64(2 * a.cfg.Pairs * len(a.neighbours))
	few := a.toldOK && float64(a.arrived) < lossyShare*expected
	a.arrived = 0
	return few
}
