// Package capture writes the frames that a fabric process copies (realtime.Capture) to a pcapng
// file, for weft capture and for runs.
package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weft/internal/sockbuf"
	"weft/orchestrator/pcapng"
	"weft/realtime"
)

// buffer is the requested socket buffer for records that wait to be written, in bytes. Our own
// value.
const buffer = 4 << 20

// Messages returns a socket pair that carries one record per message: theirs is for the fabric
// process, ours for Copy.
func Messages() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("capture: %w", err)
	}
	for _, fd := range fds {
		_ = sockbuf.Send(fd, buffer) // up to the system's limit
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that a deadline can end a read
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, fmt.Errorf("capture: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "capture"), os.NewFile(uintptr(fds[1]), "capture"), nil
}

// Of describes the capture in the file's header.
type Of struct {
	Lab      string
	Name     string // of the node or the port
	Port     bool
	Dilation float64
	Snap     int    // most bytes kept of each frame; 0: all
	Program  string // name and version of the writing program

	Count int64 // stop after this many frames; 0: no limit
	Live  bool  // write every frame at once, for a reader that follows
}

// MaxRecord is the longest record of a captured frame, in bytes.
const MaxRecord = 128 << 10

// Frames are collected up to flushAt bytes and written together. The buffer has room for one more
// frame and its options, so that only whole frames are written and an unfinished file can be read
// up to its end.
const (
	flushAt = 64 << 10
	room    = flushAt + 2*MaxRecord
)

// Copy writes frames until it has enough or no more arrive. The end of the fabric process and a
// read deadline are no errors. It returns the number of written frames, and of frames that were
// lost because nobody read them in time.
func Copy(w io.Writer, from *os.File, of Of) (n, lost int64, err error) {
	kind := "node"
	if of.Port {
		kind = "port"
	}
	out := bufio.NewWriterSize(w, room)
	defer func() {
		if ferr := out.Flush(); err == nil {
			err = ferr
		}
	}()
	file, err := pcapng.NewWriter(out, pcapng.Interface{
		Name: of.Name, Description: fmt.Sprintf("%s %s of lab %s", kind, of.Name, of.Lab), Snap: of.Snap,
		Comment: fmt.Sprintf("times are lab time; the lab ran %g times slower", of.Dilation), Program: of.Program,
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return 0, 0, err
	}
	record := make([]byte, MaxRecord)
	for of.Count == 0 || n < of.Count {
		size, err := from.Read(record)
		if err != nil || size == 0 {
			return n, lost, end(err)
		}
		c, err := realtime.ParseCaptured(record[:size])
		if err != nil {
			return n, lost, err
		}
		lost += int64(c.Dropped)
		frame := pcapng.Frame{At: c.At, Out: c.Out, Length: c.Length, Dropped: c.Dropped, Data: c.Frame}
		if err := file.Write(frame); err != nil {
			return n, lost, err
		}
		n++
		if of.Live || out.Buffered() >= flushAt {
			if err := out.Flush(); err != nil {
				return n, lost, err
			}
		}
	}
	return n, lost, nil
}

// end returns nil for the regular ends of a capture.
func end(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}
