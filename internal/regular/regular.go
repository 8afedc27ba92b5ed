// Package regular opens files in a user's directories: Weft's cache, its results. Weft wrote them,
// but anything may have replaced them: a FIFO, whose open(2) blocks until somebody writes to it, a
// device, an endless file. Every function opens without blocking, refuses anything but regular
// files, and reads no more than the caller expects. OpenOutput and WriteOutput, for output files
// that a user names, also accept devices and pipes that somebody reads.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNotRegular rejects a directory, a FIFO, a socket or a device.
var ErrNotRegular = errors.New("it is not a regular file")

// ErrNoReader rejects a FIFO or a socket without a reader as an output.
var ErrNoReader = errors.New("it is a FIFO or a socket that nobody reads; name a file")

// ErrTooLarge rejects a file with more bytes than its reader expects.
var ErrTooLarge = errors.New("it is larger than any that weft writes")

// Open opens a file for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile for regular files.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return checked(os.OpenFile(path, flag|unix.O_NONBLOCK|unix.O_NOCTTY, perm))
}

// OpenOutput opens an output that a user named. It creates a missing file; flag decides whether it
// truncates an existing one or appends to it. Devices and pipes with a reader are accepted. A FIFO
// without a reader is refused: opened like a file, it would block or lose the output.
func OpenOutput(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOCTTY, 0o644)
	if errors.Is(err, unix.ENXIO) {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNoReader}
	}
	return f, err
}

// WriteOutput writes content to an output that a user named, replacing an existing file.
func WriteOutput(path string, content []byte) error {
	f, err := OpenOutput(path, os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Writable reports whether a regular file could be written at path, before long work whose result
// goes there. It changes nothing.
func Writable(path string) error {
	info, err := os.Stat(path)
	at, mode := path, uint32(unix.W_OK)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return errors.New("it is there, and no file")
	case err != nil:
		at, mode = filepath.Dir(path), unix.W_OK|unix.X_OK
		if info, err = os.Stat(at); err == nil && !info.IsDir() {
			err = unix.ENOTDIR
		}
	}
	if err == nil {
		err = unix.Access(at, mode)
	}
	if err != nil {
		return fmt.Errorf("cannot be written: %w", err)
	}
	return nil
}

// OpenIn is OpenFile for a file below dir.
func OpenIn(dir *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := checked(dir.OpenFile(name, flag|unix.O_NONBLOCK|unix.O_NOCTTY, perm))
	if err == nil {
		return f, nil
	}
	if to, failed := dir.Readlink(name); failed == nil &&
		(filepath.IsAbs(to) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), to))) {
		err = &fs.PathError{Op: "open", Path: name, Err: errOutside}
	}
	return nil, err
}

var errOutside = errors.New("it is a link out of its folder; copy the file that it leads to")

// Read returns the content of a file of at most the given number of bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return readAll(f, most)
}

// checked returns f if it is a regular file, and closes it otherwise.
func checked(f *os.File, err error) (*os.File, error) {
	switch {
	case errors.Is(err, unix.ENXIO): // a FIFO without a reader, or a socket, opened for writing
		return nil, &fs.PathError{Op: "open", Path: err.(*fs.PathError).Path, Err: ErrNotRegular}
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func readAll(f *os.File, most int64) (text []byte, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("%w: over %d bytes", ErrTooLarge, most)}
	}
	return text, err
}
