package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"weft/collectives/graph"
)

// Bounds of files. A file is read as a stream, so the first three bound time, not memory.
const (
	maxBytes = 64 << 30 // of a file, after decompression
	maxRatio = 200      // of decompression, once more than free bytes came out
	free     = 64 << 20
	maxLine  = 1 << 16
	maxValue = 16 << 20
	maxSpace = 1 << 20 // white space between values; JSON's decoder scans it again for each read
)

// HeadSize is the number of bytes at the start of a file by which its format is recognized.
const HeadSize = 1 << 15

// File is an open file. Reading it returns a graph.Error unless it succeeds or ends.
type File struct {
	*bufio.Reader
	io.Closer
	Head []byte // up to HeadSize bytes, which Read returns, too
}

// Open opens a file, which may be compressed with gzip. Errors call it shown. A byte order mark of
// UTF-8 is skipped, and text in UTF-16 is refused.
func Open(files fs.FS, name, shown string) (_ *File, err error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	raw := &counter{Reader: f, name: shown}
	r := bufio.NewReaderSize(raw, maxLine)
	magic, err := r.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z := &counter{name: shown, from: raw}
		if z.Reader, err = gzip.NewReader(r); err != nil {
			return nil, z.error(err)
		}
		r = bufio.NewReaderSize(z, maxLine)
	}
	if head, _ := r.Peek(4); len(head) == 4 {
		switch {
		case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
			_, _ = r.Discard(3) // peeked
		case bytes.HasPrefix(head, []byte("\xff\xfe")) && head[3] == 0,
			bytes.HasPrefix(head, []byte("\xfe\xff\x00")):
			return nil, graph.Errorf(shown, 1, "text in UTF-16; expected UTF-8, as iconv -f UTF-16 -t UTF-8 writes it")
		}
	}
	head, err := r.Peek(HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &File{r, f, head}, nil
}

// counter counts what is read from a file, and ends at a bound.
type counter struct {
	io.Reader
	name string
	n    int64
	from *counter // the compressed file; nil: this one is not compressed
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	bound := func(format string, most int) error { return &graph.Error{At: c.place(), Err: fmt.Errorf(format, most)} }
	switch {
	case c.n > maxBytes:
		return 0, bound("more than %d GiB; expected a smaller file", maxBytes>>30)
	case c.from != nil && c.n > free && c.n/maxRatio > c.from.n:
		return 0, bound("compressed more than %d times, as no trace is; decompress it to read it anyway", maxRatio)
	case err == nil || err == io.EOF: //nolint:errorlint // io.Reader returns it as it is
		return n, err
	}
	return n, c.error(err)
}

// error returns an error with the position in the file, which is one of the bytes after
// decompression.
func (c *counter) error(err error) error {
	var at *graph.Error
	switch {
	case errors.As(err, &at):
		return err
	case c.from != nil && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)):
		err = errors.New("a damaged gzip file: it ends early; copy or compress it again")
	case c.from != nil:
		err = fmt.Errorf("a damaged gzip file (%w); copy or compress it again", err)
	}
	return &graph.Error{At: c.place(), Err: err}
}

func (c *counter) place() string { return fmt.Sprintf("%s: byte %d", c.name, c.n) }

// Lines reads a text line by line.
type Lines struct {
	File   string
	Number int    // of the line that was read last, from 1
	Text   []byte // of that line, without its end; valid until Next
	r      *bufio.Reader
	err    error
}

// NewLines returns the lines of a file.
func NewLines(file string, r io.Reader) *Lines {
	return &Lines{File: file, r: bufio.NewReaderSize(r, maxLine)}
}

// Next reads the next line. It returns false at the end, and after an error.
func (l *Lines) Next() bool {
	if l.err != nil {
		return false
	}
	text, err := l.r.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(text) > 0 {
		err = nil
	}
	if err == nil || errors.Is(err, bufio.ErrBufferFull) {
		l.Number++
	}
	if l.err = err; err != nil {
		return false
	}
	l.Text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	return true
}

// Fields returns the words of the next line that is neither empty nor a comment that begins with #.
// It returns nil at the end, and after an error.
func (l *Lines) Fields() []string {
	for l.Next() {
		if f := strings.Fields(string(l.Text)); len(f) > 0 && f[0][0] != '#' {
			return f
		}
	}
	return nil
}

// FirstFields returns the words of the first such line of a head.
func FirstFields(head []byte) []string { return NewLines("", bytes.NewReader(head)).Fields() }

// Err returns the error that ended the text, or nil if it was read to its end.
func (l *Lines) Err() error {
	switch {
	case l.err == nil || errors.Is(l.err, io.EOF):
		return nil
	case errors.Is(l.err, bufio.ErrBufferFull):
		return l.Errorf("a line of more than %d bytes; expected shorter ones", maxLine)
	}
	return graph.At(fmt.Sprintf("%s:%d", l.File, max(1, l.Number)), l.err)
}

// Errorf returns an error at the line that was read last.
func (l *Lines) Errorf(format string, args ...any) error {
	return graph.Errorf(l.File, max(1, l.Number), format, args...)
}

// PlainJSON returns an error of a JSON decoder without words of Go.
func PlainJSON(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("a %s where another kind of value belongs", kind.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file ends early; expected the whole of it")
	}
	return err
}

// yamlLine matches the position in an error of yaml, which has a line for each error.
var yamlLine = regexp.MustCompile(`line ([0-9]+): ([^\n]*)`)

// fromParser matches errors of the library's parser, as opposed to its scanner.
var fromParser = regexp.MustCompile("^did not find expected (<|node content|'-'|key|',')")

// PlainYAML returns the line of an error of the YAML library, from 1, and its first message.
func PlainYAML(err error) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
		message = m[2]
	}
	if fromParser.MatchString(message) {
		line++ // the library counts these from 0
	}
	return max(1, line), message
}

// Values bounds what a decoder reads for one value.
type Values struct {
	file  string
	r     io.Reader
	n     int64
	bound int64
	space int // bytes of white space that were read last
}

// NewValues returns a reader for a decoder. Next must be called before each value.
func NewValues(file string, r io.Reader) *Values { return &Values{file: file, r: r, bound: maxValue} }

// Next begins a value, of up to 16 MiB.
func (v *Values) Next() { v.bound = v.n + maxValue }

// Read implements io.Reader.
func (v *Values) Read(b []byte) (int, error) {
	if v.n >= v.bound {
		return 0, &graph.Error{At: fmt.Sprintf("%s: byte %d", v.file, v.n),
			Err: fmt.Errorf("a value of more than %d MiB; expected shorter ones", maxValue>>20)}
	}
	n, err := v.r.Read(b[:min(int64(len(b)), v.bound-v.n)])
	v.n += int64(n)
	text := bytes.TrimRight(b[:n], " \t\r\n")
	if len(text) > 0 {
		v.space = 0
	}
	if v.space += n - len(text); v.space > maxSpace {
		return 0, &graph.Error{At: fmt.Sprintf("%s: byte %d", v.file, v.n),
			Err: fmt.Errorf("more than %d MiB of white space; remove it", maxSpace>>20)}
	}
	return n, err
}
