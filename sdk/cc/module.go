package cc

import "unsafe"

// Module describes a congestion control to Weft.
type Module struct {
	Name  string // lower case, such as aimd
	About string // one sentence
	// Params are the keys of transport.wasm.params, at most 64.
	Params []Param
	ECN    bool // its packets may be marked by switches; a lab can change that
	INT    bool // switches write telemetry into its packets, for Hops; a lab can change that
	// Selective makes selective repeat the default recovery, and not go-back-N.
	Selective bool
}

// Kinds of Param, with how a lab writes them and what Values has.
const (
	Number  = "number"  // 0.5
	Share   = "share"   // 0.5 or 50%
	Gain    = "gain"    // 0.5, 50% or 1/256
	Integer = "integer" // 5
	Delay   = "time"    // 10us; in picoseconds
	Bytes   = "bytes"   // 64KB
	Rate    = "rate"    // 40Mbps, or 5Mbps/25Gbps to scale with the line; in b/s
	Flag    = "flag"    // true; 0 or 1
	Choice  = "choice"  // one of Words; its position, from 0
)

// Param is a parameter of a congestion control. Weft checks what a lab writes.
type Param struct {
	Name     string
	Kind     string   // Number, Share, ...
	Min, Max float64  // range, in the unit of Values; not of a Rate, a Flag or a Choice
	Default  string   // as a lab writes it
	About    string   // one sentence
	Source   string   // where the default is from; may be empty
	Zero     string   // a word that stands for 0, even outside the range, such as off; may be empty
	Words    []string // of a Choice
}

// Values are the values of the parameters, in the order of Module.Params.
type Values [64]float64

// Time returns the value of a Delay.
func (v *Values) Time(i int) Time { return Time(v[i]) }

// Int returns the value of an Integer, of Bytes or of a Choice.
func (v *Values) Int(i int) int64 { return int64(v[i]) }

// Flag returns the value of a Flag.
func (v *Values) Flag(i int) bool { return v[i] != 0 }

// served has the arguments of Serve.
var served struct {
	control  Controller
	starter  Starter
	sender   Sender
	notified Notified
	timed    Timed
	paced    Paced
	held     Held
	text     []byte
	state    unsafe.Pointer
	size     uintptr
}

// Serve makes a program a module with a congestion control. c points to the struct that Weft moves
// the state of connections in and out of. The result is only there so that Serve can be called
// where a variable is declared.
func Serve[T any, C interface {
	*T
	Controller
}](m Module, c C) bool {
	served.control, served.state, served.size = c, unsafe.Pointer(c), unsafe.Sizeof(*c)
	all := any(c)
	served.starter, _ = all.(Starter)
	served.sender, _ = all.(Sender)
	served.notified, _ = all.(Notified)
	served.timed, _ = all.(Timed)
	served.paced, _ = all.(Paced)
	served.held, _ = all.(Held)
	problem := mistaken(all, *c)
	if pointers(*c) {
		problem = "the struct of a connection contains pointers, slices, maps or strings; " +
			"expected plain values, because it is moved byte by byte"
	}
	served.text = m.json(problem)
	return true
}

// pointers reports whether values of a type contain pointers, by the second word of its description
// (internal/abi, Type.PtrBytes).
func pointers(v any) bool {
	return (*(**[2]uintptr)(unsafe.Pointer(&v)))[1] != 0
}

// json returns the description of the module, with what is wrong with it, if that is not empty. It
// is written by hand because package encoding/json would triple the size of a module.
func (m *Module) json(problem string) []byte {
	b := text(append([]byte(nil), `{"name":`...), m.Name)
	b = text(append(b, `,"about":`...), m.About)
	b = flag(b, "ecn", m.ECN)
	b = flag(b, "cnp", served.notified != nil)
	b = flag(b, "start", served.starter != nil)
	b = flag(b, "sent", served.sender != nil)
	b = flag(b, "int", m.INT)
	b = flag(b, "selective", m.Selective)
	if problem != "" {
		b = text(append(b, `,"error":`...), problem)
	}
	b = append(b, `,"params":[`...)
	for i, p := range m.Params {
		if i > 0 {
			b = append(b, ',')
		}
		b = text(append(b, `{"name":`...), p.Name)
		b = text(append(b, `,"kind":`...), p.Kind)
		b = number(append(b, `,"min":`...), p.Min)
		b = number(append(b, `,"max":`...), p.Max)
		b = text(append(b, `,"default":`...), p.Default)
		b = text(append(b, `,"about":`...), p.About)
		b = text(append(b, `,"source":`...), p.Source)
		b = text(append(b, `,"zero":`...), p.Zero)
		b = append(b, `,"words":[`...)
		for k, w := range p.Words {
			if k > 0 {
				b = append(b, ',')
			}
			b = text(b, w)
		}
		b = append(b, `]}`...)
	}
	return append(b, `]}`...)
}

// flag appends a member that is true or false.
func flag(b []byte, name string, v bool) []byte {
	b = append(text(append(b, ','), name), ':')
	if v {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}

// text appends a string.
func text(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// number appends a number as its bits in a string, so that no digit is lost.
func number(b []byte, v float64) []byte {
	const hex = "0123456789abcdef"
	bits := *(*uint64)(unsafe.Pointer(&v))
	b = append(b, '"', '0', 'x')
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hex[bits>>shift&15])
	}
	return append(b, '"')
}
