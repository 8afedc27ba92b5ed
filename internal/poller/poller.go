// Package poller waits for file descriptors and for instants with the precision that emulation
// needs: one epoll instance and timeouts in nanoseconds.
//
// A Poller (poller.go) waits for descriptors and instants. TakeOver (process.go) dedicates a
// process to a single loop: one processor, no garbage collection pauses, and the scheduling class
// that the kernel grants. limit.go bounds what a real-time process can do to the machine if it
// hangs.
//
// Invariant: waiting does not involve Go's scheduler. That would hand off the processor and check
// every 20 us whether to take it back, which costs a process that waits thousands of times a second
// more than its work. Other goroutines of such a process therefore need another processor
// (GOMAXPROCS), or wait until the loop yields.
package poller

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller is an epoll instance. It belongs to one goroutine.
type Poller struct {
	epoll  int
	events []unix.EpollEvent
	Ready  []int32 // tokens that the last Wait found readable, valid until the next Wait

	turns int   // since the last rest
	slept int64 // number of sleeps of the thread at the last rest
}

// New returns a Poller with room for n ready descriptors per Wait.
func New(n int) (*Poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	return &Poller{epoll: epoll, events: make([]unix.EpollEvent, n), Ready: make([]int32, 0, n)}, nil
}

// Add watches fd for input, level-triggered. Wait reports it as token.
func (p *Poller) Add(fd int, token int32) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: token}
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: watch descriptor %d: %w", fd, err)
	}
	return nil
}

// Remove stops watching fd.
func (p *Poller) Remove(fd int) error {
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil); err != nil {
		return fmt.Errorf("epoll_ctl: forget descriptor %d: %w", fd, err)
	}
	return nil
}

// Forever is a timeout that never ends a Wait.
const Forever time.Duration = 1<<63 - 1

// Wait returns when a descriptor is readable or timeout has passed; a timeout of at most 0 returns
// at once. Ready then holds the readable tokens. A signal ends the wait early. If that is SIGCONT,
// what came while the process was stopped is ready.
func (p *Poller) Wait(timeout time.Duration) error {
	var ts unix.Timespec
	arg := unsafe.Pointer(&ts)
	switch {
	case timeout == Forever:
		arg = nil
	case timeout > 0:
		ts = unix.NsecToTimespec(int64(timeout))
	}
	p.Ready = p.Ready[:0]
	if p.turns++; p.turns >= restTurns {
		p.rest()
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(arg), 0, 0)
	if errno == unix.EINTR { // never of a call that does not wait
		return p.Wait(0)
	}
	if errno != 0 {
		return fmt.Errorf("epoll_pwait2: %w", errno)
	}
	for _, ev := range p.events[:n] {
		p.Ready = append(p.Ready, ev.Fd)
	}
	return nil
}

// restTurns is the number of turns after which a loop that has not slept is made to sleep, because
// a real-time process that never sleeps counts as hanging. See RealTimeLimit.
const restTurns = 1024

// rest sleeps briefly unless the thread has slept since the last rest.
func (p *Poller) rest() {
	p.turns = 0
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err == nil && used.Nvcsw != p.slept {
		p.slept = used.Nvcsw
		return
	}
	ts := unix.NsecToTimespec(int64(restTime))
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	p.slept++
}

// restTime is long enough that the timer does not fire before the thread sleeps.
const restTime = 20 * time.Microsecond

// Close closes the Poller's own descriptor, not those it watches.
func (p *Poller) Close() { unix.Close(p.epoll) }

// Sleep returns when CLOCK_MONOTONIC has reached until (nanoseconds) or a signal arrives. It
// ignores descriptors.
func Sleep(until int64) {
	ts := unix.NsecToTimespec(until)
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}
