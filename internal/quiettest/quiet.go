// Package quiettest is for tests that measure time on machines that others use too.
//
// A measurement that comes out wrong says nothing while other programs hold the processors. Check repeats it, and fails
// the test only if it came out wrong although the machine was quiet:
//
//	quiettest.Check(t, 3, func() error {
//		if d := measure(); d > limit {
//			return fmt.Errorf("took %v, want at most %v", d, limit)
//		}
//		return nil
//	})
//
// What is not a measurement (data that is wrong, a count that does not add up) belongs in t.Error as usual.
package quiettest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// busy is how much of one processor others may use while a machine counts as quiet. A real-time process of a test waits
// for at most one other program, so what matters is whether there is one at all times.
const busy = 0.2

// tick is the unit of /proc/stat.
const tick = time.Second / 100

// ErrDisturbed is in the chain of what measure returns when it found out by itself that something disturbed it.
var ErrDisturbed = errors.New("disturbed")

// Check calls measure until it returns nil, at most n times. If it never does, the test fails with the errors of the
// attempts during which the machine was quiet and nothing disturbed the measurement, and is skipped if there were none.
func Check(t testing.TB, n int, measure func() error) {
	t.Helper()
	var quiet error
	most := 0.0
	for range n {
		m := begin()
		err := measure()
		if err == nil {
			return
		}
		others := m.others()
		most = max(most, others)
		t.Logf("others used %.2f processors: %v", others, err)
		if quietly(others) && !errors.Is(err, ErrDisturbed) {
			quiet = errors.Join(quiet, err)
		}
	}
	if quiet != nil {
		t.Fatalf("%d attempts failed: %v", n, quiet)
	}
	t.Skipf("this machine is too busy to measure time: others used up to %.2f processors", most)
}

// quietly reports whether a measurement counts during which others used so many processors.
func quietly(others float64) bool { return !Race && others < busy }

// A Stopwatch measures how long something takes, and how much others use the machine meanwhile.
type Stopwatch struct{ begun mark }

// Start starts a stopwatch.
func Start() Stopwatch { return Stopwatch{begin()} }

// AtMost fails the test if more than limit has passed, which it logs instead on a machine that others use as well.
func (s Stopwatch) AtMost(t testing.TB, limit time.Duration, what string) {
	t.Helper()
	if took := time.Since(s.begun.at); took > limit {
		s.Late(t, "%s took %v, want at most %v", what, took.Round(time.Millisecond), limit)
	}
}

// Late fails the test for something that came too late, which it logs instead on a machine that others use as well.
func (s Stopwatch) Late(t testing.TB, format string, args ...any) {
	t.Helper()
	if others := s.begun.others(); quietly(others) {
		t.Errorf("on a quiet machine, "+format, args...)
	} else {
		t.Logf(format+"; others used %.2f processors", append(args, others)...)
	}
}

// mark is how much processor time was used until an instant.
type mark struct {
	at        time.Time
	all, mine time.Duration
	err       error
}

func begin() mark {
	all, err := machine()
	return mark{time.Now(), all, mine(), err}
}

// others returns how many processors other programs have used since m, on average. The test's own children count as the
// test once they have ended.
func (m mark) others() float64 {
	now := begin()
	if m.err != nil || now.err != nil {
		return 0 // an unknown machine is taken for quiet: failures are told
	}
	return float64(now.all-m.all-(now.mine-m.mine)) / float64(now.at.Sub(m.at))
}

// mine returns the processor time of this process and of its children that have ended.
func mine() (used time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return used
}

// machine returns the time for which the machine's processors were used or, on a virtual machine, taken away: proc_stat(5).
func machine() (used time.Duration, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal guest guest_nice
	const idle, iowait, guest = 4, 5, 9
	if len(fields) < guest || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	for i, f := range fields[:guest] {
		if i == 0 || i == idle || i == iowait {
			continue
		}
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		used += time.Duration(n) * tick
	}
	return used, nil
}
