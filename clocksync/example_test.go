package clocksync_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// Asker asks the reference for the time once per interval, and assumes that the answer is half of
// the round trip old (Cristian, Probabilistic clock synchronization, 1989). Its error is at most
// that half.
type Asker struct {
	setup    clocksync.Setup
	interval units.Time

	next       units.Time // when to ask, by the monotonic clock
	number     uint32     // of the question
	due        bool       // it must be sent
	asked      units.Time // its stamp
	open       bool       // it was sent and is not answered
	answers    []answer   // of the reference
	correction clocksync.Correction
	counters   clocksync.Counters
}

type answer struct {
	to     clocksync.Node
	number uint32
	at     units.Time // when the question came
}

// NewAsker returns the protocol of a node. The interval must be above 0.
func NewAsker(s clocksync.Setup, interval units.Time) *Asker {
	return &Asker{setup: s, interval: interval}
}

// Start declares the reference synchronized.
func (a *Asker) Start(now clocksync.Now) {
	a.next = now.Mono
	if a.setup.Self == a.setup.Reference {
		a.correction.State = clocksync.Locked
	}
}

// Deadline returns when the next question is due. The reference asks none.
func (a *Asker) Deadline() (units.Time, bool) { return a.next, a.setup.Self != a.setup.Reference }

// Advance asks the next question, and drops one that is not answered.
func (a *Asker) Advance(now clocksync.Now) {
	if now.Mono >= a.next && a.setup.Self != a.setup.Reference {
		a.next = now.Mono + a.interval
		a.number++
		a.due, a.open = true, false
	}
}

// Transmit sends a question, whose stamp it needs, or an answer.
func (a *Asker) Transmit(_ clocksync.Now, m *clocksync.Outgoing) bool {
	switch {
	case a.due:
		a.due = false
		*m = clocksync.Outgoing{To: a.setup.Reference, Port: clocksync.ProbePort, ID: a.number, Event: true, N: 4}
		binary.BigEndian.PutUint32(m.Data[:], a.number)
	case len(a.answers) > 0:
		w := a.answers[0]
		a.answers = a.answers[1:]
		*m = clocksync.Outgoing{To: w.to, Port: clocksync.ProbePort, N: 12}
		binary.BigEndian.PutUint32(m.Data[:], w.number)
		binary.BigEndian.PutUint64(m.Data[4:], uint64(w.at))
	default:
		return false
	}
	a.counters.Sent++
	a.counters.SentBytes += int64(m.N)
	return true
}

// Sent records when the question left.
func (a *Asker) Sent(_ clocksync.Now, id uint32, stamp units.Time) {
	if id == a.number {
		a.asked, a.open = stamp, true
	}
}

var (
	errForeign   = errors.New("asker: message of a node that may not send it")
	errMalformed = errors.New("asker: message cannot be read")
	errStale     = errors.New("asker: answer to no question that is open")
)

// Receive handles a question, as the reference, or an answer.
func (a *Asker) Receive(_ clocksync.Now, m *clocksync.Message) error {
	reference := a.setup.Self == a.setup.Reference
	switch {
	case m.From < 0 || int(m.From) >= a.setup.Nodes || !reference && m.From != a.setup.Reference:
		a.counters.Foreign++
		return errForeign
	case m.Port != clocksync.ProbePort || reference && len(m.Data) != 4 || !reference && len(m.Data) != 12:
		a.counters.Malformed++
		return errMalformed
	}
	number := binary.BigEndian.Uint32(m.Data)
	if reference {
		if len(a.answers) < a.setup.Nodes { // else it is lost, as it could be in the network
			a.answers = append(a.answers, answer{m.From, number, m.Stamp})
		}
		a.counters.Received++
		return nil
	}
	k := a.line(m.Stamp, units.Time(binary.BigEndian.Uint64(m.Data[4:])))
	if !a.open || number != a.number || k.Check() != nil { // which refuses a bound below 0
		a.counters.Stale++
		return errStale
	}
	a.open = false
	a.correction = k
	a.counters.Received++
	a.counters.Updates++
	a.counters.Steps++ // it is not continuous with the last
	return nil
}

// line returns the correction that follows from an answer at a reading of the hardware clock.
func (a *Asker) line(came, said units.Time) clocksync.Correction {
	half := (came - a.asked) / 2
	return clocksync.Correction{
		From: came, Offset: said + half - came, Bound: half + 8*a.setup.Jitter, Drift: 2 * a.setup.Skew, State: clocksync.Locked,
	}
}

// Correction returns the map to synchronized time.
func (a *Asker) Correction() clocksync.Correction { return a.correction }

// Counters returns the counters so far.
func (a *Asker) Counters() clocksync.Counters { return a.counters }

// Four clocks that are off by up to 3 ms and 30 ppm, in a network whose delays vary by 10 ns.
func Example() {
	const nodes = 4
	w := testnet.New(testnet.Config{
		Nodes: nodes, Seed: 1,
		Path: func(r *rand.Rand) testnet.Path {
			return &testnet.Jittery{Base: 2 * units.Microsecond, Jitter: 10 * units.Nanosecond, Random: r}
		},
		Oscillator: func(n clocksync.Node) testnet.Oscillator {
			return testnet.Oscillator{Offset: units.Time(n) * units.Millisecond, Skew: 10e-6 * float64(n), Jitter: 5 * units.Nanosecond}
		},
		Start: func(n clocksync.Node) clocksync.Protocol {
			return NewAsker(clocksync.Setup{Self: n, Nodes: nodes, Jitter: 5 * units.Nanosecond, Skew: 30e-6}, units.Millisecond)
		},
	})
	worst, covered := units.Time(0), true
	w.Every(5*units.Millisecond, 100*units.Microsecond, func() {
		for n := range clocksync.Node(nodes) {
			e := w.Time(n) - w.Time(0)
			b, ok := w.Bound(n)
			worst, covered = max(worst, e, -e), covered && ok && max(e, -e) <= b
		}
	})
	w.Run(50 * units.Millisecond)
	fmt.Printf("within 100 ns: %t, within what they state: %t\n", worst < 100*units.Nanosecond, covered)
	// Output: within 100 ns: true, within what they state: true
}

// An answer without a question is refused, whoever sends it.
func TestAskersRefuse(t *testing.T) {
	a := NewAsker(clocksync.Setup{Self: 1, Nodes: 3}, units.Millisecond)
	a.Start(clocksync.Now{})
	for want, m := range map[error]clocksync.Message{
		errForeign:   {From: 2, Port: clocksync.ProbePort, Data: make([]byte, 12)},
		errMalformed: {From: 0, Port: clocksync.ProbePort, Data: make([]byte, 11)},
		errStale:     {From: 0, Port: clocksync.ProbePort, Data: make([]byte, 12)},
	} {
		if err := a.Receive(clocksync.Now{}, &m); !errors.Is(err, want) || a.Correction() != (clocksync.Correction{}) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
