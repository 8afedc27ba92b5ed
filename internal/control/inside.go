package control

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Foreign says why a process must not be spoken to: it is in another network namespace than this
// process, as whatever runs in a node of any lab is; nil: it is not. A user's number does not tell:
// root in a node may be root outside. Where this process may not look at the other's network, as an
// ordinary user's may not from a user namespace, it must not be in a PID namespace below this
// one's. pid is as a socket's credentials have it (SO_PEERCRED): 0 for a process that cannot be
// seen.
func Foreign(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("%w: it is in a PID namespace that is not seen from here", ErrStranger)
	}
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return below(pid)
	case err != nil:
		return fmt.Errorf("%w: process %d: %w", ErrStranger, pid, err)
	case theirs != ours:
		return fmt.Errorf("%w: process %d is in another network namespace", ErrStranger, pid)
	}
	return nil
}

// below refuses a process that has a number in more than one PID namespace that is seen from here.
func below(pid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return fmt.Errorf("%w: process %d: %w", ErrStranger, pid, err)
	}
	_, rest, found := bytes.Cut(status, []byte("\nNSpid:")) // proc_pid_status(5)
	line, _, _ := strings.Cut(string(rest), "\n")
	if !found || len(strings.Fields(line)) != 1 {
		return fmt.Errorf("%w: process %d is inside a container or a node", ErrStranger, pid)
	}
	return nil
}
