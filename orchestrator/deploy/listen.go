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

// viaDescriptor returns a path to a file in an open folder that fits into a socket address (108
// bytes, unix(7)), wherever the folder is. The folder must stay open while the path is in use.
func viaDescriptor(folder *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name)
}

// listen creates the socket. Both its folder and its own mode admit only its owner.
func listen(dir *os.Root) (*listener, error) {
	folder, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: viaDescriptor(folder, socketFile), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the journal's undo removes it
	if err := dir.Chmod(socketFile, 0o600); err != nil {
		return nil, cleanup.Join(err, l.Close())
	}
	return &listener{l}, nil
}

// peer returns the credentials of the process at the other end of a connection.
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

// firstTime is the time limit for a client to send its request. Our own choice.
const firstTime = 10 * time.Second

// serve handles requests until a client asks for the end of the lab or SIGTERM arrives. It returns
// the function that answers that client, or nil after SIGTERM.
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

// admit handles the request of a client of this user that does not run inside a node of any lab.
func (s *supervisor) admit(sock *net.UnixConn, ending chan<- *control.Conn) {
	conn := control.New(sock)
	who, err := peer(sock)
	if err != nil || int(who.Uid) != os.Geteuid() {
		_ = conn.SendError(errors.New("this lab belongs to another user"))
		conn.Close()
		return
	}
	if err := control.Foreign(int(who.Pid)); err != nil {
		_ = conn.SendError(fmt.Errorf("a lab cannot be changed from within a node: %w", err))
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(firstTime))
	over := context.AfterFunc(s.life, func() { _ = conn.SetReadDeadline(time.Now()) })
	defer over()
	m, fds, err := conn.Recv()
	if err != nil {
		_ = conn.SendError(fmt.Errorf("cannot read the request: %w", err))
		conn.Close()
		return
	}
	if s.life.Err() == nil {
		_ = conn.SetReadDeadline(time.Time{})
	}
	if m.Kind == kindEnd {
		control.CloseAll(fds)
		select {
		case ending <- conn:
		default: // another client asked first
			_ = conn.SendError(errors.New("the lab is being ended"))
			conn.Close()
		}
		return
	}
	defer conn.Close()
	err = s.handle(conn, m, fds)
	if err == nil {
		return
	}
	if why := s.broken(); why != "" {
		err = errors.New(why)
	}
	_ = conn.SendError(err) // the client may be gone
}

// broken returns why the lab's network has ended, with a way out; "": it runs.
func (s *supervisor) broken() string {
	select {
	case <-s.lab.Broken():
		return fmt.Sprintf("lab %s is broken: %v; weft destroy %s takes it down", s.deployment.Lab, s.lab.Why(),
			s.deployment.Lab)
	default:
		return ""
	}
}
