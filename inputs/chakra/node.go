package chakra

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"weft/internal/clip"
)

// maxMessage is the maximum size of a node in bytes, and maxName that of the name of its group.
const (
	maxMessage = 1 << 20
	maxName    = 1 << 10
)

// node is a node with what of it is used. Its slices are reused for the next one.
type node struct {
	id       uint64
	kind     int
	duration uint64 // microseconds
	deps     []uint64
	name     []byte
	numbers  map[string]int64
	group    string
	cpu      bool
	unused   []string // attributes
	strange  []int    // numbers of fields that no node of the format has
	once     map[int]bool
	names    map[string]bool // of attributes so far
}

// reader reads the messages of a file.
type reader struct {
	r   *bufio.Reader
	buf []byte
}

func newReader(r io.Reader) *reader { return &reader{r: bufio.NewReaderSize(r, 1<<16)} }

// next returns the next message, which is valid until the next call, or io.EOF.
func (r *reader) next() ([]byte, error) {
	n, err := binary.ReadUvarint(r.r)
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, err
	case n > maxMessage:
		return nil, fmt.Errorf("a message of %d bytes; expected at most %d", n, maxMessage)
	}
	if uint64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("the file ends within a message of %d bytes", n)
		}
		return nil, err
	}
	return r.buf, nil
}

var errWire = errors.New("not a protobuf message of this format")

// fields calls f for each field of a message: number is that of varint and fixed fields, and data
// that of others.
func fields(b []byte, f func(field int, number uint64, data []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		var number uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(b)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(b)
			number = uint64(x)
		case protowire.Fixed64Type:
			number, n = protowire.ConsumeFixed64(b)
		default:
			return errWire
		}
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if err := f(int(field), number, data); err != nil {
			return err
		}
	}
	return nil
}

// decode reads a node.
func (x *node) decode(b []byte) error {
	x.id, x.kind, x.duration, x.deps, x.name, x.group, x.cpu = 0, 0, 0, x.deps[:0], x.name[:0], "", false
	x.unused, x.strange = x.unused[:0], x.strange[:0]
	clear(x.numbers)
	if x.once == nil {
		x.once, x.names, x.numbers = map[int]bool{}, map[string]bool{}, map[string]int64{}
	}
	clear(x.once)
	clear(x.names)
	return fields(b, func(field int, number uint64, data []byte) error {
		if field == nodeID || field == nodeName || field == nodeType || field == nodeDuration {
			if x.once[field] {
				return fmt.Errorf("field %d is there twice", field)
			}
			if (data != nil) != (field == nodeName) {
				return errWire
			}
			x.once[field] = true
		}
		switch field {
		case nodeID:
			x.id = number
		case nodeName:
			x.name = append(x.name[:0], data...)
		case nodeType:
			x.kind = int(min(number, 1<<20))
		case nodeDuration:
			x.duration = number
		case nodeCtrlDeps, nodeDataDeps:
			if data == nil {
				x.deps = append(x.deps, number)
				return nil
			}
			for len(data) > 0 { // packed
				id, n := protowire.ConsumeVarint(data)
				if n < 0 {
					return errWire
				}
				x.deps, data = append(x.deps, id), data[n:]
			}
		case nodeAttr:
			return x.attribute(data)
		default:
			if !irrelevant[field] {
				x.strange = append(x.strange, field)
			}
		}
		return nil
	})
}

// checkMetadata returns an error unless b is the message at the beginning of a trace: a node in its
// place would be lost.
func checkMetadata(b []byte) error {
	return fields(b, func(field int, _ uint64, data []byte) error {
		if data == nil || field != metaVersion && field != metaAttr {
			return errors.New("the trace begins with another message; expected its metadata, and then its nodes")
		}
		return nil
	})
}

// attribute reads an attribute of a node.
func (x *node) attribute(b []byte) error {
	var name, text []byte
	var value int64
	whole := false
	err := fields(b, func(field int, number uint64, data []byte) error {
		switch {
		case field == attrName:
			name = data
		case field == attrString:
			text = data
		case field == attrInt32 || field == attrInt64 || field == attrUint32 || field == attrUint64 ||
			field == attrBool || fixed[field]:
			value, whole = int64(number), data == nil
		case signed[field]:
			value, whole = protowire.DecodeZigZag(number), data == nil
		}
		return nil
	})
	if err != nil {
		return err
	}
	if x.names[string(name)] {
		return fmt.Errorf("attribute %s is there twice", clip.Text(string(name)))
	}
	x.names[string(name)] = true
	switch string(name) {
	case pgName:
		if len(text) > maxName {
			return fmt.Errorf("%s of %d bytes; expected at most %d", pgName, len(text), maxName)
		}
		x.group = string(text)
	case isCPUOp:
		x.cpu = value != 0
	case stream, commType, commSize, commSrc, commDst, commTag, commRoot, numOps:
		if !whole {
			return fmt.Errorf("attribute %s has no whole number", clip.Text(string(name)))
		}
		x.numbers[string(name)] = value
	default:
		if !meaningless[string(name)] {
			x.unused = append(x.unused, string(name))
		}
	}
	return err
}
