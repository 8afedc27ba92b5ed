package poller

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Priority is how urgently a process wants the processor.
type Priority int

// Priorities.
const (
	// Prompt is for node agents: short turns, soon after a wake-up.
	Prompt Priority = iota
	// Urgent is for the fabric, which every packet passes twice: ahead of all others where the machine allows it.
	Urgent
)

// Preemption is the environment variable, as name=value, that a process which is to be taken over should be
// started with: Go must not interrupt a wait every 10 ms to see whether another goroutine could run.
const Preemption = "GODEBUG=asyncpreemptoff=1"

// TakeOver makes the process one that runs a single loop in its calling goroutine: one processor, so that no
// other thread is woken to look for work; no garbage collection until it has grown by room bytes; precise
// timers; and the scheduling that fits the priority, as far as the kernel grants it. It returns what that
// is, for the record. What was refused shows in the fidelity verdict, if it matters.
func TakeOver(p Priority, room int64) (scheduling string) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetMemoryLimit(int64(m.Sys) + room)
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(1)
	scheduling = Prefer(0, p)                          // the goroutine is not tied to a thread; new ones inherit
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // cannot fail for a process's own thread
	return scheduling
}

// schedule asks for the scheduling of one thread.
func schedule(pid, tid int, p Priority) string {
	const size = unix.SizeofSchedAttr
	if p == Urgent {
		if limitRealTime(pid) == nil && unix.SchedSetAttr(tid, &unix.SchedAttr{Size: size, Policy: unix.SCHED_FIFO, Priority: urgent}, 0) == nil {
			return "fifo"
		}
		if unix.Setpriority(unix.PRIO_PROCESS, tid, -19) == nil {
			return "nice -19"
		}
	}
	// A short slice is an early virtual deadline: such a thread runs sooner after it wakes (EEVDF, Linux 6.12).
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		return "as it was"
	}
	nice = 20 - nice // the system call's value: setpriority(2)
	if unix.SchedSetAttr(tid, &unix.SchedAttr{Size: size, Policy: unix.SCHED_NORMAL, Nice: int32(nice), Runtime: shortSlice}, 0) != nil {
		return fmt.Sprintf("nice %d", nice)
	}
	return fmt.Sprintf("nice %d, short slice", nice)
}

// Real-time priorities: the fabric goes before the nodes.
const (
	favoured = 1
	urgent   = 2
)

// Favour gives every thread of another process real-time scheduling (SCHED_RR), as only a privileged process may:
// it runs before all ordinary ones, and takes turns with its like. The kernel keeps a twentieth of each second
// for the others (sched(7)), and ends it when it does not sleep for RealTimeLimit.
func Favour(pid int) error {
	if err := limitRealTime(pid); err != nil {
		return err
	}
	tids, err := threads(pid)
	if err != nil {
		return err
	}
	for _, tid := range tids {
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: favoured}
		if err := unix.SchedSetAttr(tid, &attr, 0); err != nil && !errors.Is(err, unix.ESRCH) { // it may have ended
			return fmt.Errorf("real-time scheduling of process %d: %w", pid, err)
		}
	}
	return nil
}

// Prefer gives every thread of another process the scheduling that fits the priority, as far as the kernel grants it
// to the caller. A process that then takes itself over keeps what it could not have taken.
func Prefer(pid int, p Priority) (scheduling string) {
	scheduling = "as it was"
	tids, _ := threads(pid) // none of a process that has ended
	for _, tid := range tids {
		scheduling = schedule(pid, tid, p)
	}
	return scheduling
}

// shortSlice is the time slice asked for, in nanoseconds: the least that the kernel grants.
const shortSlice = 100_000

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
