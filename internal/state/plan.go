package state

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"weft/units"
)

// what is what a field is to the state.
type what uint8

const (
	value       what = iota // plain memory
	instant                 // relative to now
	someInstant             // likewise, but 0 means none
	count                   // a result
	bytes                   // string, or slice of plain values
	array                   // of structs
	slice                   // of structs
	pointer                 // to a struct
	dynamic                 // interface
)

// field is a field of a struct or of a struct inside it.
type field struct {
	offset uintptr
	size   uintptr // of the field, or of an element
	n      uintptr // of an array: number of elements
	what   what
	part   string
	typ    reflect.Type // of the struct that it leads to, or of an interface
}

// of returns the plan of the structs that a field leads to.
func (f *field) of() *plan { return planOf(f.typ) }

// plan is what to do with a struct. err says why nothing can be done.
type plan struct {
	fields []field
	err    error
}

var plans sync.Map // from reflect.Type to *plan

// planOf returns the plan of a type of structs.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{}
	p.err = p.add(t, 0, "")
	whole, _ := plans.LoadOrStore(t, p) // runs of a sweep are made at the same time, and see whole plans alone
	return whole.(*plan)
}

// add adds the fields of a struct at an offset.
func (p *plan) add(t reflect.Type, offset uintptr, part string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, name, _ := strings.Cut(f.Tag.Get("state"), ",")
		if name == "" {
			name = part
		}
		if err := p.addField(f, tag, offset+f.Offset, name); err != nil {
			return fmt.Errorf("%v is not compared (%s %w)", t, f.Name, err)
		}
	}
	return nil
}

// errUntold is a field that has no tag.
var errUntold = errors.New("has no tag")

func (p *plan) addField(s reflect.StructField, tag string, offset uintptr, part string) error {
	f := field{offset: offset, size: s.Type.Size(), part: part, typ: s.Type}
	switch kind := s.Type.Kind(); tag {
	case "fixed", "idle", "max", "own":
		return nil
	case "value":
		return p.addValue(f, s.Type)
	case "instant", "instant0":
		if s.Type != reflect.TypeFor[units.Time]() {
			return fmt.Errorf("is a %v, and no units.Time", s.Type)
		}
		if f.what = instant; tag == "instant0" {
			f.what = someInstant
		}
	case "count":
		switch {
		case kind == reflect.Struct:
			return p.addCounts(s.Type, offset)
		case kind == reflect.Array && plain(s.Type.Elem()):
			for i := range s.Type.Len() {
				size := s.Type.Elem().Size()
				p.fields = append(p.fields, field{offset: offset + uintptr(i)*size, size: size, what: count})
			}
			return nil
		case !integer(s.Type):
			return fmt.Errorf("is a %v, and no result that can be added up", s.Type)
		}
		f.what = count
	case "inside":
		return p.addInside(f, s.Type)
	default:
		return errUntold
	}
	p.fields = append(p.fields, f)
	return nil
}

// addCounts adds a struct whose integers are all results, as those that count packets.
func (p *plan) addCounts(t reflect.Type, offset uintptr) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if err := p.addField(f, "count", offset+f.Offset, ""); err != nil {
			return fmt.Errorf("%v.%s %w", t, f.Name, err)
		}
	}
	return nil
}

// addValue adds a field that is compared as it is.
func (p *plan) addValue(f field, t reflect.Type) error {
	switch t.Kind() {
	case reflect.String:
		f.what, f.size = bytes, 1
	case reflect.Struct:
		for i := range t.NumField() {
			in := t.Field(i)
			g := field{offset: f.offset + in.Offset, size: in.Type.Size(), part: f.part}
			if err := p.addValue(g, in.Type); err != nil {
				return err
			}
		}
		return nil
	case reflect.Slice:
		if !plain(t.Elem()) {
			return fmt.Errorf("is a %v, and no plain value", t)
		}
		f.what, f.size = bytes, t.Elem().Size()
	default:
		if !plain(t) {
			return fmt.Errorf("is a %v, and no plain value", t)
		}
	}
	p.fields = append(p.fields, f)
	return nil
}

// addInside adds a field that holds structs or points to them. Their own fields have tags.
func (p *plan) addInside(f field, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Struct:
		return p.add(t, f.offset, f.part)
	case reflect.Interface:
		f.what = dynamic
		p.fields = append(p.fields, f)
		return nil
	case reflect.Pointer:
		f.what = pointer
	case reflect.Slice:
		f.what = slice
	case reflect.Array:
		f.what, f.n = array, uintptr(t.Len())
	}
	if f.what == value || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("is a %v, and leads to no struct", t)
	}
	f.typ, f.size = t.Elem(), t.Elem().Size()
	p.fields = append(p.fields, f)
	return nil
}

// integer reports whether values of a type can be added up: integers of 4 or 8 bytes.
func integer(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// plain reports whether values of a type are equal if and only if their memory is.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Uint8, reflect.Uint16, reflect.Float32, reflect.Float64:
		return true
	case reflect.Array:
		return plain(t.Elem())
	}
	return integer(t)
}
