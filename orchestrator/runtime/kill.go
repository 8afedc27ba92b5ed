package runtime

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/poller"
)

// Kill kills a process held by a descriptor (pidfd_open(2)). It removes the process's real-time
// scheduling before, so that the process can exit on a processor that others occupy in real time,
// and again afterwards in case the process set it meanwhile.
func Kill(pid, pidfd int) error {
	if err := dropRealTime(pid, pidfd); err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return dropRealTime(pid, pidfd)
}

// dropRealTime removes real-time scheduling from a process, unless it has ended: the PID may be
// reused then.
func dropRealTime(pid, pidfd int) error {
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil {
		return nil
	}
	return poller.DropRealTime(pid)
}

// DropRealTime removes real-time scheduling from every process of a container, given the PID of its
// first, before the engine kills them.
func DropRealTime(init int) error {
	if SameNamespace(init, "pid") {
		return nil // the PID was reused outside of containers
	}
	pids, err := processesInside(init)
	if err != nil {
		return nil // it has ended
	}
	for _, pid := range pids {
		if err := poller.DropRealTime(pid); err != nil {
			return err
		}
	}
	return nil
}

// KillTime is the time limit for killed processes to be gone with their namespaces. One that
// changes a network, or closes a TAP, ends only after the kernel has given it the lock for that,
// which took more than 10 s on a machine that removed hundreds of namespaces.
const KillTime = time.Minute

// AwaitExit waits until all processes have exited, at most for d. It returns the descriptors
// (pidfd_open(2)) of those that have not.
func AwaitExit(pidfds []int, d time.Duration) []int {
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
