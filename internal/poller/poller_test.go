package poller

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
)

func newPoller(t *testing.T) *Poller {
	t.Helper()
	p, err := New(4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestWaitReportsReadableDescriptors(t *testing.T) {
	p := newPoller(t)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := p.Add(pipe[0], 7); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(0); err != nil || len(p.Ready) != 0 {
		t.Fatalf("empty pipe: ready %v, %v", p.Ready, err)
	}
	buf := make([]byte, 8)
	if _, again, err := Read(pipe[0], buf); !again || err != nil {
		t.Fatalf("empty pipe reads: again %v, %v", again, err)
	}
	if n, again, err := Write(pipe[1], []byte("ab")); n != 2 || again || err != nil {
		t.Fatalf("write: %d, %v, %v", n, again, err)
	}
	if err := p.Wait(Forever); err != nil || len(p.Ready) != 1 || p.Ready[0] != 7 {
		t.Fatalf("ready %v, %v, want token 7", p.Ready, err)
	}
	if n, again, err := Read(pipe[0], buf); n != 2 || again || err != nil {
		t.Fatalf("read: %d, %v, %v", n, again, err)
	}
	if err := p.Remove(pipe[0]); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(-1, buf); err == nil {
		t.Error("reading a bad descriptor is no error")
	}
}

func TestWaitKeepsToItsTimeout(t *testing.T) {
	p := newPoller(t)
	const timeout = 200 * time.Microsecond
	quiettest.Check(t, 3, func() error {
		best, early := time.Hour, 0
		for range 50 {
			start := time.Now()
			if err := p.Wait(timeout); err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			if took < timeout {
				early++ // a signal of Go's scheduler
				continue
			}
			best = min(best, took)
		}
		if early > 10 || best > 20*timeout {
			return fmt.Errorf("of 50 waits of %v %d ended early, and the best of the others took %v", timeout, early,
				best)
		}
		return nil
	})
}

func TestCPU(t *testing.T) {
	before := CPU()
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
	}
	if got := CPU() - before; got <= 0 {
		t.Errorf("20 ms of work took %d ns of processor time", got)
	}
}
