package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/poller"
)

// stopTime bounds how long a process may take to stop. Our own choice: it takes less than a
// millisecond, and longer on a busy machine.
const stopTime = 10 * time.Second

// Freeze stops every process of a node and returns when they stand still, or continues them.
func (p *Proc) Freeze(frozen bool) error {
	if err := freeze(p.PID, frozen); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

// freeze stops every process in the PID namespace of a process, or continues them.
func freeze(init int, frozen bool) error {
	signal := unix.SIGCONT
	if frozen {
		signal = unix.SIGSTOP
	}
	// A process may fork while others are being stopped, so repeat until no new one is found.
	done := map[int]bool{}
	for {
		pids, err := processesInside(init)
		if err != nil {
			return err
		}
		found := false
		for _, pid := range pids {
			if done[pid] {
				continue
			}
			done[pid], found = true, true
			if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("process %d: %w", pid, err)
			}
		}
		for until := time.Now().Add(stopTime); frozen; {
			i := slices.IndexFunc(pids, runs)
			if i < 0 {
				break
			}
			if time.Now().After(until) {
				return fmt.Errorf("process %d does not stop", pids[i])
			}
			time.Sleep(time.Millisecond)
		}
		if !found {
			return nil
		}
	}
}

// runs reports whether a thread of a process runs, or may before it stops. One in an
// uninterruptible sleep, such as that of vfork(2), stops when it wakes up.
func runs(pid int) bool {
	threads, _ := poller.Threads(pid) // none: it is gone
	return slices.ContainsFunc(threads, func(tid int) bool {
		f := statOf(fmt.Sprintf("/proc/%d/task/%d", pid, tid))
		return len(f) > 0 && (f[0] == "R" || f[0] == "S")
	})
}

// Stopped reports whether a process was stopped: by a signal (job control), by a debugger, or by
// the freezer of cgroup v2.
func Stopped(pid int) bool {
	f := statOf(fmt.Sprintf("/proc/%d", pid))
	if len(f) == 0 || f[0] != "S" {
		return len(f) > 0 && (f[0] == "T" || f[0] == "t")
	}
	where, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid)) // empty: the kernel does not say
	return string(where) == "do_freezer_trap"
}

// Uninterruptible reports whether no signal wakes a process: it waits for a disk, or for the end of
// a vfork, or is in the freezer of cgroup v1, where it stays for long.
func Uninterruptible(pid int) bool {
	f := statOf(fmt.Sprintf("/proc/%d", pid))
	return len(f) > 0 && f[0] == "D"
}

// processesInside returns the processes in the PID namespace of a process. Nodes cannot create
// nested namespaces.
func processesInside(pid int) ([]int, error) {
	space, err := namespace(pid, "pid")
	if err != nil {
		return nil, err
	}
	return Processes(func(n int) bool {
		theirs, err := namespace(n, "pid")
		return err == nil && theirs == space
	}), nil
}
