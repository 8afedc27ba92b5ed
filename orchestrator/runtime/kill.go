package runtime

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/internal/poller"
)

// Kill kills a process that is held by a descriptor (pidfd_open(2)). Real-time scheduling is taken from it before, so that it
// gets a turn to end in whatever else runs in real time, and afterwards, should it have taken that meanwhile.
func Kill(pid, pidfd int) error {
	if err := calm(pid, pidfd); err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	return calm(pid, pidfd)
}

// calm takes real-time scheduling from a process unless it has ended: its number may be another's then.
func calm(pid, pidfd int) error {
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil {
		return nil
	}
	return poller.Calm(pid)
}

// Calm takes real-time scheduling from every process of a container, given its first, before the engine kills them.
func Calm(init int) error {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", init))
	if err != nil {
		return nil // it has ended
	}
	if own, err := os.Readlink("/proc/self/ns/pid"); err != nil || own == space {
		return err // its number is another's by now, which is in no container
	}
	pids, err := inside(init)
	if err != nil {
		return nil
	}
	for _, pid := range pids {
		if err := poller.Calm(pid); err != nil {
			return err
		}
	}
	return nil
}
