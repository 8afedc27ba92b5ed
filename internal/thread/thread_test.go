package thread

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// With one processor the goroutine would be scheduled on the process's first thread again and
// again.
func TestOwnOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 200 {
		tid := make(chan int)
		Own(func() { tid <- unix.Gettid() })
		if got := <-tid; got == os.Getpid() {
			t.Fatal("on the process's first thread")
		}
	}
}
