package runtime

import (
	"fmt"
	"os"
	"strconv"
	"strings"
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
