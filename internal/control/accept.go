package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// endpoint is the name on which a process in a container waits for its orchestrator: an abstract
// socket, which exists only in the network namespace. It has no file, and processes outside the
// namespace cannot address it.
const endpoint = "@weft/control"

// maxStrangers is the number of foreign connections that a process refuses before it gives up. Our
// own value.
const maxStrangers = 16

// ErrStranger means that the peer is not the expected process or user.
var ErrStranger = errors.New("control: the peer is not the one expected")

// Accept waits at most patience for a connection from a process of the given user in this process's
// network namespace, and then stops listening. It closes connections of other users without reading
// from them.
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

// dialEvery is the interval between attempts to reach a process that does not listen yet.
const dialEvery = 2 * time.Millisecond

// Dial connects to the process that calls Accept in the network namespace of the calling thread,
// which must be locked. The process must have the given PID. Dial retries until it listens or ctx
// ends.
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

// dial uses system calls directly, because package net may switch threads and with them the
// namespace.
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

// peer returns the credentials of the other end at the time of connecting or listening.
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
