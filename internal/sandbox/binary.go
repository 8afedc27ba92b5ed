package sandbox

import (
	"errors"
	"fmt"
)

// errShort is the error of a module that ends in the middle of something.
var errShort = errors.New("the module ends too early")

// reader reads the binary format of WebAssembly (Core Specification 2.0, section 5). After an error
// it returns zeros.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.at = len(r.b)
}

// left returns the number of bytes that were not read.
func (r *reader) left() int { return len(r.b) - r.at }

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail(errShort)
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

// bytes returns the next n bytes.
func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.fail(errShort)
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.fail(errors.New("a number has more than 32 bits"))
	return 0
}

// skip passes a LEB128 number of at most the given number of bytes.
func (r *reader) skip(most int) {
	for range most {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail(fmt.Errorf("a number has more than %d bytes", most))
}

// count reads the length of a vector, whose items have a byte or more each.
func (r *reader) count() int {
	n := r.u32()
	if uint64(n) > uint64(r.left()) {
		r.fail(errShort)
		return 0
	}
	return int(n)
}

// name reads a name.
func (r *reader) name() string { return string(r.bytes(r.u32())) }

// limits reads the limits of a table or memory. most is -1 if there is no maximum.
func (r *reader) limits() (least uint32, most int64) {
	flag := r.byte()
	least, most = r.u32(), -1
	if flag&1 == 1 {
		most = int64(r.u32())
	}
	if flag > 1 {
		r.fail(errors.New("memory is shared or has 64-bit addresses; expected neither"))
	}
	return least, most
}

// appendU32 appends an unsigned LEB128 number.
func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendS64 appends a signed LEB128 number.
func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// appendSection appends a section with its length.
func appendSection(b []byte, id byte, content []byte) []byte {
	return append(appendU32(append(b, id), uint32(len(content))), content...)
}
