package testnet

import (
	"math/rand/v2"

	"weft/clocksync"
	"weft/units"
)

// Jittery is a path with independent delays: Base plus an exponential part of mean Jitter, as in
// clknetsim.
type Jittery struct {
	Base, Jitter units.Time
	Random       *rand.Rand
}

// Delay implements Path.
func (j *Jittery) Delay(units.Time, *clocksync.Outgoing) units.Time {
	return j.Base + units.Time(float64(j.Jitter)*j.Random.ExpFloat64())
}

// Queues is a path of hops with FIFO queues that other traffic fills in bursts, so that messages in
// quick succession have similar delays. With Transparent every hop is a transparent clock with a
// resolution of 1 ps.
type Queues struct {
	Base        units.Time // without queues
	Hops        []Queue
	Transparent bool
}

// Queue is one hop: an output at 100 Gb/s with bursts of 16 packets of 1 kB.
type Queue struct {
	Load   float64 // share of the rate that the bursts take, 0 to 1
	Random *rand.Rand
	at     units.Time // true time of the state below
	work   units.Time // time to drain the queue at that instant
	next   units.Time // time until the next burst, from at
	begun  bool       // the state is valid
}

// burst is the time that a burst occupies a hop: 16 kB at 100 Gb/s.
const burst = 1280 * units.Nanosecond

// NewQueues returns a path of n hops with the same load.
func NewQueues(r *rand.Rand, base units.Time, n int, load float64, transparent bool) *Queues {
	q := &Queues{Base: base, Transparent: transparent}
	for range n {
		q.Hops = append(q.Hops, Queue{Load: load, Random: r})
	}
	return q
}

// Delay implements Path.
func (q *Queues) Delay(t units.Time, m *clocksync.Outgoing) units.Time {
	at := t
	for i := range q.Hops {
		wait := q.Hops[i].wait(at)
		if q.Transparent && m.Port == clocksync.EventPort {
			clocksync.AddResidence(m.Data[:m.N], wait)
		}
		at += wait
	}
	return at - t + q.Base
}

// service is the time that a message occupies a hop: 126 bytes at 100 Gb/s.
const service = 10 * units.Nanosecond

// wait returns how long a message that arrives at t waits in the queue.
func (q *Queue) wait(t units.Time) units.Time {
	if q.Load <= 0 {
		return 0
	}
	mean := float64(burst) / q.Load
	if !q.begun {
		q.begun, q.at, q.next = true, t-100*burst, units.Time(mean*q.Random.ExpFloat64())
	}
	for {
		if q.at+q.next > t {
			d := max(0, t-q.at)
			q.next -= d
			q.work = max(0, q.work-d)
			q.at = max(q.at, t)
			w := q.work
			q.work += service
			return w
		}
		q.at += q.next
		q.work = max(0, q.work-q.next) + burst
		q.next = units.Time(mean * q.Random.ExpFloat64())
	}
}
