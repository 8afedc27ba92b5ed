package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// endpoint is the name under which a process in a container awaits its orchestrator: an abstract socket, which lies in
// the network namespace alone. No file stands for it, and nobody outside of the namespace can name it.
const endpoint = "@weft/control"

// maxStrangers is how many connections of others a process refuses before it gives up. Ours.
const maxStrangers = 16

// ErrStranger is returned when who speaks is not who should.
var ErrStranger = errors.New("control: the peer is not the one expected")

// Accept waits, no longer than patience, for the connection of a process of the given user, in the network namespace of
// this process, and then listens no more. Connections of other users are closed without reading from them.
func Accept(owner int, patience time.Duration) (*Conn, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: endpoint, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	defer l.Close()
	if err := l.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	for range maxStrangers {
		sock, err := l.AcceptUnix()
		if err != nil {
			return nil, fmt.Errorf("control: nobody took control: %w", err)
		}
		if who, err := peer(sock); err == nil && int(who.Uid) == owner {
			return New(sock), nil
		}
		sock.Close()
	}
	return nil, fmt.Errorf("%w: %d connections were made by other users than %d", ErrStranger, maxStrangers, owner)
}

// dialEvery is how often a process that does not listen yet is called.
const dialEvery = 2 * time.Millisecond

// Dial connects to the process that Accepts in the network namespace of the calling thread, which must be locked to
// it. The process must be the one with the given number; while it does not listen yet Dial waits, until ctx ends.
func Dial(ctx context.Context, pid int) (*Conn, error) {
	wait := time.NewTicker(dialEvery)
	defer wait.Stop()
	for {
		c, err := dial(pid)
		if !errors.Is(err, unix.ECONNREFUSED) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("control: process %d does not listen: %w", pid, ctx.Err())
		case <-wait.C:
		}
	}
}

// dial makes its system calls itself: package net may leave the thread, and with it the namespace.
func dial(pid int) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("control: socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: endpoint}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("control: connect: %w", err)
	}
	c, err := Open(fd)
	if err != nil {
		return nil, err
	}
	who, err := peer(c.sock)
	if err == nil && int(who.Pid) != pid {
		err = fmt.Errorf("%w: process %d listens, not process %d", ErrStranger, who.Pid, pid)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// peer returns who was at the other end when the connection was made: who connected, or who listened.
func peer(sock *net.UnixConn) (*unix.Ucred, error) {
	raw, err := sock.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	var who *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		who, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if failed != nil {
		return nil, fmt.Errorf("control: who is at the other end: %w", failed)
	}
	return who, nil
}
