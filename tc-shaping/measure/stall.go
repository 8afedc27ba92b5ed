package measure

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Stall is the timer lateness (90th percentile) above which a measurement on this machine says
// nothing about a link. Our own value: several times the bounds of a delay.
const Stall = 5 * time.Millisecond

// watchEvery is the interval of the timer probes: long enough to cost nothing.
const watchEvery = 4 * time.Millisecond

// watch starts measuring how late the machine wakes a thread. The returned function stops it and
// returns the 90th percentile of the lateness. No setting of a link affects it.
func watch() (late func() time.Duration) {
	quit, result := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var all []int64
		for due := now(unix.CLOCK_MONOTONIC); ; {
			due += watchEvery.Nanoseconds()
			sleep(due)
			is := now(unix.CLOCK_MONOTONIC)
			all = append(all, is-due)
			due = is
			select {
			case <-quit:
				slices.Sort(all)
				result <- time.Duration(all[len(all)*9/10])
				return
			default:
			}
		}
	}()
	return func() time.Duration {
		close(quit)
		return <-result
	}
}
