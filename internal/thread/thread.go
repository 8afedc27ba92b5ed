// Package thread runs a function on an operating system thread of its own, which ends with it.
// Changes to the thread (its namespaces, scheduling, parent-death signal) affect nothing else and
// need not be undone. Processes that it starts do not inherit real-time scheduling.
package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Own runs f in a goroutine on a thread that ends with it, and does not wait for it. It avoids the
// process's first thread, which lives as long as the process: changes to it would stay, and
// /proc/self/ns would show them as the process's.
func Own(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			keepRealTime()
			f() // never unlocked
			return
		}
		begun := make(chan struct{})
		go func() {
			// on another thread: this one stays locked until f has ended, also with one processor
			runtime.LockOSThread()
			close(begun)
			keepRealTime()
			f()
		}()
		<-begun
		runtime.UnlockOSThread()
	}()
}

// keepRealTime has the children of the calling thread begin with ordinary scheduling.
func keepRealTime() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil && (attr.Policy == unix.SCHED_FIFO || attr.Policy == unix.SCHED_RR) {
		attr.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
		_ = unix.SchedSetAttr(0, attr, 0) // it takes no privileges
	}
}
