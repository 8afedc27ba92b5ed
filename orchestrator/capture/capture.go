// Package capture writes what a fabric process copies of its frames (realtime.Capture) as pcapng: for weft capture, and for runs.
package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weft/orchestrator/pcapng"
	"weft/realtime"
)

// buffer is how many bytes of records may wait to be written, if the machine allows. Ours.
const buffer = 4 << 20

// Messages makes a pair of sockets that carry a record per message: theirs is for the fabric process, ours for Copy.
func Messages() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("capture: %w", err)
	}
	for _, fd := range fds {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer) // what the system allows
		}
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that reading can be ended
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, fmt.Errorf("capture: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "capture"), os.NewFile(uintptr(fds[1]), "capture"), nil
}

// Of is what is captured, as the file is to say.
type Of struct {
	Lab      string
	Name     string // of the node or the port
	Port     bool
	Dilation float64
	Snap     int    // the most bytes of a frame that are there; 0: all
	Program  string // that writes the file, with its version

	Count int64 // how many frames are enough; 0: all that come
	Live  bool  // somebody reads along: every frame is written at once
}

// maxRecord is the longest record of a captured frame.
const maxRecord = 128 << 10

// Frames wait for others until there are flushAt bytes of them, and are written together. A frame and its options always fit behind
// those, so that what is written are whole frames: a file that is never completed can be read as far as it goes.
const (
	flushAt = 64 << 10
	room    = flushAt + 2*maxRecord
)

// Copy writes the frames that come until enough have, or no more do; that the fabric process has ended, or that the
// deadline for reading has passed, is no error. It returns how many it wrote, and how many were lost because nobody
// read them in time.
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
	record := make([]byte, maxRecord)
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
		if err := file.Write(pcapng.Frame{At: c.At, Out: c.Out, Length: c.Length, Dropped: c.Dropped, Data: c.Frame}); err != nil {
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

// end is nil for what ends captures that are well.
func end(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}
