// Package quiettest is for tests that measure time on machines that others use too.
//
// A wrong measurement proves nothing while other programs occupy the processors, or while the
// machine, which may be virtual, does not run at all. Check repeats it, and fails the test only if
// it went wrong although nothing disturbed it:
//
//	quiettest.Check(t, 3, func() error {
//		if d := measure(); d > limit {
//			return fmt.Errorf("took %v, want at most %v", d, limit)
//		}
//		return nil
//	})
//
// Other failures (wrong data, a count that does not add up) belong in t.Error as usual. To wait for
// something that must happen, use Await or Patience.
//
// A measurement is disturbed if at any time programs other than the test's used processors (see
// others), or if threads that only sleep, with the highest priority on each processor, woke up late
// (see gap): hypervisors that take processors away need not report it in /proc/stat. Processor time
// of the test and its own processes is never a disturbance.
package quiettest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is the time limit for something that must happen. It is longer than any busy machine
// needs.
const Patience = 2 * time.Minute

// poll is the time between two looks of Await.
const poll = 2 * time.Millisecond

// Await calls look every few milliseconds until it returns nil. It fails the test with look's last
// error after Patience. Use it for changes of other processes, of the kernel and of files, which
// send the test no event.
func Await(t testing.TB, look func() error) {
	t.Helper()
	// This is the one place where tests poll: there is no event to wait on.
	for deadline := time.Now().Add(Patience); ; time.Sleep(poll) {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v", Patience, err)
		}
	}
}

// ErrDisturbed is wrapped by the error of a measurement that itself detected a disturbance.
var ErrDisturbed = errors.New("disturbed")

// Check calls measure until it returns nil, at most n times. If it never does, the test fails with
// the errors of the attempts that nothing disturbed, and is skipped if there were none.
func Check(t testing.TB, n int, measure func() error) {
	t.Helper()
	var quiet, disturbed error
	for range n {
		m := begin()
		err := measure()
		if err == nil {
			return
		}
		if why := m.disturbed(); why != nil {
			disturbed = errors.Join(disturbed, fmt.Errorf("%w: %w", why, err))
		} else if errors.Is(err, ErrDisturbed) {
			disturbed = errors.Join(disturbed, err)
		} else {
			quiet = errors.Join(quiet, err)
		}
	}
	if disturbed != nil {
		t.Log(disturbed)
	}
	if quiet != nil {
		t.Fatalf("%d attempts failed: %v", n, quiet)
	}
	t.Skip("this machine is too busy to measure time")
}

// Stopwatch measures how long something takes, and whether anything disturbs it.
type Stopwatch struct {
	begun mark
	used  time.Duration // processor time of this process
}

// Start starts a stopwatch.
func Start() Stopwatch { return Stopwatch{begin(), used()} }

// AtMost fails the test if more than limit has passed, or logs it if something disturbed what was
// measured.
func (s Stopwatch) AtMost(t testing.TB, limit time.Duration, what string) {
	t.Helper()
	if took := time.Since(s.begun.at); took > limit {
		s.Late(t, "%s took %v, want at most %v", what, took.Round(time.Millisecond), limit)
	}
}

// UsedAtMost fails the test if this process has used more processor time than limit, or logs it if
// something disturbed what was measured: processors that others use, too, make less of their time.
func (s Stopwatch) UsedAtMost(t testing.TB, limit time.Duration, what string) {
	t.Helper()
	if took := used() - s.used; took > limit {
		s.Late(t, "%s took %v of processor time, want at most %v", what, took.Round(time.Millisecond), limit)
	}
}

// Late fails the test for something that came too late, or logs it if something disturbed what was
// measured.
func (s Stopwatch) Late(t testing.TB, format string, args ...any) {
	t.Helper()
	if why := s.Disturbed(); why != nil {
		t.Logf(format+": %v", append(args, why)...)
	} else {
		t.Errorf("on a quiet machine, "+format, args...)
	}
}

// Disturbed returns what has disturbed the machine since s was started; nil if nothing has.
func (s Stopwatch) Disturbed() error { return s.begun.disturbed() }

// used returns the processor time that this process has used.
func used() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot happen: both arguments are valid
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
