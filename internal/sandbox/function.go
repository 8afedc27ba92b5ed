package sandbox

import (
	"errors"
	"fmt"
	"math"
)

// Instructions that meter reads or writes.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opLoadFirst    = 0x28
	opF32Store     = 0x38
	opF64Store     = 0x39
	opStoreLast    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opNumericFirst = 0x45
	opI32Eq        = 0x46
	opI64LtS       = 0x53
	opF32Ne        = 0x5c
	opF64Ne        = 0x62
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64ShrU      = 0x88
	opF32Copysign  = 0x98
	opF64Copysign  = 0xa6
	opI64ExtendU   = 0xad
	opI32FromF32   = 0xbc
	opI64FromF64   = 0xbd
	opNumericLast  = 0xc4
	opBulk         = 0xfc
)

// Instructions after opBulk.
const (
	bulkTruncLast  = 7
	bulkMemoryInit = 8
	bulkDataDrop   = 9
	bulkMemoryCopy = 10
	bulkMemoryFill = 11
)

// Cost of code and of operations on memory.
const (
	bytesPerFuel   = 256 // of code, besides 1 for each function and iteration
	bulkShift      = 6   // 64 bytes of memory
	growFuel       = 1000
	refusedGrowth  = math.MinInt64 // plus the number of pages: the counter after memory was refused
	scratchI64     = 0             // locals that rewrite adds, after those of the function
	scratchI32     = 1
	scratchF32     = 2
	scratchF64     = 3
	scratchLocals  = 4
	voidBlock      = 0x40
	canonicalNaN32 = "\x00\x00\xc0\x7f"
	canonicalNaN64 = "\x00\x00\x00\x00\x00\x00\xf8\x7f"
)

// function rewrites functions, one after another.
type function struct {
	led     bool  // the first instruction that branches is a loop, whose charge covers the function
	loops   []int // size of each loop in bytes, in the order of their beginnings
	out     []byte
	locals  uint32 // with parameters; the scratch locals follow
	counter uint32 // index of the global

	branches int // blocks and branches of the result
	targets  int // of its tables of branches
}

// Weights of function.work.
const (
	workOfLocal      = 64  // in bytes of code that take as long
	workOfCode       = 256 // in branches that take as long
	targetsPerBranch = 4
)

// work returns what it takes wazero to compile the function that rewrite returned last: in units of
// 1 to 15 ns, 2.5 ns for Go's. The time grows with the product of code and branches; TestWork has
// the functions that the constants were measured with.
func (f *function) work() int64 {
	size := len(f.out) + workOfLocal*int(f.locals+1)
	return int64(size) * int64(workOfCode+f.branches+f.targets/targetsPerBranch)
}

// rewrite returns the body of a function with a number of parameters, whose counter is a global.
// The result is valid until the next call.
func (f *function) rewrite(body []byte, params int, counter uint32) ([]byte, error) {
	r := &reader{b: body}
	groups := r.count()
	var locals uint64
	for range groups {
		locals += uint64(r.u32())
		r.byte()
	}
	if locals > maxLocals {
		return nil, fmt.Errorf("%d local variables are more than %d", locals, maxLocals)
	}
	if r.err != nil {
		return nil, r.err
	}
	f.locals, f.counter = uint32(params)+uint32(locals), counter
	f.loops = f.loops[:0]
	begin := r.at
	if err := f.scan(r, f.measure(r)); err != nil {
		return nil, err
	}

	f.led = f.led && len(body)-f.loops[0] < bytesPerFuel // else code beside the loop would be free
	header := &reader{b: body}
	header.count()
	f.out = appendU32(f.out[:0], uint32(groups)+scratchLocals)
	f.out = append(f.out, body[header.at:begin]...)
	f.out = append(f.out, 1, 0x7e, 1, 0x7f, 1, 0x7d, 1, 0x7c) // a local of each type, as scratch names them
	if !f.led {
		f.charge(len(body))
	}
	r.at = begin
	if err := f.scan(r, f.write(r)); err != nil {
		return nil, err
	}
	return f.out, nil
}

// visitor is called for every instruction, which has the bytes from begin to the position of the
// reader.
type visitor func(op byte, sub uint32, begin int)

// measure returns a visitor that fills loops, branches and targets.
func (f *function) measure(r *reader) visitor {
	f.led, f.branches, f.targets = false, 1, 0
	branched := false
	open := []int{-1} // loops that the open blocks are, by index; -1: another block
	return func(op byte, sub uint32, _ int) {
		if !branched && (op <= opCallIndirect && op != opUnreachable) {
			branched, f.led = true, op == opLoop
		}
		switch op {
		case opBlock, opIf:
			f.branches++
			open = append(open, -1)
		case opBr, opBrIf, opBulk:
			f.branches++
		case opMemoryGrow:
			f.branches += 2
		case opBrTable:
			f.targets += int(sub)
		case opLoop:
			f.branches += 2
			open = append(open, len(f.loops))
			f.loops = append(f.loops, -r.at)
		case opEnd:
			if i := open[len(open)-1]; i >= 0 {
				f.loops[i] += r.at
			}
			open = open[:len(open)-1]
		}
	}
}

// write returns a visitor that appends the instructions to out, with what is added to them.
func (f *function) write(r *reader) visitor {
	loop := 0
	return func(op byte, sub uint32, begin int) {
		switch {
		case op == opF32Store || op == opI32FromF32 || op == opF32Copysign:
			f.canonical(scratchF32, opF32Const, canonicalNaN32, opF32Ne)
		case op == opF64Store || op == opI64FromF64 || op == opF64Copysign:
			f.canonical(scratchF64, opF64Const, canonicalNaN64, opF64Ne)
		case op == opMemoryGrow:
			f.local(opLocalTee, scratchI32)
			f.charge(growFuel * bytesPerFuel)
			f.local(opLocalGet, scratchI32)
			f.out = append(f.out, opI64ExtendU)
			f.local(opLocalSet, scratchI64)
		case op == opBulk && (sub == bulkMemoryInit || sub == bulkMemoryCopy || sub == bulkMemoryFill):
			f.chargeBulk()
		}
		f.out = append(f.out, r.b[begin:r.at]...)
		switch op {
		case opLoop:
			f.charge(f.loops[loop])
			loop++
		case opMemoryGrow:
			f.trapIfRefused()
		}
	}
}

// trapIfRefused appends code that traps if the top of the stack says that memory did not grow. The
// counter is refusedGrowth then, plus the number of pages that the module asked for: scratchI64.
func (f *function) trapIfRefused() {
	f.local(opLocalTee, scratchI32)
	f.local(opLocalGet, scratchI32)
	f.out = append(f.out, opI32Const, 0x7f, opI32Eq, opIf, voidBlock) // 0x7f: -1
	f.local(opLocalGet, scratchI64)
	f.out = appendS64(append(f.out, opI64Const), refusedGrowth)
	f.out = appendU32(append(f.out, opI64Add, opGlobalSet), f.counter)
	f.out = append(f.out, opUnreachable, opEnd)
}

// refusedPages returns the number of pages that a module asked for in vain, if that is why the
// counter has this value.
func refusedPages(counter int64) (pages uint64, refused bool) {
	pages = uint64(counter) - 1<<63
	return pages, pages <= math.MaxUint32
}

// charge appends code that subtracts the cost of a number of bytes of code.
func (f *function) charge(bytes int) {
	f.out = appendU32(append(f.out, opGlobalGet), f.counter)
	f.out = appendS64(append(f.out, opI64Const), int64(1+bytes/bytesPerFuel))
	f.spend()
}

// chargeBulk appends code that subtracts the cost of an operation on memory. Its number of bytes is
// on top of the stack, and stays there.
func (f *function) chargeBulk() {
	f.local(opLocalTee, scratchI32)
	f.out = appendU32(append(f.out, opGlobalGet), f.counter)
	f.local(opLocalGet, scratchI32)
	f.out = append(f.out, opI64ExtendU, opI64Const, bulkShift, opI64ShrU)
	f.spend()
}

// spend appends code that subtracts the top of the stack from the value below it, which was the
// counter, and traps if the counter is below zero then.
func (f *function) spend() {
	f.out = append(f.out, opI64Sub)
	f.local(opLocalTee, scratchI64)
	f.out = appendU32(append(f.out, opGlobalSet), f.counter)
	f.local(opLocalGet, scratchI64)
	f.out = append(f.out, opI64Const, 0, opI64LtS, opIf, voidBlock, opUnreachable, opEnd)
}

// canonical appends code that replaces a NaN on top of the stack by the canonical one.
func (f *function) canonical(scratch uint32, constant byte, nan string, ne byte) {
	f.local(opLocalSet, scratch)
	f.out = append(append(f.out, constant), nan...)
	f.local(opLocalGet, scratch)
	f.local(opLocalGet, scratch)
	f.local(opLocalGet, scratch)
	f.out = append(f.out, ne, opSelect)
}

func (f *function) local(op byte, scratch uint32) {
	f.out = appendU32(append(f.out, op), f.locals+scratch)
}

// scan reads the instructions of a body up to its end and calls visit for each.
func (f *function) scan(r *reader, visit visitor) error {
	depth := 1
	for depth > 0 && r.err == nil {
		begin := r.at
		op := r.byte()
		sub := f.operands(r, op)
		switch op {
		case opBlock, opLoop, opIf:
			if depth++; depth > maxNesting {
				return fmt.Errorf("more than %d nested blocks", maxNesting)
			}
		case opEnd:
			depth--
		}
		if r.err == nil {
			visit(op, sub, begin)
		}
	}
	if r.err == nil && r.left() > 0 {
		r.fail(errors.New("code follows the end"))
	}
	return r.err
}

// operands reads what follows an instruction. It returns the second half of one with two, and the
// number of targets of a table of branches.
func (f *function) operands(r *reader, op byte) (sub uint32) {
	switch {
	case op <= 0x01, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect:
	case op == opBlock, op == opLoop, op == opIf:
		r.skip(5)
	case op == opBr, op == opBrIf, op == opCall, op == opMemorySize, op == opMemoryGrow:
		r.u32()
	case op == opCallIndirect:
		r.u32()
		r.u32()
	case op == opBrTable:
		sub = uint32(r.count())
		for range sub {
			r.u32()
		}
		r.u32()
	case op == opSelectTyped:
		r.bytes(uint32(r.count()))
	case op >= opLocalGet && op <= opLocalTee:
		if i := r.u32(); i >= f.locals {
			r.fail(fmt.Errorf("local variable %d of %d", i, f.locals))
		}
	case op == opGlobalGet, op == opGlobalSet:
		if i := r.u32(); i >= f.counter {
			r.fail(fmt.Errorf("global variable %d of %d", i, f.counter))
		}
	case op >= opLoadFirst && op <= opStoreLast:
		r.u32()
		r.u32()
	case op == opI32Const:
		r.skip(5)
	case op == opI64Const:
		r.skip(10)
	case op == opF32Const:
		r.bytes(4)
	case op == opF64Const:
		r.bytes(8)
	case op >= opNumericFirst && op <= opNumericLast:
	case op == opBulk:
		sub = f.bulk(r)
	default:
		r.fail(fmt.Errorf("instruction %#x is not supported: no vectors, references, threads, exceptions or tail calls",
			op))
	}
	return sub
}

// bulk reads the rest of an instruction that begins with opBulk.
func (f *function) bulk(r *reader) (sub uint32) {
	sub = r.u32()
	switch {
	case sub <= bulkTruncLast:
	case sub == bulkDataDrop, sub == bulkMemoryFill:
		r.u32()
	case sub == bulkMemoryInit, sub == bulkMemoryCopy:
		r.u32()
		r.u32()
	default:
		r.fail(fmt.Errorf("instruction 0xfc %d is not supported: tables do not change", sub))
	}
	return sub
}
