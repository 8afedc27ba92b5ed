package doctor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollPwait2 waits for one event, which x/sys does not wrap.
func epollPwait2(fd int, events *[1]unix.EpollEvent, wait *unix.Timespec) error {
	_, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(fd), uintptr(unsafe.Pointer(events)), 1,
		uintptr(unsafe.Pointer(wait)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
