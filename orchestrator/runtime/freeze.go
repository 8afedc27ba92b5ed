package runtime

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Freeze stops every process of a node, or lets them go on.
func (p *Proc) Freeze(frozen bool) error {
	if err := freeze(p.PID, frozen); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

// freeze stops every process in the PID namespace of a process, or lets them go on.
func freeze(init int, frozen bool) error {
	signal := unix.SIGCONT
	if frozen {
		signal = unix.SIGSTOP
	}
	// A process may start another while they are being stopped: until nobody new is found, all are.
	done := map[int]bool{}
	for {
		pids, err := inside(init)
		if err != nil {
			return err
		}
		news := false
		for _, pid := range pids {
			if done[pid] {
				continue
			}
			done[pid], news = true, true
			if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("process %d: %w", pid, err)
			}
		}
		if !news {
			return nil
		}
	}
}

// inside lists the processes in the PID namespace of a process. Those of nodes have none below: they may not make
// namespaces.
func inside(pid int) ([]int, error) {
	space, err := namespace(pid, "pid")
	if err != nil {
		return nil, err
	}
	return Processes(func(n int) bool {
		theirs, err := namespace(n, "pid")
		return err == nil && theirs == space
	}), nil
}
