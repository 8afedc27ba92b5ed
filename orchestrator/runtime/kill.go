package runtime

import (
	"errors"
	"fmt"
	"time"

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
	if SameNamespace(init, "pid") {
		return nil // its number is another's by now, which is in no container
	}
	pids, err := inside(init)
	if err != nil {
		return nil // it has ended
	}
	for _, pid := range pids {
		if err := poller.Calm(pid); err != nil {
			return err
		}
	}
	return nil
}

// Running waits until all processes have ended, but no longer than d, and returns those descriptors (pidfd_open(2)) whose
// processes have not.
func Running(pidfds []int, d time.Duration) []int {
	deadline := time.Now().Add(d)
	for len(pidfds) > 0 {
		fds := make([]unix.PollFd, len(pidfds))
		for i, fd := range pidfds {
			fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		}
		wait := max(0, time.Until(deadline))
		_, err := unix.Poll(fds, int((wait+time.Millisecond-1)/time.Millisecond))
		var left []int
		for i, fd := range pidfds {
			if fds[i].Revents&unix.POLLIN == 0 {
				left = append(left, fd)
			}
		}
		pidfds = left
		if wait == 0 && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return pidfds
}
