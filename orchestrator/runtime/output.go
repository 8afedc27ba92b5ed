package runtime

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// maxTail is the number of bytes of a process's output that a Tail keeps.
const maxTail = 8 << 10

// Tail is a writer that keeps the last 8 KiB written to it, and passes whole lines on.
type Tail struct {
	name string
	tee  *Lines

	mu   sync.Mutex // guards what follows
	text []byte
	line []byte // the unfinished last line
}

// NewTail returns the tail of a process's output. tee may be nil.
func NewTail(name string, tee *Lines) *Tail { return &Tail{name: name, tee: tee} }

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - maxTail; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	if t.tee == nil {
		return len(p), nil
	}
	t.line = append(t.line, p...)
	for {
		i := bytes.IndexByte(t.line, '\n')
		if i < 0 && len(t.line) < maxTail {
			return len(p), nil
		}
		if i < 0 {
			i = len(t.line) - 1
		}
		t.tee.write(t.name, t.line[:i+1])
		t.line = append(t.line[:0], t.line[i+1:]...)
	}
}

// String returns the kept text without surrounding white space.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// Lines is a writer that all processes of a lab share, line by line.
type Lines struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

// NewLines returns a Lines that writes to w, or nil if w is nil.
func NewLines(w io.Writer) *Lines {
	if w == nil {
		return nil
	}
	return &Lines{w: w}
}

func (l *Lines) write(name string, line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "%s: %s", name, line) // a full disk must not end the lab
}
