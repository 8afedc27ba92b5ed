package poller

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Priority is how urgently a process needs the processor.
type Priority int

// Priorities.
const (
	// Prompt is for node agents: short turns, soon after waking up.
	Prompt Priority = iota
	// Urgent is for the fabric, which every packet passes twice: before all others, if permitted.
	Urgent
)

// Preemption is the environment variable, as name=value, for starting a process that will call
// TakeOver. Go must not interrupt a wait every 10 ms to check for other goroutines.
const Preemption = "GODEBUG=asyncpreemptoff=1"

// TakeOver dedicates the process to a single loop in the calling goroutine: one processor, so that
// no other thread wakes up to look for work; no garbage collection until the heap has grown by room
// bytes; precise timers; and the scheduling of the priority, as far as the kernel grants it. It
// returns the granted scheduling, for the record. If a refusal matters, the fidelity verdict shows
// it.
func TakeOver(p Priority, room int64) (scheduling string) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetMemoryLimit(int64(m.Sys) + room)
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(1)
	scheduling = Prefer(0, p)                          // the goroutine is not bound to a thread; new threads inherit
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // cannot fail for the process's own thread
	return scheduling
}

// schedule requests the scheduling of one thread.
func schedule(pid, tid int, p Priority) string {
	const size = unix.SizeofSchedAttr
	if p == Urgent {
		if limitRealTime(pid) == nil && unix.SchedSetAttr(tid, &unix.SchedAttr{Size: size, Policy: unix.SCHED_FIFO,
			Priority: urgent}, 0) == nil {
			return "fifo"
		}
		if unix.Setpriority(unix.PRIO_PROCESS, tid, -19) == nil {
			return "nice -19"
		}
	}
	// A short slice gives an early virtual deadline, so that the thread runs sooner after waking up
	// (EEVDF, Linux 6.12).
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		return "as it was"
	}
	nice = 20 - nice // the raw system call returns 20 - nice: setpriority(2)
	if unix.SchedSetAttr(tid, &unix.SchedAttr{Size: size, Policy: unix.SCHED_NORMAL, Nice: int32(nice),
		Runtime: shortSlice}, 0) != nil {
		return fmt.Sprintf("nice %d", nice)
	}
	return fmt.Sprintf("nice %d, short slice", nice)
}

// Real-time priorities: the fabric runs before the nodes.
const (
	favoured = 1
	urgent   = 2
)

// Favour gives every thread of another process real-time scheduling (SCHED_RR), which takes
// privileges. It then runs before all ordinary processes and takes turns with others like it. The
// kernel reserves a twentieth of each second for ordinary processes (sched(7)), and kills the
// process if it does not sleep for RealTimeLimit.
func Favour(pid int) error {
	if err := limitRealTime(pid); err != nil {
		return err
	}
	tids, err := Threads(pid)
	if err != nil {
		return err
	}
	for _, tid := range tids {
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: favoured}
		// a thread may have ended
		if err := unix.SchedSetAttr(tid, &attr, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("real-time scheduling of process %d: %w", pid, err)
		}
	}
	return nil
}

// Prefer gives every thread of another process the scheduling of the priority, as far as the kernel
// grants it to the caller. If that process then calls TakeOver, it keeps scheduling that it could
// not have obtained itself.
func Prefer(pid int, p Priority) (scheduling string) {
	scheduling = "as it was"
	tids, _ := Threads(pid) // no threads if the process has ended
	for _, tid := range tids {
		scheduling = schedule(pid, tid, p)
	}
	return scheduling
}

// Hurry gives the calling thread the scheduling of the most urgent priority, as far as the kernel
// grants it. The goroutine must be locked to its thread.
func Hurry() (scheduling string) { return schedule(0, unix.Gettid(), Urgent) }

// shortSlice is the requested time slice in nanoseconds, the smallest that the kernel grants.
const shortSlice = 100_000

// CPU returns the processor time used by this process, in nanoseconds.
func CPU() int64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return ru.Utime.Nano() + ru.Stime.Nano()
}

// Read reads from a nonblocking descriptor without involving Go's scheduler, which would cost more
// than the call. again means that there is no input.
func Read(fd int, b []byte) (n int, again bool, err error) {
	r, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return result(r, errno)
}

// Write writes to a nonblocking descriptor without involving Go's scheduler. again means that the
// kernel has no room.
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
