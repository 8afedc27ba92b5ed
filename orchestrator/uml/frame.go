package uml

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// kind is the type of a frame on the serial line.
type kind byte

// Frames from inside to outside, then from outside to inside.
const (
	kindHello  kind = 'h' // hello: init runs, and the line is raw
	kindOut    kind = 'o' // bytes of the program's standard output
	kindErr    kind = 'e' // bytes of its standard error
	kindExit   kind = 'x' // exit: the program has ended, and all its files are written
	kindOrder  kind = 'c' // order: what to run
	kindSignal kind = 's' // one byte: a signal for the program
)

func (k kind) known() bool {
	switch k {
	case kindHello, kindOut, kindErr, kindExit, kindOrder, kindSignal:
		return true
	}
	return false
}

// headerSize is the size of a frame's header in bytes. A frame on the line:
//
//	0      1      5       5+n
//	| kind | n    | body  |
//
// n is big endian.
const headerSize = 5

// maxBody is the largest body of a frame in bytes. Environments may be large; output comes in small
// pieces. Our own value.
const maxBody = 8 << 20

var errFrame = errors.New("the link from User Mode Linux carries something other than frames")

// readFrame reads one frame. io.EOF means that the line ended between frames.
func readFrame(r io.Reader) (kind, []byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	k, n := kind(header[0]), binary.BigEndian.Uint32(header[1:])
	if !k.known() || n > maxBody {
		return 0, nil, fmt.Errorf("%w: %x", errFrame, header)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return k, body, nil
}

// writer writes frames from several goroutines.
type writer struct {
	mu sync.Mutex // guards to
	to io.Writer
}

func (w *writer) frame(k kind, body []byte) error {
	if len(body) > maxBody {
		return fmt.Errorf("a frame of %d bytes; the limit is %d", len(body), maxBody)
	}
	b := make([]byte, headerSize, headerSize+len(body))
	b[0] = byte(k)
	binary.BigEndian.PutUint32(b[1:], uint32(len(body)))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(append(b, body...))
	return err
}

func (w *writer) value(k kind, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.frame(k, b)
}

// hello is init's first message.
type hello struct {
	Release string `json:"release"` // as uname -r
}

// order tells init what to run. Arguments may contain any bytes, which JSON strings cannot.
type order struct {
	Path    []byte   `json:"path"`
	Args    [][]byte `json:"args"` // including the program's name
	Env     [][]byte `json:"env"`
	Dir     []byte   `json:"dir"`
	Host    string   `json:"host"`    // host name
	Modules string   `json:"modules"` // directory of modules; empty loads none
	Clock   int64    `json:"clock"`   // nanoseconds since 1970
}

// exit describes how the program ended.
type exit struct {
	Code  int    `json:"code"`            // 128 plus the signal's number after a signal
	Error string `json:"error,omitempty"` // why it could not be started
}

func texts(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func strs(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}
