package runtime

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"weft/internal/poller"
)

// exiting is the flag PF_EXITING in field 9 of proc_pid_stat(5): the process has begun to exit.
const exiting = 0x4

// Ending reports whether a process has begun to exit, or is gone. The kernel sets the flag on a
// node's process before it kills the rest of the node, so a caller that sees a program end with its
// node sees the flag as well.
func (p *Proc) Ending() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return true
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(f[6], 10, 64)
	return err == nil && flags&exiting != 0
}

// Waits reports whether a thread of a process of this machine runs or waits for a processor.
func (p *Proc) Waits() bool {
	if p == nil || p.PID == 0 {
		return false
	}
	threads, _ := poller.Threads(p.PID) // none: it is gone
	return slices.ContainsFunc(threads, func(tid int) bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", p.PID, tid))
		state := strings.TrimSpace(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		return err == nil && strings.HasPrefix(state, "R")
	})
}
