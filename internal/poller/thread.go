package poller

import (
	"errors"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Priority is how urgently a thread wants the processor.
type Priority int

// Priorities of a Thread.
const (
	// Prompt is for node agents: short turns, soon after a wake-up.
	Prompt Priority = iota
	// Urgent is for the fabric, which every packet passes twice: ahead of all others where the machine allows it.
	Urgent
)

// Thread locks the calling goroutine to its thread and asks the kernel for precise timers and prompt
// wake-ups at the given priority. What an unprivileged process may not have it does without; the fidelity
// verdict tells whether that was enough. It returns what it got, for the record.
func Thread(p Priority) string {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // cannot fail for a process's own thread
	if p == Urgent {
		if setScheduler(unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}) == nil {
			return "fifo"
		}
		if unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -19) == nil {
			return "nice -19"
		}
	}
	// A short slice is an early virtual deadline: such a thread runs sooner after it wakes (EEVDF, Linux 6.12).
	if setScheduler(unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Runtime: shortSlice}) == nil {
		return "short slice"
	}
	return "default"
}

// shortSlice is the time slice asked for, in nanoseconds: the least that the kernel grants.
const shortSlice = 100_000

func setScheduler(a unix.SchedAttr) error { return unix.SchedSetAttr(0, &a, 0) }

// QuietMemory turns the garbage collector off until the process has grown by room bytes. The loops of
// emulation do not allocate per packet; the limit is for what they do not foresee.
func QuietMemory(room int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	runtime.GC()
	debug.SetMemoryLimit(int64(m.Sys) + room)
	debug.SetGCPercent(-1)
}

// CPU returns the processor time that the process has used, in nanoseconds.
func CPU() int64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return ru.Utime.Nano() + ru.Stime.Nano()
}

// Read reads from a nonblocking descriptor without telling Go's scheduler, which would cost more than the
// call. again means that there is nothing to read now.
func Read(fd int, b []byte) (n int, again bool, err error) {
	r, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return result(r, errno)
}

// Write writes to a nonblocking descriptor in the same way. again means that the kernel had no room.
func Write(fd int, b []byte) (n int, again bool, err error) {
	r, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return result(r, errno)
}

func result(r uintptr, errno unix.Errno) (n int, again bool, err error) {
	switch {
	case errno == 0:
		return int(r), false, nil
	case errors.Is(errno, unix.EAGAIN), errno == unix.EINTR, errno == unix.ENOBUFS:
		return 0, true, nil
	}
	return 0, false, errno
}
