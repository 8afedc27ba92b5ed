package boot

import "golang.org/x/sys/unix"

// nice asks for a priority for the calling thread, and what it starts, and returns what it then has. 0 asks
// for nothing.
func nice(want int) int {
	if want != 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, want) // refused: the answer below says so
	}
	had, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - had // the system call's value is 20 - nice: setpriority(2)
}
