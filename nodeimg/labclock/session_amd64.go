package labclock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/clip"
	"weft/internal/clock"
	"weft/internal/control"
)

// keep serves attached programs until the connection ends.
func keep(conn *control.Conn) error {
	image, err := ownVDSO()
	if err != nil {
		return err
	}
	for {
		m, fds, err := conn.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		files := make([]*os.File, len(fds))
		for i, fd := range fds {
			files[i] = os.NewFile(uintptr(fd), "lab time")
		}
		if m.Kind != kindAttach || len(fds) != 3 {
			return fmt.Errorf("message %q with %d descriptors", m.Kind, len(fds))
		}
		go attach(image, files[0], files[1], files[2])
	}
}

// attach receives the listener of a program, and serves it and its children until all have ended.
func attach(image *vdso, program, page, errors *os.File) {
	listener, err := receiveListener(int(program.Fd()))
	if err != nil {
		page.Close()
		errors.Close()
		program.Close() // it has ended, or says itself that there is no answer
		return
	}
	defer unix.Close(listener)
	s := &session{listener: listener, image: image, errors: errors, complaints: make(chan struct{}, maxComplaints)}
	defer func() { go func() { s.writing.Wait(); errors.Close() }() }()
	s.waits.init()
	answer := ready
	if s.page, err = openPage(page); err != nil {
		answer = err.Error()
	} else {
		defer s.page.Close()
	}
	// Faster answers where one processor serves both; Linux 6.6.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	_, _ = program.Write([]byte(answer)) // an error means that it has ended
	program.Close()
	if s.page == nil {
		return
	}
	s.serve()
}

// receiveListener receives a descriptor.
func receiveListener(socket int) (int, error) {
	var oob [64]byte
	n, oobn, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob[:], unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return -1, errors.Join(io.EOF, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(io.EOF, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(io.EOF, err)
	}
	return fds[0], nil
}

// A session serves a program and its children.
type session struct {
	listener   int
	image      *vdso
	page       *Page
	errors     *os.File
	complaints chan struct{} // holds one element for each complaint that is being written
	writing    sync.WaitGroup
	waits      waits
	tracing    tracing
}

// maxComplaints bounds the complaints that wait for a program which does not read its own output.
const maxComplaints = 16

// Structures of linux/seccomp.h.
type (
	notification struct {
		id         uint64
		pid, flags uint32 // pid is the thread's, in this process's namespace
		call       int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		value int64
		error int32 // negative
		flags uint32
	}
	addition struct {
		id               uint64
		flags, source    uint32
		target, newFlags uint32
	}
)

// serve handles system calls until all programs of the session have ended.
func (s *session) serve() {
	for {
		fds := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil || fds[0].Revents&unix.POLLIN == 0 {
			return // nobody has the filter any more
		}
		var n notification
		switch err := s.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err {
		case 0:
			s.handle(&n)
		case unix.EINTR, unix.ENOENT: // the thread was killed meanwhile
		default:
			return
		}
	}
}

func (s *session) control(request uintptr, argument unsafe.Pointer) unix.Errno {
	_, errno := s.request(request, argument)
	return errno
}

// request makes a request of the listener. All but the one for the next call are made again after a
// signal: an answer that is lost would leave a program waiting.
func (s *session) request(request uintptr, argument unsafe.Pointer) (int, unix.Errno) {
	for {
		value, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), request, uintptr(argument))
		if errno != unix.EINTR || request == unix.SECCOMP_IOCTL_NOTIF_RECV {
			return int(value), errno
		}
	}
}

// handle handles a system call. What takes long is left to a goroutine.
func (s *session) handle(n *notification) {
	switch n.call {
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		go s.exec(n)
	case takeFile:
		s.giveFile(n)
	case unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_TIME:
		s.answerClock(n)
	case unix.SYS_TIMERFD_SETTIME:
		s.setTimer(n)
	case unix.SYS_TIMER_SETTIME:
		s.complain(n.pid, "a POSIX timer at an instant cannot follow lab time; timer_settime fails")
		s.fail(n, unix.EOPNOTSUPP)
	case unix.SYS_RESTART_SYSCALL:
		s.restart(n)
	default:
		s.wait(n)
	}
}

// proceed lets the kernel carry the call out.
func (s *session) proceed(n *notification) unix.Errno {
	return s.control(unix.SECCOMP_IOCTL_NOTIF_SEND,
		unsafe.Pointer(&response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}))
}

// succeed lets the call return a value instead. An error means that the thread was killed.
func (s *session) succeed(n *notification, value int64) {
	_ = s.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response{id: n.id, value: value}))
}

// fail lets the call fail.
func (s *session) fail(n *notification, errno unix.Errno) {
	_ = s.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response{id: n.id, error: -int32(errno)}))
}

// giveFile answers takeFile with a descriptor of the Page. To a thread that makes the call on its
// own, and not because install makes it, the call does not exist.
//
// It adds the descriptor and answers in two steps. With SECCOMP_ADDFD_FLAG_SEND, which does both at
// once, a signal that reaches this thread meanwhile (Go's runtime sends them to preempt) takes the
// descriptor back but leaves the answer: the call returns 0, and the program's standard input
// passes for its clocks. Without it, the request is made again after the signal.
func (s *session) giveFile(n *notification) {
	if !s.tracing.has(int(n.pid)) {
		s.fail(n, unix.ENOSYS)
		return
	}
	a := addition{id: n.id, source: uint32(s.page.file.Fd()), newFlags: unix.O_CLOEXEC}
	fd, errno := s.request(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
	if errno != 0 {
		s.fail(n, errno)
		return
	}
	s.succeed(n, int64(fd))
}

// patience is how long complain waits for a program that does not read its own output. Our own
// choice: to write takes microseconds.
const patience = 100 * time.Millisecond

// complain writes a line about a process.
func (s *session) complain(pid uint32, format string, args ...any) {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	line := fmt.Sprintf("weft: %s: %s\n", clip.Text(strings.TrimSpace(string(name))), fmt.Sprintf(format, args...))
	select {
	case s.complaints <- struct{}{}:
		written := make(chan struct{})
		s.writing.Go(func() {
			_, _ = s.errors.WriteString(line) // nobody may read it any more
			<-s.complaints
			close(written)
		})
		select {
		case <-written:
		case <-time.After(patience):
		}
	default:
	}
}

// monotonic reads CLOCK_MONOTONIC.
func monotonic() int64 { return clock.Monotonic() }
