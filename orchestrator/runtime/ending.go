package runtime

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// exiting is the flag of a process that has begun to end: PF_EXITING in field 9 of proc_pid_stat(5).
const exiting = 0x4

// Ending says whether a process has begun to end, or has ended. A node's process sets the flag before the kernel ends
// whatever else runs in the node, so it is set by the time that anybody sees a program end with its node.
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
