package trace

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"weft/collectives/schedule"
	"weft/internal/clip"
	"weft/units"
)

// Error is an error at a position in a trace.
type Error struct {
	File         string
	Line, Column int
	Err          error
}

// Error returns the error with its position.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err) }

// Unwrap returns the error without its position.
func (e *Error) Unwrap() error { return e.Err }

// Bounds of a trace.
const (
	maxItems  = 100_000
	maxErrors = 20 // further ones are dropped
	maxRepeat = 100_000
	maxRanks  = 1 << 20
	maxSize   = 1000 * units.GB
	maxTime   = 1000 * units.Second
)

// Parse parses a trace. It returns all errors at once, each an *Error, up to maxErrors.
func Parse(file string, text []byte) ([]Item, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte order mark, which spreadsheets write
	r := csv.NewReader(bytes.NewReader(text))
	r.Comment = '#'
	r.FieldsPerRecord = -1
	r.TrimLeadingSpace = true
	p := parser{file: file, csv: r}
	p.header()
	for len(p.errs) < maxErrors && p.next() {
		if it := p.item(); len(p.items) < maxItems {
			p.items = append(p.items, it)
			continue
		}
		p.problem(0, "more than %d collectives", maxItems)
		break
	}
	if len(p.items) == 0 && len(p.errs) == 0 {
		p.errs = append(p.errs, &Error{file, 1, 1, errors.New("a trace without collectives")})
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.items, nil
}

// parser parses one trace.
type parser struct {
	file   string
	csv    *csv.Reader
	names  []string // names of the columns
	fields []string // fields of the line
	items  []Item
	errs   []error
}

// columns lists the columns that a trace may have.
var columns = [...]string{
	"collective", "size", "name", "algorithm", "type", "op", "compute", "jitter", "start", "repeat", "group", "stride",
	"root", "chunk", "parallel", "local", "shift",
}

// HasColumn reports whether a trace may have a column of that name.
func HasColumn(name string) bool { return slices.Contains(columns[:], name) }

// next reads a line. It returns false if there is none.
func (p *parser) next() bool {
	var err error
	p.fields, err = p.csv.Read()
	var bad *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return false
	case errors.As(err, &bad):
		p.errs = append(p.errs, &Error{p.file, bad.Line, bad.Column, bad.Err})
		return false
	case err != nil:
		p.errs = append(p.errs, &Error{p.file, 1, 1, err})
		return false
	}
	return true
}

// header reads the names of the columns.
func (p *parser) header() {
	if !p.next() {
		return
	}
	for i, name := range p.fields {
		name = strings.TrimSpace(name)
		switch {
		case !slices.Contains(columns[:], name):
			p.problem(i, "no column is called %q; there are %s", clip.Text(name), strings.Join(columns[:], ", "))
		case slices.Contains(p.names, name):
			p.problem(i, "column %s is listed twice", name)
		}
		p.names = append(p.names, name)
	}
	for _, name := range columns[:2] {
		if !slices.Contains(p.names, name) {
			p.problem(0, "column %s is missing", name)
		}
	}
	if len(p.errs) > 0 {
		p.csv = csv.NewReader(strings.NewReader("")) // without columns the lines are meaningless
	}
}

// problem records an error in a field of the line.
func (p *parser) problem(field int, format string, args ...any) {
	line, column := p.csv.FieldPos(min(field, len(p.fields)-1))
	p.errs = append(p.errs, &Error{p.file, line, column, fmt.Errorf(format, args...)})
}

// field returns the field of a column in the line, and its index. It is empty if it is missing.
func (p *parser) field(name string) (text string, at int) {
	if at = slices.Index(p.names, name); at < 0 || at >= len(p.fields) {
		return "", 0
	}
	return strings.TrimSpace(p.fields[at]), at
}

// item parses a line.
func (p *parser) item() Item {
	if len(p.fields) != len(p.names) {
		p.problem(len(p.names), "%d fields; expected %d as in the first line", len(p.fields), len(p.names))
		return Item{}
	}
	before := len(p.errs)
	var it Item
	it.Name = p.name()
	it.Collective = p.choice("collective", schedule.Collectives())
	if it.Collective == "" {
		return it
	}
	all := schedule.Algorithms(it.Collective)
	it.Algorithm = p.choice("algorithm", append([]string{"", "auto"}, all...))
	if it.Algorithm == "" || it.Algorithm == "auto" {
		it.Algorithm = all[0]
	}
	facts, err := schedule.About(it.Collective, it.Algorithm)
	if err != nil {
		return it
	}
	it.Type = schedule.Type(p.choice("type", append([]string{""}, schedule.Names(schedule.Types())...)))
	if it.Type == "" {
		it.Type = schedule.Float32
	}
	it.Op = schedule.Sum
	if text, _ := p.field("op"); text != "" && p.applies("op", facts.Reduces, &it) {
		it.Op = schedule.Reduction(p.choice("op", schedule.Names(schedule.Reductions())))
	}
	it.Size = p.bytes("size", it.Type.Size(), it.Type)
	it.Chunk = schedule.DefaultChunk(it.Collective, it.Algorithm)
	if text, _ := p.field("chunk"); text == "off" {
		it.Chunk = 0
	} else if text != "" {
		it.Chunk = p.bytes("chunk", it.Type.Size(), it.Type)
	}
	p.when(&it)
	p.numbers(&it, facts)
	if len(p.errs) > before {
		return Item{}
	}
	return it
}

// when parses the columns of times.
func (p *parser) when(it *Item) {
	it.Compute, it.Jitter = p.time("compute"), p.time("jitter")
	text, at := p.field("start")
	if it.Previous = text == ""; it.Previous {
		if len(p.items) == 0 {
			it.Previous = false // begins at once
		}
		return
	}
	if it.Start = p.time("start"); it.Start < 0 {
		p.problem(at, "start is negative")
	}
}

// numbers parses the columns of whole numbers.
func (p *parser) numbers(it *Item, f schedule.Facts) {
	it.Repeat = p.number("repeat", 1, 1, maxRepeat)
	it.Group = p.number("group", 0, 2, maxRanks)
	it.Stride = p.number("stride", 1, 1, maxRanks)
	optional := func(name string, applies bool, otherwise, least int) int {
		if text, _ := p.field(name); text == "" || !p.applies(name, applies, it) {
			return otherwise
		}
		return p.number(name, otherwise, least, maxRanks)
	}
	window := 0
	if f.Windowed {
		window = 16 // STrack, section 4.3: 16, 32 and 64
	}
	it.Root = optional("root", f.Rooted, 0, 0)
	it.Parallel = optional("parallel", f.Window, window, 1)
	it.Local = optional("local", f.Group, 0, 1)
	if f.Group && it.Local == 0 {
		_, at := p.field("local")
		p.problem(at, "%s needs local, the number of ranks per local group", it.Algorithm)
	}
	shift := 0
	if f.Permuted {
		shift = 1
	}
	if it.Shift = optional("shift", shift != 0, shift, -maxRanks); it.Shift == 0 && shift != 0 {
		_, at := p.field("shift")
		p.problem(at, "shifted by 0, every rank would send to itself")
	}
}

// applies returns yes, and records an error if a column does not apply to the line's algorithm.
func (p *parser) applies(name string, yes bool, it *Item) bool {
	if !yes {
		_, at := p.field(name)
		p.problem(at, "%s does not apply to %s by %s", name, it.Collective, it.Algorithm)
	}
	return yes
}

// name parses the name of the line.
func (p *parser) name() string {
	text, at := p.field("name")
	const most = 100
	if len(text) > most || strings.ContainsFunc(text,
		func(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }) {
		p.problem(at, "name %q; expected at most %d bytes that can be printed", clip.Text(text), most)
		return ""
	}
	return text
}

// choice parses one of several words.
func (p *parser) choice(name string, all []string) string {
	text, at := p.field(name)
	if slices.Contains(all, text) {
		return text
	}
	if all[0] == "" {
		all = all[1:]
	}
	p.problem(at, "%s is %q; expected one of %s", name, clip.Text(text), strings.Join(all, ", "))
	return ""
}

// bytes parses a size that is a positive multiple of an element.
func (p *parser) bytes(name string, element units.Bytes, kind schedule.Type) units.Bytes {
	text, at := p.field(name)
	n, err := units.ParseBytes(text)
	switch {
	case err != nil:
		p.problem(at, "%s: %w", name, err)
	case n < element || n > maxSize:
		p.problem(at, "%s is %v; expected from %v to %v", name, n, element, units.Bytes(maxSize))
	case n%element != 0:
		p.problem(at, "%s is %v, which is no whole number of %s elements of %d bytes", name, n, kind, element)
	default:
		return n
	}
	return element
}

// time parses a duration, which is 0 if it is missing.
func (p *parser) time(name string) units.Time {
	text, at := p.field(name)
	if text == "" {
		return 0
	}
	t, err := units.ParseTime(text)
	if err != nil {
		p.problem(at, "%s: %w", name, err)
		return 0
	}
	if t < 0 || t > maxTime {
		p.problem(at, "%s is %v; expected from 0s to %v", name, t, units.Time(maxTime))
		return 0
	}
	return t
}

// number parses a whole number from least to most, which is otherwise if it is missing.
func (p *parser) number(name string, otherwise, least, most int) int {
	text, at := p.field(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < int64(least) || n > int64(min(most, math.MaxInt32)) {
		p.problem(at, "%s is %q; expected a whole number from %d to %d", name, clip.Text(text), least, most)
		return otherwise
	}
	return int(n)
}
