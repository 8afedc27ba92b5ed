package labclock

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filterFlags are those of the filter. With WAIT_KILLABLE_RECV a call that the keeper has begun to
// handle is not interrupted by signals, which Go sends its threads all the time.
const filterFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV |
	unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW

// Available returns why programs on this machine cannot be given lab time; nil: they can.
func Available() error {
	// The kernel looks at the flags before the filter, which is missing.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, filterFlags, 0)
	switch errno {
	case unix.EFAULT:
		return nil
	case unix.EINVAL, unix.ENOSYS:
		return errors.New("lab time for programs needs Linux 5.19 or newer, with seccomp filters")
	}
	return fmt.Errorf("lab time for programs needs seccomp filters: %w", errno)
}

// Install gives lab time to the program that the calling thread becomes next, and to all its
// children. socket is what Keeper.Attach returned; Install closes it. The thread must be locked to
// its goroutine and have no_new_privs set.
func Install(socket int) error {
	defer unix.Close(socket)
	code := calls()
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	listener, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, filterFlags,
		uintptr(unsafe.Pointer(&program)))
	if errno == unix.EBUSY {
		return errors.New("lab time: another program already listens to the system calls of this one")
	}
	if errno != 0 {
		return fmt.Errorf("lab time: filter system calls: %w", errno)
	}
	err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(int(listener)), nil, 0)
	unix.Close(int(listener))
	if err != nil {
		return fmt.Errorf("lab time: %w", err)
	}
	answer := make([]byte, 512)
	n, err := unix.Read(socket, answer)
	switch {
	case err == nil && n == 0:
		err = io.ErrUnexpectedEOF
	case err == nil && string(answer[:n]) != ready:
		err = errors.New(string(answer[:n]))
	}
	if err != nil {
		return fmt.Errorf("lab time: %w", err)
	}
	return nil
}

// ready is the keeper's answer to a program that may start.
const ready = "ready"
