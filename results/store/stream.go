package store

import (
	"bufio"
	"os"
	"path/filepath"
)

// stream is a data file that is written through a buffer from beginning to end.
type stream struct {
	file *os.File
	buf  *bufio.Writer
	line []byte // room for the line being built
}

func create(dir, name string) (*stream, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &stream{file: f, buf: bufio.NewWriterSize(f, 64<<10)}, nil
}

// Write implements io.Writer for package csv.
func (s *stream) Write(b []byte) (int, error) { return s.buf.Write(b) }

func (s *stream) write(b []byte) error {
	_, err := s.buf.Write(b)
	return err
}

// close flushes, synchronises and closes the file, and returns the first error of the three.
func (s *stream) close() error {
	err := s.buf.Flush()
	if serr := s.file.Sync(); err == nil {
		err = serr
	}
	if cerr := s.file.Close(); err == nil {
		err = cerr
	}
	return err
}
