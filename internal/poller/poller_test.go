package poller

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newPoller(t *testing.T) *Poller {
	t.Helper()
	runtime.LockOSThread()
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
	if woken, err := p.Wait(0); err != nil || woken || len(p.Ready) != 0 {
		t.Fatalf("empty pipe: woken %v, ready %v, %v", woken, p.Ready, err)
	}
	buf := make([]byte, 8)
	if _, again, err := Read(pipe[0], buf); !again || err != nil {
		t.Fatalf("empty pipe reads: again %v, %v", again, err)
	}
	if n, again, err := Write(pipe[1], []byte("ab")); n != 2 || again || err != nil {
		t.Fatalf("write: %d, %v, %v", n, again, err)
	}
	if _, err := p.Wait(Forever); err != nil || len(p.Ready) != 1 || p.Ready[0] != 7 {
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

func TestWakeEndsTheNextWait(t *testing.T) {
	p := newPoller(t)
	p.Wake()
	if woken, err := p.Wait(Forever); !woken || err != nil {
		t.Fatalf("woken before the wait: %v, %v", woken, err)
	}
	if woken, _ := p.Wait(0); woken {
		t.Error("one wake-up ended two waits")
	}
	go p.Wake()
	if woken, err := p.Wait(Forever); !woken || err != nil {
		t.Fatalf("woken during the wait: %v, %v", woken, err)
	}
}

func TestWaitKeepsToItsTimeout(t *testing.T) {
	p := newPoller(t)
	const timeout = 200 * time.Microsecond
	best := time.Hour
	for range 50 {
		start := time.Now()
		if _, err := p.Wait(timeout); err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		if took < timeout {
			t.Fatalf("a wait of %v ended after %v", timeout, took)
		}
		best = min(best, took)
	}
	if best > 20*timeout { // loose: the machine may be busy
		t.Errorf("the best of 50 waits of %v took %v", timeout, best)
	}
}

func TestThreadAndCPU(t *testing.T) {
	done := make(chan string)
	go func() { done <- Thread(Prompt) }() // the thread ends with the goroutine
	if got := <-done; got == "" {
		t.Error("no scheduling is reported")
	}
	before := CPU()
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
	}
	if got := CPU() - before; got <= 0 {
		t.Errorf("20 ms of work took %d ns of processor time", got)
	}
}
