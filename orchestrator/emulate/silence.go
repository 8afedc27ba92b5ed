package emulate

import (
	"sync/atomic"
	"time"
)

// Limits of silence in real time. Ours.
const (
	watchEvery = 100 * time.Millisecond
	// silence is the longest time without a message of a process; each reports every 200 ms.
	silence = 3 * time.Second
	// starving is the longest silence, as a multiple of silence, of a process that waits for a
	// processor, and arriving how long its message may then take.
	starving = 10
	arriving = time.Second
)

// silences is how long processes have said nothing. A process that is stopped, or stuck, is silent
// for too long. Time in which this process itself did not look does not count, since it may not
// have read what they sent, and a process that waits for a processor of this machine has longer.
type silences struct {
	heard  []atomic.Int64 // by process: the time of its last message, in nanoseconds of Unix time
	waited []time.Time    // when it was last seen to wait for a processor, though silent
	looked time.Time
}

func newSilences(processes int) *silences {
	return &silences{heard: make([]atomic.Int64, processes), waited: make([]time.Time, processes)}
}

// hear records a message of a process. It may be called while another goroutine looks.
func (s *silences) hear(process int, now time.Time) { s.heard[process].Store(now.UnixNano()) }

// begin forgets all earlier silence.
func (s *silences) begin(now time.Time) {
	s.looked = now
	for i := range s.heard {
		s.hear(i, now)
	}
}

// look returns the first process that has been silent for too long, and for how long. It is to be
// called every watchEvery. waits reports whether a process waits for a processor or for memory of
// this machine.
func (s *silences) look(now time.Time, waits func(process int) bool) (process int, quiet time.Duration, found bool) {
	late := max(0, now.Sub(s.looked)-watchEvery)
	s.looked = now
	for i := range s.heard {
		quiet := now.Sub(time.Unix(0, s.heard[i].Add(int64(late))))
		if quiet > patience()/2 && waits(i) {
			s.waited[i] = now
		}
		starves := now.Sub(s.waited[i]) <= arriving && quiet <= starving*patience()
		if quiet > patience() && !starves {
			return i, quiet, true
		}
	}
	return 0, 0, false
}
