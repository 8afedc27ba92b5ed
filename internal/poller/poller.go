// Package poller waits for file descriptors and for instants with the precision that emulation needs: one
// epoll instance, timeouts in nanoseconds, and a wake-up that other goroutines can ask for.
//
// A Poller belongs to one goroutine, which should be locked to its thread (see Thread); only Wake may be
// called from others.
package poller

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller is an epoll instance with a descriptor of its own to be woken by.
type Poller struct {
	epoll, event int
	events       []unix.EpollEvent
	Ready        []int32 // the tokens that the last Wait found readable, valid until the next
}

// wakeToken marks the Poller's own eventfd among the events.
const wakeToken = -1

// New opens a Poller with room for n ready descriptors per Wait.
func New(n int) (*Poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p := &Poller{epoll: epoll, event: event, events: make([]unix.EpollEvent, n+1), Ready: make([]int32, 0, n+1)}
	if err := p.Add(event, wakeToken); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Add watches fd for input; Wait reports it by token, which must not be negative. It is level-triggered.
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

// Wait returns when a descriptor is readable, when timeout has passed (not positive: at once; Forever: not
// for that reason), or when Wake was called. Ready then holds the readable tokens; woken says whether Wake
// was called since the last Wait. A signal ends the wait early with nothing ready.
func (p *Poller) Wait(timeout time.Duration) (woken bool, err error) {
	n, err := p.wait(timeout)
	p.Ready = p.Ready[:0]
	if err != nil {
		return false, err
	}
	for _, ev := range p.events[:n] {
		if ev.Fd == wakeToken {
			var count [8]byte
			_, _ = unix.Read(p.event, count[:]) // resets it; nonblocking, and all that matters is that it is reset
			woken = true
			continue
		}
		p.Ready = append(p.Ready, ev.Fd)
	}
	return woken, nil
}

// Forever is a timeout that does not end a Wait.
const Forever time.Duration = 1<<63 - 1

func (p *Poller) wait(timeout time.Duration) (int, error) {
	var ts unix.Timespec
	arg := unsafe.Pointer(&ts)
	switch {
	case timeout == Forever:
		arg = nil
	case timeout > 0:
		ts = unix.NsecToTimespec(int64(timeout))
	}
	events, room := unsafe.Pointer(&p.events[0]), uintptr(len(p.events))
	var n uintptr
	var errno unix.Errno
	if arg != nil && timeout <= 0 { // does not block: the scheduler need not know
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(events), room, uintptr(arg), 0, 0)
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(events), room, uintptr(arg), 0, 0)
	}
	if errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, fmt.Errorf("epoll_pwait2: %w", errno)
	}
	return int(n), nil
}

// Wake ends the current or the next Wait. It may be called from any goroutine.
func (p *Poller) Wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(p.event, one[:]) // EAGAIN means that it is about to wake anyway
}

// Close releases the Poller's own descriptors, not those it watches.
func (p *Poller) Close() {
	unix.Close(p.epoll)
	unix.Close(p.event)
}
