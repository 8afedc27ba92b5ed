// Package sandboxtest writes small WebAssembly modules for tests, byte by byte, so that tests need
// no compiler and know every instruction.
//
//	Module{Event: sandboxtest.Answer(window)}.Bytes()
//
// A Module has the interface of docs/module-abi.md at fixed addresses. Event is the body of its
// function weft_event: instructions of the binary format without the final end. The functions of
// code.go write the frequent ones.
//
// A zero Module is valid and answers no event, so that its window stays 0. Start reading at Module.
package sandboxtest

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Addresses in the memory of a Module.
const (
	Header = 16
	Mail   = 1024
	State  = 4096
	Text   = 8192
)

// Module is a module with the interface of a congestion control.
type Module struct {
	Event     []byte // body of weft_event; its parameter is local 0, and Locals follow
	Locals    []byte // types of its local variables: I64, F64
	Start     []byte // body of _initialize; nil: there is none
	Text      string // the description; "": one without parameters
	Pages     uint32 // of memory; 0: 1
	StateSize uint32 // 0: 64
	Version   uint32 // of the interface; 0: 1
	Globals   int    // variables of type i64
	Import    string // a function of WASI to import, as function 0
	// StartSection makes Start the start function, which nobody calls, and not _initialize.
	StartSection bool
	Patch        func(header []byte)
	Others       [][]byte // functions without parameters that nobody calls: locals, code and end
}

// Types of variables.
const (
	I64 = 0x7e
	F64 = 0x7c
)

// Plain is the description of a module without parameters.
const Plain = `{"name":"tiny","about":"A module for tests.","start":true,"sent":true,"params":[]}`

// Bytes returns the module in the binary format.
func (m Module) Bytes() []byte {
	if m.Text == "" {
		m.Text = Plain
	}
	header := make([]byte, 24)
	for i, v := range []uint32{max(m.Version, 1), Mail, State, or(m.StateSize, 64), Text, uint32(len(m.Text))} {
		binary.LittleEndian.PutUint32(header[4*i:], v)
	}
	if m.Patch != nil {
		m.Patch(header)
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	// () -> i32, (i32) -> (), () -> (), (i32, i32, i32, i32) -> i32
	b = section(b, 1, "\x04\x60\x00\x01\x7f\x60\x01\x7f\x00\x60\x00\x00\x60\x04\x7f\x7f\x7f\x7f\x01\x7f")
	base := 0
	if m.Import != "" {
		const from = "wasi_snapshot_preview1"
		kind := 1
		if m.Import == "fd_write" {
			kind = 3
		}
		b = section(b, 2, fmt.Sprintf("\x01%c%s%c%s\x00%c", len(from), from, len(m.Import), m.Import, kind))
		base = 1
	}
	exports := fmt.Sprintf("\x06memory\x02\x00\x07weft_cc\x00%c\x0aweft_event\x00%c", base, base+1)
	bodies := []string{body(nil, I32(Header)), body(m.Locals, m.Event)}
	funcs := "\x02\x00\x01"
	if m.Start != nil {
		funcs = "\x03\x00\x01\x02"
		bodies = append(bodies, body(nil, m.Start))
		if !m.StartSection {
			exports += fmt.Sprintf("\x0b_initialize\x00%c", base+2)
		}
	}
	funcs = string(unsigned(uint64(len(bodies)+len(m.Others)))) + funcs[1:] + strings.Repeat("\x02", len(m.Others))
	for _, other := range m.Others {
		bodies = append(bodies, string(unsigned(uint64(len(other))))+string(other))
	}
	b = section(b, 3, funcs)
	b = section(b, 5, "\x01\x00"+string(unsigned(uint64(or(m.Pages, 1)))))
	if m.Globals > 0 {
		globals := string(unsigned(uint64(m.Globals)))
		for range m.Globals {
			globals += "\x7e\x01\x42\x00\x0b"
		}
		b = section(b, 6, globals)
	}
	names := 3
	if m.Start != nil && !m.StartSection {
		names++
	}
	b = section(b, 7, string(rune(names))+exports)
	if m.StartSection {
		b = section(b, 8, string(rune(base+2)))
	}
	all := string(unsigned(uint64(len(bodies))))
	for _, one := range bodies {
		all += one
	}
	b = section(b, 10, all)
	return section(b, 11, "\x02"+segment(Header, string(header))+segment(Text, m.Text))
}

func or(v, standard uint32) uint32 {
	if v == 0 {
		return standard
	}
	return v
}

func section(b []byte, id byte, content string) []byte {
	return append(append(append(b, id), unsigned(uint64(len(content)))...), content...)
}

func segment(at int, content string) string {
	return "\x00" + string(I32(at)) + "\x0b" + string(unsigned(uint64(len(content)))) + content
}

func body(locals, code []byte) string {
	b := unsigned(uint64(len(locals)))
	for _, t := range locals {
		b = append(b, 1, t)
	}
	b = append(append(b, code...), 0x0b)
	return string(unsigned(uint64(len(b)))) + string(b)
}

func unsigned(v uint64) []byte { return binary.AppendUvarint(nil, v) }
