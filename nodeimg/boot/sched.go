package boot

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// firstNice is the highest priority of the ordinary scheduler.
const firstNice = -20

// Realtime gives the calling thread, which must be locked to its goroutine, the best scheduling that this
// process may have, and says which: "SCHED_FIFO 1", else "nice -20", else "nice N" as it was. A thread of
// SCHED_FIFO runs before all others until it waits, so it must wait.
func Realtime() string {
	const priority = 1 // the lowest there is: nothing of ours competes, and the kernel's own threads go first
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority}
	if unix.SchedSetAttr(0, &attr, 0) == nil {
		return fmt.Sprintf("SCHED_FIFO %d", priority)
	}
	return fmt.Sprintf("nice %d", nice(firstNice))
}

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
