package runtime

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Freeze stops every process of a node, or continues them.
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
		if !found {
			return nil
		}
	}
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
