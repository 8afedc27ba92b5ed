package measure

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Stall is how late one timer in ten of a machine may come before nothing that is measured on it says anything of a link. Ours: some
// times the bounds of a delay.
const Stall = 5 * time.Millisecond

// watchEvery is how often the machine is asked to wake a thread while something is measured: rarely enough to cost nothing.
const watchEvery = 4 * time.Millisecond

// watch finds out how late the machine wakes a thread until what it returns is called, which says by how much one time in ten it was
// that late or later. No setting of a link changes it.
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
