// Package terminal handles terminals: it asks whether a file is one and how wide, makes pairs of
// pseudo-terminals, and switches a terminal to raw mode and back.
package terminal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Is reports whether f is a terminal.
func Is(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Background reports whether f is the terminal of this process, whose group is in the background,
// as below timeout(1). It would be stopped (SIGTTOU) as soon as it changes the terminal.
func Background(f *os.File) bool {
	group, err := unix.IoctlGetUint32(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && int(group) != unix.Getpgrp()
}

// Width returns the width of the terminal f in columns, or 0 if f is none or does not know it.
func Width(f *os.File) int {
	return int(SizeOf(f).Columns)
}

// Size is the size of a terminal.
type Size struct{ Rows, Columns uint16 }

// SizeOf returns the size of the terminal f; zero: it is none.
func SizeOf(f *os.File) (s Size) {
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
		s = Size{size.Row, size.Col}
	}
	return s
}

// Resize changes the size of the terminal f. It does nothing if f is none.
func Resize(f *os.File, s Size) {
	_ = unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Columns})
}

// CopySize gives the terminal to the size of the terminal from. It does nothing if either is none.
func CopySize(to, from *os.File) {
	if s := SizeOf(from); s != (Size{}) {
		Resize(to, s)
	}
}

// Open returns a new pair of pseudo-terminals (pty(7)): controller is the side of the program that
// drives the terminal, user that of the program that runs on it.
func Open() (controller, user *os.File, err error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Open("/dev/ptmx", flags|unix.O_NONBLOCK, 0) // so that closing it ends a read
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		unix.Close(fd)
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, uintptr(flags))
	if errno != 0 {
		unix.Close(fd)
		return nil, nil, fmt.Errorf("open a terminal: %w", errno)
	}
	return os.NewFile(uintptr(fd), "terminal"), os.NewFile(peer, "terminal"), nil
}

// Raw switches a terminal to raw mode, in which it passes on all bytes unchanged (cfmakeraw(3)).
// restore switches back.
func Raw(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	t := *before
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &t); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }, nil
}
