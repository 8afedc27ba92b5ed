package control

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Foreign says why a process must not be spoken to: it is in a PID namespace below this process's, as whatever runs in a
// node of any lab is, or in another network; nil: it is neither. A user's number does not tell: root in a node may be root
// outside. pid is as a socket's credentials have it (SO_PEERCRED): 0 for a process that this one cannot see.
func Foreign(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("%w: it is in a PID namespace that is not seen from here", ErrStranger)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return fmt.Errorf("%w: process %d: %w", ErrStranger, pid, err)
	}
	// proc_pid_status(5): its number in this namespace, and in each below it down to its own.
	_, rest, found := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ := strings.Cut(string(rest), "\n")
	if !found || len(strings.Fields(line)) != 1 {
		return fmt.Errorf("%w: process %d is inside a container or a node", ErrStranger, pid)
	}
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err == nil && theirs != ours { // the ordinary user's supervisor may not look, and has seen enough
		return fmt.Errorf("%w: process %d is in another network namespace", ErrStranger, pid)
	}
	return nil
}
