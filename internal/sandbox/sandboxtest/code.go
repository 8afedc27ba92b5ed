package sandboxtest

import (
	"encoding/binary"
	"math"
	"slices"
)

// Addresses in the mailbox: the first four are the answer of the module, the others come with an
// event.
const (
	Window    = Mail
	Rate      = Mail + 8
	Timer     = Mail + 16
	NotBefore = Mail + 24
	Now       = Mail + 32
	Args      = Mail + 40
)

// signed returns a number in signed LEB128.
func signed(v int64) (b []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Code joins instructions.
func Code(parts ...[]byte) []byte { return slices.Concat(parts...) }

// Op returns instructions by their opcodes, with operands that are bytes (Core Specification 2.0,
// section 5.4).
func Op(ops ...byte) []byte { return ops }

// I32 pushes a constant of 32 bits (i32.const).
func I32(v int) []byte { return append([]byte{0x41}, signed(int64(v))...) }

// Int pushes a constant of 64 bits (i64.const).
func Int(v int64) []byte { return append([]byte{0x42}, signed(v)...) }

// Float pushes a constant (f64.const).
func Float(v float64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{0x44}, math.Float64bits(v))
}

// Load pushes the 64-bit number at an address (i64.load). Here and below, 3 is the alignment as a
// power of two, and 0 the offset.
func Load(at int) []byte { return Code(I32(at), Op(0x29, 3, 0)) }

// StoreInt stores the integer that value pushes at an address (i64.store).
func StoreInt(at int, value []byte) []byte { return Code(I32(at), value, Op(0x37, 3, 0)) }

// StoreFloat stores the float64 that value pushes at an address (f64.store).
func StoreFloat(at int, value []byte) []byte { return Code(I32(at), value, Op(0x39, 3, 0)) }

// Answer writes a window, and a timer that never ends. The rate stays 0: none.
func Answer(window float64) []byte {
	return Code(StoreFloat(Window, Float(window)), StoreInt(Timer, Int(math.MaxInt64)))
}

// After runs code once the connection has had more than n events. It counts them in the state.
func After(n int64, code []byte) []byte {
	return Code(
		StoreInt(State, Code(Load(State), Int(1), Op(0x7c))),
		Load(State), Int(n), Op(0x55), // i64.gt_s
		Op(0x04, 0x40), code, Op(0x0b))
}

// Forever is a loop without an end.
func Forever() []byte { return Op(0x03, 0x40, 0x0c, 0x00, 0x0b) }

// Trap is the instruction unreachable.
func Trap() []byte { return Op(0x00) }

// Grow is a loop that asks for memory without an end.
func Grow() []byte { return Code(Op(0x03, 0x40), I32(16), Op(0x40, 0x00, 0x1a, 0x0c, 0x00, 0x0b)) }

// Fill is a loop that writes all memory without an end.
func Fill() []byte {
	return Code(Op(0x03, 0x40), I32(0), I32(0), I32(65536), Op(0xfc, 0x0b, 0x00, 0x0c, 0x00, 0x0b))
}

// Print writes a text of at most 256 bytes to standard error, in a Module that imports fd_write.
// Its parameters come from 64-bit numbers with a high half, which compiled code does not always
// clear.
func Print(text string) []byte {
	const at, vector = 768, 512
	data := append([]byte(text), make([]byte, 8)...)
	var code []byte
	for i := 0; i < len(text); i += 8 {
		code = append(code, StoreInt(at+i, Int(int64(binary.LittleEndian.Uint64(data[i:]))))...)
	}
	const call, drop = 0x10, 0x1a
	return Code(code, StoreInt(vector, Int(int64(len(text))<<32|at)),
		wrap(2), wrap(vector), wrap(1), wrap(vector+8), Op(call, 0, drop))
}

// wrap pushes a constant of 32 bits, cut from the 64 bits of a variable number (i32.wrap_i64).
func wrap(v int) []byte {
	const and, or = 0x83, 0x84
	return Code(Load(Now), Int(-1<<32), Op(or), Int(-1<<32), Op(and), Int(int64(v)), Op(or, 0xa7))
}

// Endless repeats code.
func Endless(code []byte) []byte { return Code(Op(0x03, 0x40), code, Op(0x0c, 0x00, 0x0b)) }

// Recurse calls weft_event, function 1, with its parameter.
func Recurse() []byte { return Op(0x20, 0x00, 0x10, 0x01) }
