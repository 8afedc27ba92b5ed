package runtime

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// awaitEnd returns when the process pid has ended, which the calling thread started, and leaves it
// to be waited for. A program can make the thread that started it its tracer (PTRACE_TRACEME). Then
// it would stop at every signal, as would each of its threads that does so, and a thread that ended
// would keep the whole process from ending. They are let go.
func awaitEnd(pid int) {
	const options = unix.WEXITED | unix.WNOWAIT | unix.WALL | unix.WNOTHREAD
	for {
		var is childState
		err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&is)), options, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return
		case is.code == cldTrapped:
			signal := is.status & 0x7f
			if signal == int32(unix.SIGTRAP) { // of its exec, and nobody's signal
				signal = 0
			}
			_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(is.pid), 0, uintptr(signal), 0, 0)
			if errno != 0 && errno != unix.ESRCH { // ESRCH: it was killed
				return
			}
		case int(is.pid) == pid:
			return
		default: // a thread
			if _, err := unix.Wait4(int(is.pid), nil, unix.WALL|unix.WNOTHREAD, nil); err != nil {
				return
			}
		}
	}
}

// cldTrapped is the code of a traced child that has stopped: sigaction(2).
const cldTrapped = 4

// childState is a siginfo_t of waitid(2).
type childState struct {
	_      [2]int32 // si_signo, si_errno
	code   int32
	_      int32
	pid    int32
	_      int32 // si_uid
	status int32 // of a traced child, the signal
	_      [100]byte
}
