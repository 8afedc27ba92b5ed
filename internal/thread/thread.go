// Package thread runs a function on an operating system thread of its own, which ends with it.
// Changes to the thread (its namespaces, scheduling, parent-death signal) affect nothing else and
// need not be undone.
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
			f() // never unlocked
			return
		}
		begun := make(chan struct{})
		go func() {
			// on another thread: this one stays locked until f has ended, also with one processor
			runtime.LockOSThread()
			close(begun)
			f()
		}()
		<-begun
		runtime.UnlockOSThread()
	}()
}
