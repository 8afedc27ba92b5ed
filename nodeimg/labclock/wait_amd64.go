package labclock

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel ends a wait until an instant when its own clock reaches the instant. Programs' clocks
// are ahead of it, so it would wait too long. The keeper computes when the wait has to end, in real
// time, and then interrupts it. The kernel restarts the interrupted call, which is reported again,
// and answered with a timeout.

// waits are the waits of a session by thread.
type waits struct {
	mu sync.Mutex
	of map[int]*waiting
}

// waiting is a thread's latest wait until an instant.
type waiting struct {
	until int64     // by the program's clock
	end   int64     // CLOCK_MONOTONIC when it has to end
	call  int32     // its system call
	args  [6]uint64 // and the arguments
	timer *time.Timer
	woken bool // it has ended, and its thread was interrupted
}

// maxWaits bounds the threads that a session remembers. Threads that ended are forgotten when their
// wait would have ended, or when there are more.
const maxWaits = 4096

func (w *waits) init() { w.of = map[int]*waiting{} }

// instant returns where a call has its instant, whether that is one of CLOCK_REALTIME, and the
// error by which the call reports that it has passed. ok is false for calls that wait for something
// else, such as CPU time.
func (n *notification) instant() (address uint64, realtime bool, passed unix.Errno, ok bool) {
	const timeout = unix.ETIMEDOUT
	switch n.call {
	case unix.SYS_FUTEX:
		realtime = n.args[1]&futexRealtime != 0 || n.args[1]&^(futexPrivate|futexRealtime) == futexLockPI
		return n.args[3], realtime, timeout, true
	case unix.SYS_FUTEX_WAITV:
		return n.args[3], n.args[4] == unix.CLOCK_REALTIME, timeout, true
	case unix.SYS_FUTEX_WAIT:
		return n.args[4], n.args[5] == unix.CLOCK_REALTIME, timeout, true
	case unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE:
		return n.args[4], true, timeout, true
	case unix.SYS_CLOCK_NANOSLEEP:
		id := uint32(n.args[0])
		if id > lastClock || (monoClocks|realClocks)>>id&1 == 0 {
			return 0, false, 0, false
		}
		return n.args[2], realClocks>>id&1 != 0, 0, true
	}
	return 0, false, 0, false
}

// wait handles a call that waits until an instant.
func (s *session) wait(n *notification) {
	address, realtime, passed, ok := n.instant()
	if !ok {
		_ = s.proceed(n)
		return
	}
	times, err := readTimes(n.pid, address, 1)
	if err != nil || times[0] <= 0 {
		_ = s.proceed(n) // the kernel says what is wrong with it
		return
	}
	now := monotonic()
	shown := s.page.Mono(now)
	if realtime {
		shown = s.page.Real(now)
	}
	if s.waits.begin(s, n, times[0], shown, now) {
		_ = s.proceed(n)
		return
	}
	if passed == 0 {
		s.succeed(n, 0)
		return
	}
	s.fail(n, passed)
}

// begin notes a wait until an instant of a clock that shows shown at CLOCK_MONOTONIC now. It
// reports whether the wait has not ended yet.
//
// A program that waits again until the same instant, since it was woken for nothing or found that
// its clock has not reached the instant, waits for what its clock says remains. To end such a wait
// at once would make a program that looks at its clock spin: libstdc++'s wait_until does.
func (w *waits) begin(s *session, n *notification, until, shown, now int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	thread := int(n.pid)
	old := w.of[thread]
	if old != nil {
		old.timer.Stop()
	}
	restarted := old != nil && old.woken && old.call == n.call && old.args == n.args && old.until == until
	if restarted || until <= shown {
		delete(w.of, thread)
		return false
	}
	if old == nil && len(w.of) >= maxWaits {
		w.prune()
	}
	is := &waiting{until: until, end: now + until - shown, call: n.call, args: n.args}
	is.timer = time.AfterFunc(time.Duration(until-shown), func() { s.interrupt(thread, is, firstRetry) })
	w.of[thread] = is
	return true
}

// prune forgets threads that have ended. If there are far too many it forgets others as well, whose
// waits then end too late.
func (w *waits) prune() {
	for thread, is := range w.of {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", thread)); err != nil || len(w.of) >= 2*maxWaits {
			is.timer.Stop()
			delete(w.of, thread)
		}
	}
}

// restart handles restart_syscall(2), by which the kernel continues a wait that was interrupted.
// Its arguments are still those of the call that waited.
func (s *session) restart(n *notification) {
	s.waits.mu.Lock()
	is := s.waits.of[int(n.pid)]
	ended := is != nil && is.args == n.args && is.end <= monotonic()
	if ended {
		delete(s.waits.of, int(n.pid))
	}
	s.waits.mu.Unlock()
	if !ended {
		_ = s.proceed(n)
		return
	}
	s.fail(n, unix.ETIMEDOUT)
}

// firstRetry is the time until interrupt looks at a running thread again. It doubles up to
// lastRetry. Our own choice.
const firstRetry, lastRetry = time.Millisecond, 100 * time.Millisecond

// interrupt ends the wait of a thread, if the thread still waits. A thread that runs may be about
// to wait; it is looked at again after retry.
func (s *session) interrupt(thread int, is *waiting, retry time.Duration) {
	s.waits.mu.Lock()
	defer s.waits.mu.Unlock()
	if s.waits.of[thread] != is {
		return
	}
	switch is.state(thread) {
	case gone:
		delete(s.waits.of, thread)
	case runs:
		is.timer = time.AfterFunc(retry, func() { s.interrupt(thread, is, min(2*retry, lastRetry)) })
	case waitsOn:
		is.woken = true
		go wake(thread)
	}
}

// wake interrupts the system call of a thread.
func wake(thread int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if seize(thread, 0) != nil {
		return // it has ended, or is traced: then the wait lasts
	}
	if unix.PtraceInterrupt(thread) != nil {
		return
	}
	if stop, ok := await(); ok {
		detach(stop.thread, stop.signal)
	}
}

// States of a thread that waited.
const (
	waitsOn   = iota // in the wait
	runs             // perhaps about to wait
	elsewhere        // the wait is over
	gone
)

// state returns the state of a thread, by /proc/PID/syscall: the call and its arguments.
func (is *waiting) state(thread int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", thread))
	f := strings.Fields(string(text))
	switch {
	case err != nil || len(f) == 0:
		return gone
	case f[0] == "running":
		return runs
	case len(f) <= len(is.args):
		return elsewhere
	}
	if call := f[0]; call != strconv.Itoa(int(is.call)) && call != strconv.Itoa(unix.SYS_RESTART_SYSCALL) {
		return elsewhere
	}
	for i, a := range is.args {
		if f[1+i] != fmt.Sprintf("%#x", a) {
			return elsewhere
		}
	}
	return waitsOn
}
