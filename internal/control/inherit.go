package control

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// KeepDescriptors marks every descriptor of this process but the three standard ones as closed on
// exec, so that no program it starts, or becomes, inherits what the shell or script that started
// this process had open: a directory of the machine, a lock, the end of a pipe that another
// process waits for. Descriptors that a program needs are passed to it explicitly.
func KeepDescriptors() error {
	const first = 3
	err := unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	// before Linux 5.11, or a filter on calls
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
		err = keepEach(first)
	}
	if err != nil {
		return fmt.Errorf("close descriptors on exec: %w", err)
	}
	return nil
}

// keepEach does as KeepDescriptors, one descriptor after the other.
func keepEach(first int) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd) // fails for the descriptor of the listing itself, which is closed
		}
	}
	return nil
}
