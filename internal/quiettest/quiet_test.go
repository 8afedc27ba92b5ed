package quiettest

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// outcome is a testing.TB that notes how Check ended.
type outcome struct {
	testing.TB
	how string
}

func (o *outcome) Helper()             {}
func (o *outcome) Logf(string, ...any) {}
func (o *outcome) Fatalf(format string, args ...any) {
	o.how = "failed: " + fmt.Sprintf(format, args...)
	panic(o)
}
func (o *outcome) Skipf(format string, args ...any) { o.how = "skipped"; panic(o) }

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

// What this process does itself is not taken for what others do: a failure on a quiet machine is a failure however much
// the test computes.
func TestOwnWorkIsNotOthers(t *testing.T) {
	how := check(2, func() error {
		for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
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
