package quiettest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/thread"
)

// outcome is a testing.TB that records how Check ended.
type outcome struct {
	testing.TB
	how string
}

func (o *outcome) Helper()    {}
func (o *outcome) Log(...any) {}
func (o *outcome) Logf(format string, args ...any) {
	o.how = "logged: " + fmt.Sprintf(format, args...)
}
func (o *outcome) Errorf(format string, args ...any) {
	o.how = "failed: " + fmt.Sprintf(format, args...)
}
func (o *outcome) Fatalf(format string, args ...any) {
	o.how = "failed: " + fmt.Sprintf(format, args...)
	panic(o)
}
func (o *outcome) Skip(...any) { o.how = "skipped"; panic(o) }

func check(n int, measure func() error) (how string) {
	o := &outcome{}
	defer func() {
		if r := recover(); r != nil && r != any(o) {
			panic(r)
		}
		how = o.how
	}()
	Check(o, n, measure)
	return
}

func TestCheckRepeats(t *testing.T) {
	calls := 0
	how := check(3, func() error {
		if calls++; calls < 3 {
			return errors.New("late")
		}
		return nil
	})
	if how != "" || calls != 3 {
		t.Errorf("%q after %d calls", how, calls)
	}
}

// burn uses a processor for this time.
func burn(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

// Processor time counts, and time that passes, as in this sleep, does not.
func TestUsedAtMost(t *testing.T) {
	for name, c := range map[string]struct {
		work func()
		late bool
	}{
		"works": {func() { burn(200 * time.Millisecond) }, true},
		// the sleep is what is measured
		"sleeps": {func() { time.Sleep(200 * time.Millisecond) }, false},
	} {
		Check(t, 10, func() error {
			o := &outcome{}
			s := Start()
			c.work()
			s.UsedAtMost(o, 100*time.Millisecond, "it")
			if got := strings.HasPrefix(o.how, "failed: on a quiet machine, it took "); got != c.late {
				return fmt.Errorf("%s: %q", name, o.how)
			}
			return nil
		})
	}
}

// burnVar makes this program use a processor and exit.
const burnVar = "TEST_BURN"

func TestMain(m *testing.M) {
	if os.Getenv(burnVar) != "" {
		burn(300 * time.Millisecond)
		return
	}
	os.Exit(m.Run())
}

// Processor time of this process and its children does not count as other programs': on a quiet
// machine a failure is a failure however much the test computes.
func TestOwnWorkIsNotOthers(t *testing.T) {
	how := check(2, func() error {
		burn(100 * time.Millisecond)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), burnVar+"=1")
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		return errors.New("late")
	})
	switch how {
	case "skipped":
		t.Skip("others use this machine")
	case "failed: 2 attempts failed: late", "failed: 2 attempts failed: late\nlate":
	default:
		t.Error(how)
	}
}

// TestGapsAreFound keeps a processor from its watcher until the watcher, which may have to start
// first, has noticed it.
func TestGapsAreFound(t *testing.T) {
	m := begin()
	hold := func() error { // the first processor of this process, ahead of all others
		var own, one unix.CPUSet
		err := unix.SchedGetaffinity(0, &own)
		for n := 0; n < 1024 && one.Count() == 0; n++ {
			if own.IsSet(n) {
				one.Set(n)
			}
		}
		if err = errors.Join(err, unix.SchedSetaffinity(0, &one), ahead()); err == nil {
			burn(10 * Gap)
		}
		return err
	}
	Await(t, func() error {
		done := make(chan error)
		thread.Own(func() { done <- hold() })
		if err := <-done; err != nil {
			t.Skipf("no real-time scheduling: %v", err)
		}
		state.Lock()
		defer state.Unlock()
		var found time.Duration // in parts, because the Go scheduler interrupts a goroutine after 10 ms
		for _, g := range state.gaps {
			if g.end.After(m.at) {
				found += g.length
			}
		}
		if found < 2*Gap {
			return fmt.Errorf("found %v of %v", found, 10*Gap)
		}
		return nil
	})
}

func TestAwaitLooksUntilThereIsNoError(t *testing.T) {
	looks := 0
	Await(t, func() error {
		if looks++; looks < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if looks != 3 {
		t.Errorf("looked %d times, want 3", looks)
	}
}

// Use by others counts in the window with the most use, however long the measurement is.
func TestOthers(t *testing.T) {
	const ms = time.Millisecond
	at := func(d, all, mine time.Duration) sample { return sample{epoch.Add(d), all, mine} }
	for _, c := range []struct {
		name    string
		samples []sample
		want    float64
	}{
		{"nothing", nil, 0},
		{"short", []sample{at(0, 0, 0), at(100*ms, 150*ms, 100*ms)}, 0.5},
		{"a burst", []sample{at(0, 0, 0), at(250*ms, 250*ms, 250*ms), at(500*ms, 625*ms, 500*ms),
			at(750*ms, 875*ms, 750*ms)}, 0.5},
		{"an end too short for a window", []sample{at(0, 0, 0), at(250*ms, 0, 0), at(260*ms, 10*ms, 0)}, 10. / 260},
		{"looks close to each other", []sample{at(0, 0, 0), at(10*ms, 10*ms, 0), at(250*ms, 25*ms, 0),
			at(500*ms, 25*ms, 0)}, 0.1},
		{"an end while it was looked", []sample{at(0, 0, 900*ms), at(250*ms, 0, 0), at(500*ms, 0, 900*ms)}, 0},
	} {
		if got := others(c.samples); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}
