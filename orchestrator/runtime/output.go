package runtime

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// maxTail is how much of a process's last words is kept, in bytes.
const maxTail = 8 << 10

// Tail is a writer that keeps the end of what is written to it, at most 8 KiB, and passes whole lines on.
type Tail struct {
	name string
	tee  *Lines

	mu   sync.Mutex // guards what follows
	text []byte
	line []byte // not ended yet
}

// NewTail returns the tail of the process with this name. tee may be nil.
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

// String returns what is kept, without spaces around it.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// Lines is a writer shared by all processes of a lab, line by line.
type Lines struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

// NewLines returns the shared form of w; nil for nil.
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
