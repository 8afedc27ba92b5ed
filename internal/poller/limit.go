package poller

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// RealTimeLimit is how long a thread with real-time scheduling may run without sleeping before the
// kernel kills its process (RLIMIT_RTTIME). Our own value: a loop that is always behind sleeps at
// least every restTurns turns, usually every 20 ms and at worst every second, so only a hanging one
// reaches the limit, and a machine with one processor recovers after ten seconds.
const RealTimeLimit = 10 * time.Second

// LimitRealTime sets RealTimeLimit for this process and its future children. It keeps a lower
// limit.
func LimitRealTime() error { return limitRealTime(0) }

// limitRealTime sets or checks the limit of a process; 0 is this one. Setting that of another
// user's process takes CAP_SYS_RESOURCE, which not every root has. A process that gets real-time
// scheduling therefore sets its own limit, and here it is only checked.
func limitRealTime(pid int) error {
	const most = uint64(RealTimeLimit / time.Microsecond)
	if now, err := realTimeLimit(pid); err != nil || now <= most {
		return err
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
		return fmt.Errorf("limit of real-time scheduling of process %d: %w", pid, err)
	}
	return nil
}

// realTimeLimit returns RLIMIT_RTTIME of a process in microseconds (proc_pid_limits(5)), which any
// user may read.
func realTimeLimit(pid int) (uint64, error) {
	text, err := os.ReadFile("/proc/" + procName(pid) + "/limits")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if values, ok := strings.CutPrefix(line, "Max realtime timeout"); ok {
			if f := strings.Fields(values); len(f) >= 2 && f[1] != "unlimited" {
				return strconv.ParseUint(f[1], 10, 64)
			}
		}
	}
	return unix.RLIM_INFINITY, nil
}

// procName returns the name of a process in /proc; 0 is this one.
func procName(pid int) string {
	if pid == 0 {
		return "self"
	}
	return strconv.Itoa(pid)
}

// Threads returns the threads of a process; 0 is this one.
func Threads(pid int) (tids []int, err error) {
	entries, err := os.ReadDir("/proc/" + procName(pid) + "/task")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}

// DropRealTime removes real-time scheduling from every thread of another process that is about to
// be killed. While other real-time processes run without sleeping, such a process would get no
// processor time to exit, and SIGKILL would stay pending. As an ordinary process of the highest
// possible priority it shares the time that the kernel reserves for ordinary ones (sched(7)). A
// process that has already ended is no error.
func DropRealTime(pid int) error {
	const passes = 3 // a thread that still has it may start another
	for range passes {
		tids, err := Threads(pid)
		if err != nil {
			return nil
		}
		changed := false
		for _, tid := range tids {
			attr, err := unix.SchedGetAttr(tid, 0)
			if err != nil || attr.Policy != unix.SCHED_FIFO && attr.Policy != unix.SCHED_RR {
				continue
			}
			changed = true
			if err := calm(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("take real-time scheduling from process %d: %w", pid, err)
			}
		}
		if !changed {
			return nil
		}
	}
	return nil
}

// calm gives a thread ordinary scheduling with the best priority that this process may set.
func calm(tid int) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -20}
	err := unix.SchedSetAttr(tid, &attr, 0)
	if errors.Is(err, unix.EPERM) {
		attr.Nice = 0
		err = unix.SchedSetAttr(tid, &attr, 0)
	}
	return err
}
