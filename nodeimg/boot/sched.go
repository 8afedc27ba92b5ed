package boot

import "golang.org/x/sys/unix"

// nice asks for a nice value for the calling thread and its children, and returns the resulting
// one. 0 asks for nothing.
func nice(want int) int {
	if want != 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, want) // refused: Getpriority below returns the old value
	}
	had, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - had // the system call's value is 20 - nice: setpriority(2)
}
