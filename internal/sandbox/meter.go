package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"weft/internal/clip"
)

// Bounds of a module. Our own choice: a Go program that imports fmt has 2.6 MB, 1,800 functions,
// one of 29 KB and one with 550 nested blocks, at most 22 local variables and 6 parameters, and
// takes 950,000,000 units of work.
const (
	MaxModule   = 4 << 20 // bytes
	maxBody     = 64 << 10
	maxNesting  = 4096
	maxLocals   = 1024          // of a function, parameters not counted
	maxParams   = 32            // of a function or block; results likewise
	maxWork     = 1_500_000_000 // of a compiler: see function.work
	maxTable    = 1 << 16
	maxTables   = 4
	maxDeclared = 1 << 14 // types, functions, globals and exports, each
)

// sections of a module, in the order in which they must come.
const (
	custom = iota
	types
	imports
	functions
	tables
	memories
	globals
	exports
	start
	elements
	code
	data
	dataCount
)

// order returns the position of a section among the others: the data count precedes the code.
func order(id byte) int {
	switch id {
	case dataCount:
		return 2*code - 1
	default:
		return 2 * int(id)
	}
}

// fuelName is the export of the counter. The dot keeps it apart from what languages export.
const fuelName = "weft.fuel"

// startName is the export of a module's start function, whose section is dropped: as an ordinary
// function it has errors with a reason, because the counter can be read then.
const startName = "weft.start"

// module is meter's state of the module that it rewrites.
type module struct {
	params   []int // parameters of each type
	funcs    []uint32
	imported int
	globals  uint32 // also the index of the counter
	fuel     int64  // initial value of the counter
	memories int
	added    bool  // the counter is defined
	exported bool  // the counter is exported
	start    int64 // index of the start function; -1: there is none
}

// meter returns a module with a counter: an exported global variable, initially fuel, from which
// every function and every iteration of a loop subtracts 1 and another 1 for each 256 bytes of its
// code, and operations on memory 1 for each 64 bytes. Below zero the module traps. A function that
// begins with a loop, as those of Go do, pays for the loop only. Bits of NaNs are canonical where
// the module can see them. Custom sections are dropped.
//
// meter checks what it needs to know and bounds what a module declares. wazero validates the rest.
func meter(binary []byte, fuel int64) ([]byte, error) {
	if len(binary) > MaxModule {
		return nil, fmt.Errorf("%d bytes are more than %d", len(binary), MaxModule)
	}
	const magic = "\x00asm\x01\x00\x00\x00"
	if !strings.HasPrefix(string(binary[:min(len(binary), len(magic))]), magic) {
		return nil, errors.New("not a WebAssembly module: it does not begin with \\0asm and version 1; " +
			"go build needs GOOS=wasip1 GOARCH=wasm")
	}
	r := &reader{b: binary, at: len(magic)}
	out := append(make([]byte, 0, len(binary)*3/2), magic...)
	m := &module{fuel: fuel, start: startOf(binary[len(magic):])}
	last := 0
	for r.left() > 0 && r.err == nil {
		id := r.byte()
		content := r.bytes(r.u32())
		if r.err != nil || id == custom {
			continue
		}
		if id > dataCount || order(id) <= last {
			return nil, fmt.Errorf("section %d is unknown or out of order", id)
		}
		out = m.before(out, order(id))
		last = order(id)
		if id == start {
			continue
		}
		rewritten, err := m.section(id, content)
		if err != nil {
			return nil, err
		}
		out = appendSection(out, id, rewritten)
	}
	if r.err != nil {
		return nil, r.err
	}
	if m.memories != 1 {
		return nil, fmt.Errorf("%d memories; expected one", m.memories)
	}
	return m.before(out, order(data)+1), nil
}

// before adds the sections that a module without globals or exports lacks, once a section at the
// given position follows.
func (m *module) before(out []byte, position int) []byte {
	if position > order(globals) && !m.added {
		out = appendSection(out, globals, m.counter(appendU32(nil, 1)))
	}
	if position > order(exports) && !m.exported {
		out = appendSection(out, exports, m.export(appendU32(nil, m.exports())))
	}
	return out
}

// counter appends the definition of the counter.
func (m *module) counter(b []byte) []byte {
	m.added = true
	b = append(b, 0x7e, 1, opI64Const) // i64, mutable
	return append(appendS64(b, m.fuel), opEnd)
}

// exports returns the number of exports that are added.
func (m *module) exports() uint32 {
	if m.start >= 0 {
		return 2
	}
	return 1
}

// export appends the exports that are added: the counter, and the start function.
func (m *module) export(b []byte) []byte {
	m.exported = true
	b = appendU32(b, uint32(len(fuelName)))
	b = append(append(b, fuelName...), 3) // a global
	b = appendU32(b, m.globals)
	if m.start >= 0 {
		b = appendU32(b, uint32(len(startName)))
		b = append(append(b, startName...), 0) // a function
		b = appendU32(b, uint32(m.start))
	}
	return b
}

// startOf returns the index of the start function of a module, given its sections; -1: there is
// none.
func startOf(sections []byte) int64 {
	r := &reader{b: sections}
	for r.left() > 0 {
		id := r.byte()
		content := &reader{b: r.bytes(r.u32())}
		if index := content.u32(); id == start && content.err == nil {
			return int64(index)
		}
	}
	return -1
}

// section returns the rewritten content of a section.
func (m *module) section(id byte, content []byte) ([]byte, error) {
	r := &reader{b: content}
	out := content
	switch id {
	case types:
		m.types(r)
	case imports:
		m.imports(r)
	case functions:
		for range m.declared(r) {
			m.funcs = append(m.funcs, r.u32())
		}
	case tables:
		m.tables(r)
	case memories:
		m.memories = r.count()
	case globals:
		out = m.addCounter(r, content)
	case exports:
		out = m.addExport(r, content)
	case code:
		out = m.code(r)
	}
	if r.err != nil {
		return nil, fmt.Errorf("section %d: %w", id, r.err)
	}
	return out, nil
}

// declared reads the length of a vector of what wazero keeps an object for.
func (m *module) declared(r *reader) int {
	n := r.count()
	if n > maxDeclared {
		r.fail(fmt.Errorf("%d entries are more than %d", n, maxDeclared))
		return 0
	}
	return n
}

func (m *module) types(r *reader) {
	for range m.declared(r) {
		if form := r.byte(); form != 0x60 {
			r.fail(fmt.Errorf("type %#x is not that of a function", form))
		}
		n := r.count()
		r.bytes(uint32(n))
		m.params = append(m.params, n)
		results := r.count()
		r.bytes(uint32(results))
		if r.err == nil && max(n, results) > maxParams {
			r.fail(fmt.Errorf("a type has %d parameters and %d results; expected at most %d each", n, results,
				maxParams))
			return
		}
	}
}

func (m *module) imports(r *reader) {
	for range m.declared(r) {
		from, name, what := r.name(), r.name(), r.byte()
		if r.err != nil {
			return
		}
		if from == "gojs" {
			r.fail(errors.New("it is built for a browser, with GOOS=js; expected GOOS=wasip1"))
			return
		}
		if what != 0 || from != wasiName || !known(name) {
			r.fail(fmt.Errorf("it imports %s.%s; a module runs alone, and may import these functions of %s: %s",
				clip.Text(from), clip.Text(name), wasiName, strings.Join(stubNames(), ", ")))
			return
		}
		r.u32()
		m.imported++
	}
}

func (m *module) tables(r *reader) {
	n := m.declared(r)
	if n > maxTables {
		r.fail(fmt.Errorf("%d tables are more than %d", n, maxTables))
	}
	for range n {
		r.byte()
		if least, _ := r.limits(); least > maxTable {
			r.fail(fmt.Errorf("a table of %d entries is larger than %d", least, maxTable))
		}
	}
}

// addCounter returns a section of globals with the counter at its end.
func (m *module) addCounter(r *reader, content []byte) []byte {
	n := m.declared(r)
	m.globals = uint32(n)
	return m.counter(append(appendU32(nil, uint32(n)+1), content[r.at:]...))
}

// addExport returns a section of exports with the counter at its end.
func (m *module) addExport(r *reader, content []byte) []byte {
	n := m.declared(r)
	rest := content[r.at:]
	for range n {
		name, what, index := r.name(), r.byte(), r.u32()
		if name == fuelName || name == startName || what == 3 && index >= m.globals {
			r.fail(fmt.Errorf("it exports %s, %s or a global that it does not have", fuelName, startName))
		}
	}
	return m.export(append(appendU32(nil, uint32(n)+m.exports()), rest...))
}

// code returns the section of code, rewritten.
func (m *module) code(r *reader) []byte {
	n := r.count()
	if n != len(m.funcs) {
		r.fail(fmt.Errorf("%d functions have %d bodies", len(m.funcs), n))
	}
	out := appendU32(make([]byte, 0, len(r.b)*3/2), uint32(n))
	var f function
	var work int64
	for i := range n {
		body := r.bytes(r.u32())
		if r.err != nil {
			return nil
		}
		if len(body) > maxBody {
			r.fail(fmt.Errorf("function %d has %d bytes, more than %d", i, len(body), maxBody))
			return nil
		}
		t := m.funcs[i]
		if uint64(t) >= uint64(len(m.params)) {
			r.fail(fmt.Errorf("function %d has an unknown type", i))
			return nil
		}
		rewritten, err := f.rewrite(body, m.params[t], m.globals)
		if err != nil {
			r.fail(fmt.Errorf("function %d: %w", m.imported+i, err))
			return nil
		}
		if work += f.work(); work > maxWork {
			r.fail(fmt.Errorf("function %d: to compile it and those before it takes %d units of work, more than %d; "+
				"expected less code, or fewer branches and local variables in large functions", m.imported+i, work,
				int64(maxWork)))
			return nil
		}
		out = append(appendU32(out, uint32(len(rewritten))), rewritten...)
	}
	return out
}
