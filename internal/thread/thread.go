// Package thread gives a function a thread of the operating system to itself, which ends with it. What such a function makes of its
// thread (the namespaces it is in, its scheduling, its parent-death signal) is nobody else's, and is never undone.
package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Own starts a goroutine whose thread ends with it, and does not wait for it. That is not the process's first thread, which does not
// end before the process: what became of it would stay, and is what the process shows as its own (/proc/self/ns).
func Own(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f() // never unlocked
			return
		}
		begun := make(chan struct{})
		go func() {
			runtime.LockOSThread() // another: the first is held until then, also where there is one processor
			close(begun)
			f()
		}()
		<-begun
		runtime.UnlockOSThread()
	}()
}
