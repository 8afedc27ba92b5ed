package emulate

import (
	"testing"
	"time"
)

// Time in which this process did not look for messages is nobody's silence, however it is divided.
// The rest is. A process that waits for a processor has longer.
func TestSilence(t *testing.T) {
	looks := int(patience() / watchEvery)
	for _, c := range []struct {
		late  time.Duration // by which each look is
		waits bool
		after int // looks until the second process is found silent
	}{
		{0, false, looks + 1}, {watchEvery / 2, false, looks + 1}, {time.Second, false, looks + 1},
		{time.Minute, false, looks + 1}, {0, true, starving*looks + 1}, {time.Second, true, starving*looks + 1},
	} {
		s, now := newSilences(3), time.Unix(1_000_000, 0)
		s.begin(now)
		for i := 1; ; i++ {
			now = now.Add(watchEvery + c.late)
			for _, other := range []int{0, 2} {
				s.hear(other, now)
			}
			process, quiet, found := s.look(now, func(int) bool { return c.waits })
			if found != (i == c.after) || found && (process != 1 || quiet < patience()) {
				t.Fatalf("%+v: look %d finds %v: process %d silent for %v", c, i, found, process, quiet)
			}
			if found {
				break
			}
		}
		s.begin(now)
		if _, _, found := s.look(now.Add(watchEvery), func(int) bool { return false }); found {
			t.Errorf("%+v: silence from before the beginning counts", c)
		}
	}
}

// The message of a process that did wait may take a while, and no longer.
func TestSilenceAfterWaiting(t *testing.T) {
	s, now := newSilences(1), time.Unix(1_000_000, 0)
	s.begin(now)
	waited := now.Add(2 * patience())
	for {
		now = now.Add(watchEvery)
		_, _, found := s.look(now, func(int) bool { return !now.After(waited) })
		if late := now.Sub(waited); found != (late > arriving) {
			t.Fatalf("%v after it last waited for a processor: silent %v", late, found)
		} else if found {
			return
		}
	}
}
