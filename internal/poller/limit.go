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

// RealTimeLimit is how long a thread with real-time scheduling may run without once sleeping before the kernel ends its
// process (RLIMIT_RTTIME). Ours: a loop that is always behind sleeps at least every restTurns turns, which take a second at
// worst and 20 ms as a rule, so only one that hangs comes near it; and a machine with one processor is back in ten seconds.
const RealTimeLimit = 10 * time.Second

// LimitRealTime sets RealTimeLimit for this process, and what it starts. A lower limit stays.
func LimitRealTime() error { return limitRealTime(0) }

// limitRealTime does so for a process; 0 is this one. That of another user's process takes a capability that not every root
// has (CAP_SYS_RESOURCE), so a process that is to have real-time scheduling sets its limit itself, and here it is only seen
// to.
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

// realTimeLimit is RLIMIT_RTTIME of a process, in microseconds: proc_pid_limits(5), which everybody may read.
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

// procName names a process in /proc; 0 is this one.
func procName(pid int) string {
	if pid == 0 {
		return "self"
	}
	return strconv.Itoa(pid)
}

// threads lists the threads of a process; 0 is this one.
func threads(pid int) (tids []int, err error) {
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

// DropRealTime takes real-time scheduling away from every thread of another process that is about to be killed. Where others have
// real-time scheduling too and do not sleep, such a process would get no turn to end in: SIGKILL stays pending for as long.
// As an ordinary one, and the first of those where that may be, it shares in what the kernel keeps for them (sched(7)). A
// process that has ended is calm.
func DropRealTime(pid int) error {
	const passes = 3 // a thread that is not calm yet may start another
	for range passes {
		tids, err := threads(pid)
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

// calm makes a thread an ordinary one, with the best priority that this process may give.
func calm(tid int) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -20}
	err := unix.SchedSetAttr(tid, &attr, 0)
	if errors.Is(err, unix.EPERM) {
		attr.Nice = 0
		err = unix.SchedSetAttr(tid, &attr, 0)
	}
	return err
}
