package runtime

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/poller"
)

// exiting is the flag PF_EXITING in field 9 of proc_pid_stat(5): the process has begun to exit.
const exiting = 0x4

// Ending reports whether a process has begun to exit, or is gone. The kernel sets the flag on a
// node's process before it kills the rest of the node, so a caller that sees a program end with its
// node sees the flag as well.
func (p *Proc) Ending() bool { return exits(fmt.Sprintf("/proc/%d", p.PID)) }

// Exiting reports whether a process of this machine has begun to exit, and nobody has waited for it
// yet.
func (p *Proc) Exiting() bool {
	return p != nil && p.PID != 0 && begun(statOf(fmt.Sprintf("/proc/%d", p.PID)))
}

// dying reports whether a process has been killed, a thread of it has begun to exit, or it is gone.
// What the kernel ends with a process, it ends when a thread with the flag does; that thread may be
// gone before the others of a killed process have run again.
func dying(pid int) bool {
	if killed(pid) {
		return true
	}
	threads, err := poller.Threads(pid)
	return err != nil || slices.ContainsFunc(threads, func(tid int) bool {
		return exits(fmt.Sprintf("/proc/%d/task/%d", pid, tid))
	})
}

// killed reports whether SIGKILL was sent to a process that is not gone. The signal stays pending
// for the process as a whole until the kernel releases it: ShdPnd of proc_pid_status(5).
func killed(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // an error means that it is gone
	_, rest, _ := strings.Cut(string(text), "\nShdPnd:\t")
	mask, _, _ := strings.Cut(rest, "\n")
	pending, _ := strconv.ParseUint(mask, 16, 64)
	return pending&(1<<(unix.SIGKILL-1)) != 0
}

// Waits reports whether a thread of a process of this machine runs, or waits for a processor, or
// for memory or a disk.
func (p *Proc) Waits() bool {
	if p == nil || p.PID == 0 {
		return false
	}
	threads, _ := poller.Threads(p.PID) // none: it is gone
	return slices.ContainsFunc(threads, func(tid int) bool {
		f := statOf(fmt.Sprintf("/proc/%d/task/%d", p.PID, tid))
		return len(f) > 0 && (f[0] == "R" || f[0] == "D")
	})
}

// exits reports whether the process or thread with a folder of /proc has begun to exit, or is gone.
func exits(folder string) bool {
	f := statOf(folder)
	return f == nil || begun(f)
}

// begun reports whether fields of statOf are those of a process or thread that has begun to exit.
func begun(f []string) bool {
	if len(f) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(f[6], 10, 64)
	return err == nil && flags&exiting != 0
}

// statOf returns the fields of proc_pid_stat(5) from the third on, the state; nil: it is gone.
func statOf(folder string) []string {
	text, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}
