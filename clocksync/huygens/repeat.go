package huygens

import (
	"weft/clocksync"
	"weft/units"
)

// repeats holds the messages of one window, reports or solutions, that the agent sends again
// because the network loses messages. A receiver counts the duplicates as stale. Nothing is
// acknowledged: the window would be over before an acknowledgement could help.
type repeats struct {
	letters []letter
	at      units.Time // next repetition, by the monotonic clock; Never: none is due
	left    int        // number of repetitions left
	lossy   bool       // the last window lost messages, so this one repeats its own
}

// Our choices.
const (
	// repeatTimes is the number of repetitions. With half of all messages lost, one report in eight
	// does not arrive.
	repeatTimes = 2
	// repeatAfter is the interval as a divisor of the window. The last repetition comes before the
	// reference solves the window.
	repeatAfter = 32
	// lossyShare is the share of the expected probes below which a network counts as lossy.
	lossyShare = 15.0 / 16.
)

// begin forgets the messages of the last window.
func (r *repeats) begin(lossy bool) {
	*r = repeats{letters: r.letters[:0], at: units.Never, lossy: lossy}
}

// keep schedules repetitions of a message, if the network loses messages.
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

// lossy reports whether fewer than lossyShare of the expected probes arrived in the last window,
// and restarts the count. Before the first report it returns false.
func (a *Agent) lossy() bool {
	expected := float64(2 * a.cfg.Pairs * len(a.neighbours))
	few := a.reportedOK && float64(a.arrived) < lossyShare*expected
	a.arrived = 0
	return few
}
