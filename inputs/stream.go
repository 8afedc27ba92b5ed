package inputs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Bounds of files. A file is read as a stream, so these bound time, not memory.
const (
	maxBytes = 64 << 30 // of a file, after decompression
	maxRatio = 200      // of decompression, once more than free bytes came out
	free     = 64 << 20
)

var errTooLarge = errors.New("the file has more than 64 GiB")

// counter counts what is read from a file, and ends at a bound.
type counter struct {
	io.Reader
	n    int64
	from *counter // the compressed file; nil: this one is not compressed
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	switch {
	case c.n > maxBytes:
		return 0, errTooLarge
	case c.from != nil && c.n > free && c.n/maxRatio > c.from.n:
		return 0, fmt.Errorf("it is compressed more than %d times, as no trace is", maxRatio)
	}
	return n, err
}

// opened is a file with its first bytes.
type opened struct {
	io.Reader
	io.Closer
	head []byte
}

// open opens a file, which may be compressed with gzip.
func open(files fs.FS, name string) (_ *opened, err error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(&fs.PathError{Op: "read", Path: name, Err: err}, f.Close())
		}
	}()
	raw := &counter{Reader: f}
	r := bufio.NewReaderSize(raw, 1<<16)
	magic, err := r.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = bufio.NewReaderSize(&counter{Reader: z, from: raw}, 1<<16)
	}
	head, err := r.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &opened{r, f, head}, nil
}
