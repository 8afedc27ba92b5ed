package state

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"weft/units"
)

// Resting is what an interface of a state may hold, apart from structs without fields. Rest is for
// the owner of the state to call before it is captured: it replaces instants that cannot matter any
// more by the same one, units.LongAgo. A type without it is never compared: interfaces are where
// types come in that nobody has thought of.
type Resting interface{ Rest(now units.Time) }

var (
	timeType    = reflect.TypeFor[units.Time]()
	restingType = reflect.TypeFor[Resting]()
)

// what is what a field is to the state.
type what uint8

const (
	memory   what = iota // plain memory, of one field or of several that follow each other
	instant              // relative to now
	result               // an integer that grows
	values               // string, or slice of plain values
	elements             // array
	list                 // slice
	pointer              // to anything
	dynamic              // interface
	never                // pointer that must be nil
)

// mode is what a mark says about everything inside a field.
type mode uint8

const (
	byType  mode = iota
	spans        // times are lengths
	results      // integers are results
)

// field is a field of a struct or of a struct inside it, or several.
type field struct {
	offset uintptr
	size   uintptr // of the field, or of an element
	n      int     // of an array: number of elements
	what   what
	mode   mode
	part   string
	typ    reflect.Type // of what it leads to, or of an interface
}

// leadsTo returns the plan of what a field leads to.
func (f *field) leadsTo() *plan { return planOf(f.typ, f.mode) }

// plan is what to do with a type. err says why nothing can be done.
type plan struct {
	fields []field
	err    error
	rests  bool // a pointer to it is Resting
}

// planned is what a plan is for.
type planned struct {
	typ  reflect.Type
	mode mode
}

var plans sync.Map // from planned to *plan

// planOf returns the plan of a type.
func planOf(t reflect.Type, m mode) *plan {
	key := planned{t, m}
	if p, ok := plans.Load(key); ok {
		return p.(*plan)
	}
	p := &plan{rests: reflect.PointerTo(t).Implements(restingType)}
	p.err = p.add(t, 0, m, "")
	whole, _ := plans.LoadOrStore(key, p) // runs of a sweep are made at the same time, and see whole plans alone
	return whole.(*plan)
}

// errUndecided is a field whose type does not say what it is to the state.
var errUndecided = errors.New("has no mark")

// add adds what is of a type at an offset.
func (p *plan) add(t reflect.Type, offset uintptr, m mode, part string) error {
	f := field{offset: offset, size: t.Size(), mode: m, part: part, typ: t}
	switch kind := t.Kind(); {
	case plain(t, m):
		f.what = memory
		if p.extend(&f) {
			return nil
		}
	case t == timeType && m == byType:
		f.what = instant
	case integer(kind):
		f.what = result
	case kind == reflect.Struct:
		return p.addStruct(t, offset, m, part)
	case kind == reflect.String:
		f.what, f.size = values, 1
	case kind == reflect.Slice:
		f.typ, f.size = t.Elem(), t.Elem().Size()
		if f.what = list; plain(f.typ, m) {
			f.what = values
		}
	case kind == reflect.Array:
		f.what, f.n, f.typ, f.size = elements, t.Len(), t.Elem(), t.Elem().Size()
	case kind == reflect.Pointer:
		f.what, f.typ = pointer, t.Elem()
	case kind == reflect.Interface:
		f.what = dynamic
	default:
		return fmt.Errorf("is a %v and %w", t, errUndecided)
	}
	p.fields = append(p.fields, f)
	return nil
}

// extend makes f part of the last field if both are one piece of memory.
func (p *plan) extend(f *field) bool {
	if len(p.fields) == 0 {
		return false
	}
	last := &p.fields[len(p.fields)-1]
	if last.what != memory || last.part != f.part || last.offset+last.size != f.offset {
		return false
	}
	last.size += f.size
	return true
}

// addStruct adds the fields of a struct at an offset.
func (p *plan) addStruct(t reflect.Type, offset uintptr, m mode, part string) error {
	for i := range t.NumField() {
		if f := t.Field(i); f.Name == "_" && f.Tag.Get("state") == "-" {
			return nil
		}
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Name != "_" {
			if err := p.addField(f, offset+f.Offset, m, part); err != nil {
				return fmt.Errorf("%v is not compared (%s %w)", t, f.Name, err)
			}
		}
	}
	return nil
}

// addField adds a field of a struct at an offset, as its mark says.
func (p *plan) addField(s reflect.StructField, offset uintptr, m mode, part string) error {
	mark, name, _ := strings.Cut(s.Tag.Get("state"), ",")
	if name == "" {
		name = part
	}
	kind := s.Type.Kind()
	fits := true
	switch mark {
	case "":
	case "-":
		return nil
	case "span":
		m, fits = spans, s.Type == timeType || inside(kind)
	case "count":
		m, fits = results, integer(kind) || inside(kind)
	case "never":
		p.fields = append(p.fields, field{offset: offset, what: never, part: name, typ: s.Type})
		if kind == reflect.Pointer {
			return nil
		}
		fits = false
	default:
		fits = false
	}
	if !fits {
		return fmt.Errorf("is a %v, marked %q", s.Type, mark)
	}
	return p.add(s.Type, offset, m, name)
}

// inside reports whether a mark can be about what is inside or behind a field.
func inside(k reflect.Kind) bool {
	switch k {
	case reflect.Struct, reflect.Array, reflect.Slice, reflect.Pointer:
		return true
	}
	return false
}

// integer reports whether values can be added up: integers of 4 or 8 bytes.
func integer(k reflect.Kind) bool {
	switch k {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// plain reports whether values of a type are compared as they are, and are equal if and only if
// their memory is.
func plain(t reflect.Type, m mode) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Uint8, reflect.Uint16, reflect.Float32, reflect.Float64:
		return true
	case reflect.Array:
		return plain(t.Elem(), m)
	}
	return integer(t.Kind()) && m != results && (t != timeType || m == spans)
}
