package deploy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/control"
)

// listener is the socket of a supervisor.
type listener struct {
	*net.UnixListener
}

// through is a path to a file in a folder that is short enough for a socket's address, wherever the folder is: 108 bytes
// (unix(7)). The folder must be kept open meanwhile.
func through(folder *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name)
}

// listen makes the socket. The folder it is in lets nobody in but its owner; nor does the socket itself.
func listen(dir *os.Root) (*listener, error) {
	folder, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: through(folder, socketFile), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by the journal, and by a name that still means it
	if err := dir.Chmod(socketFile, 0o600); err != nil {
		return nil, cleanup.Join(err, l.Close())
	}
	return &listener{l}, nil
}

// peer returns who is at the other end of a connection.
func peer(sock *net.UnixConn) (*unix.Ucred, error) {
	raw, err := sock.SyscallConn()
	if err != nil {
		return nil, err
	}
	var who *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		who, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return who, failed
}

// firstTime is how long a client may take to say what it wants. Ours.
const firstTime = 10 * time.Second

// serve takes requests until somebody asks for the end, and returns how to answer that; nil when SIGTERM came.
func (s *supervisor) serve(l *listener) func(error) {
	ending := make(chan *control.Conn, 1)
	stop := context.AfterFunc(s.life, func() { l.Close() })
	defer stop()
	go func() {
		for {
			sock, err := l.AcceptUnix()
			if err != nil {
				return // closed
			}
			s.programs.Go(func() { s.admit(sock, ending) })
		}
	}()
	select {
	case conn := <-ending:
		l.Close()
		return func(err error) {
			var e Ended
			if err != nil {
				e.Error = err.Error()
			}
			_ = conn.SendValue(kindEnded, e)
			conn.Close()
		}
	case <-s.life.Done():
		return nil
	}
}

// admit serves a client, if it is of this user and does not run inside a node, of this lab or another.
func (s *supervisor) admit(sock *net.UnixConn, ending chan<- *control.Conn) {
	conn := control.New(sock)
	who, err := peer(sock)
	if err != nil || int(who.Uid) != os.Geteuid() {
		_ = conn.SendError(errors.New("this lab belongs to another user"))
		conn.Close()
		return
	}
	if err := control.Foreign(int(who.Pid)); err != nil {
		_ = conn.SendError(fmt.Errorf("a lab is not changed from within a node: %w", err))
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(firstTime))
	over := context.AfterFunc(s.life, func() { _ = conn.SetReadDeadline(time.Now()) })
	defer over()
	m, fds, err := conn.Recv()
	if err != nil {
		_ = conn.SendError(fmt.Errorf("the request cannot be read: %w", err))
		conn.Close()
		return
	}
	if s.life.Err() == nil {
		_ = conn.SetReadDeadline(time.Time{})
	}
	if m.Kind == kindEnd {
		closeAll(fds)
		select {
		case ending <- conn:
		default: // somebody else asked first
			_ = conn.SendError(errors.New("the lab is being ended"))
			conn.Close()
		}
		return
	}
	defer conn.Close()
	if err := s.handle(conn, m, fds); err != nil && !isEnd(err) {
		_ = conn.SendError(err)
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
