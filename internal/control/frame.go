package control

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limits of one message. Our own values: a thousand times what the largest lab sends, and small
// enough that a broken peer cannot exhaust the machine.
const (
	MaxBody = 64 << 20 // bytes of body
	MaxKind = 64       // bytes of kind
	MaxFDs  = 64       // descriptors with one message; the kernel's bound is 253 (SCM_MAX_FD)
)

// ErrTooLarge means that a message exceeds a limit. Send returns it before it sends anything.
var ErrTooLarge = errors.New("control: message too large")

// Message is one message. Kind determines how to read Body, which may be empty.
type Message struct {
	Kind string
	Body json.RawMessage
}

// Decode decodes the body into v, a pointer. Both ends are the same program, so a field that v does
// not have is an error.
func (m Message) Decode(v any) error {
	d := json.NewDecoder(bytes.NewReader(m.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("control: body of %q: %w", m.Kind, err)
	}
	return nil
}

// headerSize is the size of a frame's header in bytes. A frame on the wire:
//
//	0      4        5       6         8      8+k    8+k+n
//	| n    | k      | fds   | "Wf"    | kind | body |
//
// n is the length of the body, big endian; k is the length of the kind; fds is the number of
// descriptors, which travel with the first byte.
const headerSize = 8

// mark ends every header, so that a reader that lost its position notices at once.
const mark = "Wf"

// appendFrame appends the wire form of m with the number of its descriptors.
func appendFrame(b []byte, m Message, fds int) ([]byte, error) {
	switch {
	case len(m.Body) > MaxBody:
		return nil, fmt.Errorf("%w: body of %q has %d bytes, the limit is %d", ErrTooLarge, m.Kind, len(m.Body),
			MaxBody)
	case len(m.Kind) > MaxKind:
		return nil, fmt.Errorf("%w: kind has %d bytes, the limit is %d", ErrTooLarge, len(m.Kind), MaxKind)
	case fds > MaxFDs:
		return nil, fmt.Errorf("%w: %q with %d descriptors, the limit is %d", ErrTooLarge, m.Kind, fds, MaxFDs)
	case m.Kind == "":
		return nil, errors.New("control: a message needs a kind")
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Body)))
	b = append(b, byte(len(m.Kind)), byte(fds))
	b = append(b, mark...)
	b = append(b, m.Kind...)
	return append(b, m.Body...), nil
}

// readFrame reads one frame, whose body has at most the given number of bytes: the message and the
// announced number of descriptors. The error is io.EOF only if the stream ended between two frames.
func readFrame(r io.Reader, most int) (m Message, fds int, err error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Message{}, 0, err
	}
	size, kind, fds := int64(binary.BigEndian.Uint32(h[:])), int64(h[4]), int(h[5])
	switch {
	case string(h[6:]) != mark:
		return Message{}, 0, fmt.Errorf("control: not a message header: % x", h)
	case size > int64(most) || kind > MaxKind || fds > MaxFDs:
		return Message{}, 0, fmt.Errorf("%w: announced body %d, kind %d, descriptors %d", ErrTooLarge, size, kind, fds)
	case kind == 0:
		return Message{}, 0, errors.New("control: a message without a kind")
	}
	var buf bytes.Buffer // grows with the received bytes, not with the announced size
	if _, err := io.CopyN(&buf, r, kind+size); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Message{}, 0, fmt.Errorf("control: message cut short: %w", err)
	}
	m.Kind = string(buf.Next(int(kind)))
	if size > 0 {
		m.Body = buf.Bytes()
	}
	return m, fds, nil
}
