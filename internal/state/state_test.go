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

type circle struct{ radius int }

func (c *circle) area() int     { return c.radius }
func (*circle) Rest(units.Time) {}

type odd struct{ side int }

func (o *odd) area() int { return o.side }

// scratch means nothing, whatever its fields are.
type scratch struct {
	_    struct{} `state:"-"`
	more map[int]struct{}
}

type machine struct {
	id      int `state:"-"`
	rate    float64
	name    string
	names   []string
	bits    []uint16
	armed   units.Time
	until   units.Time
	set     [2]units.Time
	length  units.Time `state:"span"`
	packets int64      `state:"count"`
	sizes   struct {
		open  bool
		bytes [2]units.Bytes
		times []units.Time
	} `state:"count"`
	parts    []circle `state:",parts"`
	fixed    [2]circle
	shape    shape `state:",shape"`
	next     *machine
	none     *odd             `state:"never,nothing"`
	scratch  map[int]struct{} `state:"-"`
	scratch2 scratch
}

func newMachine(now units.Time) *machine {
	m := &machine{
		id: 1, rate: 2, name: "a", names: []string{"b"}, bits: []uint16{1, 2}, armed: now + 5, until: units.LongAgo,
		set: [2]units.Time{now, now - 1}, length: 7, packets: 7,
		parts: []circle{{1}, {2}}, shape: &circle{3}, next: &machine{armed: units.Never},
	}
	m.sizes.bytes, m.sizes.times = [2]units.Bytes{1, 2}, []units.Time{3}
	m.next.until, m.next.set = units.Never, [2]units.Time{units.Never, units.Never}
	return m
}

func capture(t *testing.T, now units.Time, m *machine) *State {
	t.Helper()
	s, err := Capture(now, m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A state depends on everything that no tag excludes, relative to now, and on nothing else.
func TestCapture(t *testing.T) {
	want := capture(t, 100, newMachine(100))
	for name, c := range map[string]struct {
		change func(*machine)
		part   string // that differs; "": none
	}{
		"another instant":   {func(*machine) {}, ""},
		"no state":          {func(m *machine) { m.id = 9 }, ""},
		"count":             {func(m *machine) { m.packets, m.sizes.bytes[1], m.sizes.times[0] = 8, 9, 10 }, ""},
		"other than counts": {func(m *machine) { m.sizes.open = true }, others},
		"number of counts":  {func(m *machine) { m.sizes.times = nil }, others},
		"scratch":           {func(m *machine) { m.scratch = map[int]struct{}{1: {}}; m.scratch2.more = m.scratch }, ""},
		"number":            {func(m *machine) { m.rate = 3 }, others},
		"text":              {func(m *machine) { m.name = "b" }, others},
		"text in a list":    {func(m *machine) { m.names[0] = "a" }, others},
		"list":              {func(m *machine) { m.bits = []uint16{1, 3} }, others},
		"its length":        {func(m *machine) { m.bits = m.bits[:1] }, others},
		"instant":           {func(m *machine) { m.armed++ }, others},
		"instant in a list": {func(m *machine) { m.set[1]++ }, others},
		"none became one":   {func(m *machine) { m.until = 900 }, others},
		"another none":      {func(m *machine) { m.until = units.Never }, others},
		"length":            {func(m *machine) { m.length = 8 }, others},
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
	m.packets, m.sizes.bytes, m.armed, m.set = 9, [2]units.Bytes{2, 2}, 205, [2]units.Time{200, 199}
	m.sizes.times[0] = 4
	to := capture(t, 200, m)
	if changed := from.Changed(to); changed != nil {
		t.Fatal(changed)
	}
	if err := Repeat(from, to, 3, 300, m); err != nil {
		t.Fatal(err)
	}
	if m.packets != 15 || m.sizes.bytes != [2]units.Bytes{5, 2} || m.sizes.times[0] != 7 || m.armed != 505 ||
		m.set != [2]units.Time{500, 499} || m.length != 7 || m.until != units.LongAgo || m.next.armed != units.Never {
		t.Errorf("%+v", m)
	}
	if changed := from.Changed(capture(t, 500, m)); changed != nil {
		t.Errorf("%v changed", changed)
	}
}

// A length that nobody has marked costs equal states, and nothing else: it does not move as the
// time does.
func TestForgottenMarks(t *testing.T) {
	type forgotten struct{ length units.Time }
	m := &forgotten{7}
	a, err1 := Capture(100, m)
	b, err2 := Capture(200, m)
	if err1 != nil || err2 != nil || a.Sum == b.Sum {
		t.Errorf("equal states, %v, %v", err1, err2)
	}
}

// What cannot be compared is found, wherever it is, but only where something leads to it.
func TestWhatIsNotCompared(t *testing.T) {
	m := newMachine(0)
	if err := Check(m); err != nil {
		t.Error(err)
	}
	m.shape = &odd{}
	checkRefused(t, m, "shape: the state of *state.odd is not compared (it is not Resting)")
	m.shape, m.next.none = nil, &odd{}
	checkRefused(t, m, "nothing: the state of *state.odd is not compared")
	checkRefused(t, &struct{ m []map[int]int }{make([]map[int]int, 1)}, "is a map[int]int and has no mark")
	checkRefused(t, &struct{ f func() }{}, "(f is a func() and has no mark)")
	checkRefused(t, &struct{ c chan int }{}, "(c is a chan int and has no mark)")
}

func checkRefused(t *testing.T, root any, want string) {
	t.Helper()
	err := Check(root)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := Capture(0, root); err == nil {
		t.Errorf("%s: captured all the same", want)
	}
}

// Marks that do not fit a field's type are refused.
func TestMarksThatDoNotFit(t *testing.T) {
	for name, v := range map[string]any{
		"a number as a length": &struct {
			n int `state:"span"`
		}{},
		"a text as a count": &struct {
			s string `state:"count"`
		}{},
		"a number that is never there": &struct {
			n int `state:"never"`
		}{},
		"an unknown mark": &struct {
			n int `state:"value"`
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
		all[i] = reflect.StructField{Name: fmt.Sprint("F", i), Type: reflect.TypeFor[string]()}
	}
	large := reflect.StructOf(all)
	for range 50 {
		plans.Delete(planned{typ: large})
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 20 {
					if p := planOf(large, byType); p.err != nil || len(p.fields) != fields {
						t.Errorf("%d of %d fields, %v", len(p.fields), fields, p.err)
						return
					}
				}
			})
		}
		group.Wait()
	}
}
