package schedule

import (
	"fmt"

	"weft/units"
)

// Type is the type of the elements of a buffer. The zero value is Float32.
type Type string

// Types of elements, as a lab file writes them. All are stored little-endian.
const (
	Float32  Type = "float32"
	BFloat16 Type = "bfloat16" // the upper half of a float32
	Int32    Type = "int32"
)

// Types returns all types, the default first.
func Types() []Type { return []Type{Float32, BFloat16, Int32} }

// Size returns the size of an element in bytes.
func (t Type) Size() units.Bytes {
	if t == BFloat16 {
		return 2
	}
	return Element
}

// Element is the size of the largest type in bytes.
const Element units.Bytes = 4

// check returns an error if t is unknown.
func (t Type) check() error {
	switch t {
	case "", Float32, BFloat16, Int32:
		return nil
	}
	return fmt.Errorf("elements of type %q are not known", string(t))
}

// Reduction is the operation that combines the elements of several ranks. The zero value is Sum.
type Reduction string

// Reductions, as a lab file writes them.
const (
	Sum  Reduction = "sum"
	Prod Reduction = "prod"
	Max  Reduction = "max"
	Min  Reduction = "min"
)

// Reductions returns all reductions, the default first.
func Reductions() []Reduction { return []Reduction{Sum, Prod, Max, Min} }

// Names returns types or reductions as text.
func Names[T Type | Reduction](all []T) []string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = string(one)
	}
	return names
}

// check returns an error if r is unknown.
func (r Reduction) check() error {
	switch r {
	case "", Sum, Prod, Max, Min:
		return nil
	}
	return fmt.Errorf("reduction %q is not known", string(r))
}
