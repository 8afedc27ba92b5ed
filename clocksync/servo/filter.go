package servo

import (
	"fmt"
	"slices"

	"weft/units"
)

// FilterKind is how a Filter combines the last values.
type FilterKind uint8

// Kinds of filter.
const (
	Median  FilterKind = iota // moving median: linuxptp's default for the path delay, over 10
	Mean                      // moving mean
	Minimum                   // moving minimum: the exchange with the least queueing
)

// Filter smooths a measured delay over its last values.
type Filter struct {
	kind   FilterKind
	ring   []units.Time // values in the order of arrival
	sorted []units.Time // the same values, in ascending order
	next   int          // index in ring of the oldest value, if it is full
}

// NewFilter returns a filter over the last n values; n is at least 1.
func NewFilter(kind FilterKind, n int) (*Filter, error) {
	if kind > Minimum {
		return nil, fmt.Errorf("servo: unknown kind of filter %d", kind)
	}
	if n < 1 || n > 1<<16 {
		return nil, fmt.Errorf("servo: filter over %d values; expected 1 to 65536", n)
	}
	return &Filter{kind: kind, ring: make([]units.Time, 0, n), sorted: make([]units.Time, 0, n)}, nil
}

// Add adds a value and returns the filtered one.
func (f *Filter) Add(v units.Time) units.Time {
	if len(f.ring) < cap(f.ring) {
		f.ring = append(f.ring, v)
	} else {
		old := f.ring[f.next]
		f.ring[f.next] = v
		f.next = (f.next + 1) % len(f.ring)
		i, _ := slices.BinarySearch(f.sorted, old)
		f.sorted = slices.Delete(f.sorted, i, i+1)
	}
	i, _ := slices.BinarySearch(f.sorted, v)
	f.sorted = slices.Insert(f.sorted, i, v)
	out, _ := f.Value()
	return out
}

// Value returns the filtered value; ok is false without values.
func (f *Filter) Value() (v units.Time, ok bool) {
	n := len(f.sorted)
	if n == 0 {
		return 0, false
	}
	switch f.kind {
	case Minimum:
		return f.sorted[0], true
	case Mean:
		var sum float64
		for _, v := range f.sorted {
			sum += float64(v - f.sorted[0])
		}
		return f.sorted[0] + units.Time(sum/float64(n)), true
	}
	if n%2 == 1 {
		return f.sorted[n/2], true
	}
	low, high := f.sorted[n/2-1], f.sorted[n/2]
	return low + (high-low)/2, true
}

// Reset drops all values.
func (f *Filter) Reset() { f.ring, f.sorted, f.next = f.ring[:0], f.sorted[:0], 0 }
