package state

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"weft/units"
)

type shape interface{ area() int }

type circle struct {
	radius int `state:"value"`
}

func (c *circle) area() int { return c.radius }

type odd struct{ side int }

func (o *odd) area() int { return o.side }

type machine struct {
	id      int              `state:"fixed"`
	rate    float64          `state:"value"`
	name    string           `state:"value"`
	bits    []uint16         `state:"value"`
	armed   units.Time       `state:"instant"`
	until   units.Time       `state:"instant0"`
	packets int64            `state:"count"`
	sizes   [2]units.Bytes   `state:"count"`
	largest int              `state:"max"`
	parts   []circle         `state:"inside,parts"`
	fixed   [2]circle        `state:"inside"`
	shape   shape            `state:"inside,shape"`
	next    *machine         `state:"inside"`
	scratch map[int]struct{} `state:"idle"`
}

func newMachine(now units.Time) *machine {
	return &machine{
		id: 1, rate: 2, name: "a", bits: []uint16{1, 2}, armed: now + 5, packets: 7, sizes: [2]units.Bytes{1, 2},
		parts: []circle{{1}, {2}}, shape: &circle{3}, next: &machine{armed: units.Never},
	}
}

func capture(t *testing.T, now units.Time, m *machine) *State {
	t.Helper()
	s, err := Capture(now, m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A state depends on everything that a tag calls state, relative to now, and on nothing else.
func TestCapture(t *testing.T) {
	want := capture(t, 100, newMachine(100))
	for name, c := range map[string]struct {
		change func(*machine)
		part   string // that differs; "": none
	}{
		"another instant":   {func(*machine) {}, ""},
		"fixed":             {func(m *machine) { m.id = 9 }, ""},
		"count":             {func(m *machine) { m.packets, m.sizes[1] = 8, 9 }, ""},
		"max":               {func(m *machine) { m.largest = 9 }, ""},
		"idle":              {func(m *machine) { m.scratch = map[int]struct{}{1: {}} }, ""},
		"number":            {func(m *machine) { m.rate = 3 }, others},
		"text":              {func(m *machine) { m.name = "b" }, others},
		"list":              {func(m *machine) { m.bits = []uint16{1, 3} }, others},
		"its length":        {func(m *machine) { m.bits = m.bits[:1] }, others},
		"instant":           {func(m *machine) { m.armed++ }, others},
		"none became one":   {func(m *machine) { m.until = 900 }, others},
		"part":              {func(m *machine) { m.parts[1].radius = 4 }, "parts"},
		"element":           {func(m *machine) { m.fixed[1].radius = 4 }, others},
		"behind interface":  {func(m *machine) { m.shape.(*circle).radius = 4 }, "shape"},
		"nothing behind it": {func(m *machine) { m.shape = nil }, "shape"},
		"behind a pointer":  {func(m *machine) { m.next.rate = 1 }, others},
	} {
		m := newMachine(900)
		c.change(m)
		changed := want.Changed(capture(t, 900, m))
		if got := strings.Join(changed, " "); got != c.part {
			t.Errorf("%s: %q differs, want %q", name, got, c.part)
		}
	}
}

// After Repeat the state is the same at the later instant, and results have grown.
func TestRepeat(t *testing.T) {
	m := newMachine(100)
	from := capture(t, 100, m)
	m.packets, m.sizes, m.armed = 9, [2]units.Bytes{2, 2}, 205
	to := capture(t, 200, m)
	if changed := from.Changed(to); changed != nil {
		t.Fatal(changed)
	}
	if err := Repeat(from, to, 3, 300, m); err != nil {
		t.Fatal(err)
	}
	if m.packets != 15 || m.sizes != [2]units.Bytes{5, 2} || m.armed != 505 || m.until != 0 || m.next.armed != units.Never {
		t.Errorf("%+v", m)
	}
	if changed := from.Changed(capture(t, 500, m)); changed != nil {
		t.Errorf("%v changed", changed)
	}
}

// A field without a tag is found, wherever it is, but only where something leads to it.
func TestFieldsWithoutTag(t *testing.T) {
	m := newMachine(0)
	if err := Check(m); err != nil {
		t.Error(err)
	}
	m.shape = &odd{}
	err := Check(m)
	if err == nil || !strings.Contains(err.Error(), "shape: the state of state.odd is not compared (side has no tag)") {
		t.Errorf("error %v", err)
	}
	if _, err := Capture(0, m); err == nil {
		t.Error("captured all the same")
	}
}

// The tags that say nothing about a field's type are refused.
func TestTagsThatDoNotFit(t *testing.T) {
	for name, v := range map[string]any{
		"a map as a value": &struct {
			m map[int]int `state:"value"`
		}{},
		"a number as an instant": &struct {
			n int `state:"instant"`
		}{},
		"a text as a count": &struct {
			s string `state:"count"`
		}{},
		"a number with inside": &struct {
			n int `state:"inside"`
		}{},
	} {
		if Check(v) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	parts := slices.Collect(maps.Keys(capture(t, 0, newMachine(0)).Parts))
	if len(parts) != 3 {
		t.Errorf("parts %v", parts)
	}
}

// Runs of a sweep ask for the plan of a type at the same time. Each gets the whole of it.
func TestPlansAreWhole(t *testing.T) {
	const fields = 200
	all := make([]reflect.StructField, fields)
	for i := range all {
		all[i] = reflect.StructField{Name: fmt.Sprint("F", i), Type: reflect.TypeFor[int](), Tag: `state:"value"`}
	}
	large := reflect.StructOf(all)
	for range 50 {
		plans.Delete(large)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 20 {
					if p := planOf(large); p.err != nil || len(p.fields) != fields {
						t.Errorf("%d of %d fields, %v", len(p.fields), fields, p.err)
						return
					}
				}
			})
		}
		group.Wait()
	}
}
