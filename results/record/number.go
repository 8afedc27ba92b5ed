package record

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weft/units"
)

// A Number is a quantity of a run that has a name. Numbers lists all: the names of expectations,
// the rows and columns of tables, what is compared and drawn, and the reference of lab files come
// from there.
type Number struct {
	// Name is what expectations call it: fct.p99. In Numbers, N stands for an index from 0.
	Name string
	// Path is its field of summary.json, or the field that lacks a value when the number does;
	// empty for what is computed from several.
	Path string
	Unit Unit

	Label string // in a table: "flow completion, p99"; empty: no table has it
	Head  string // Label at the head of a narrow column
	Axis  string // Label at an axis of a chart
	Chart string // the chart that shows it, of Charts
	// Words are the names in tables of the number, or of the distribution of which it is the
	// Quantile, in lower case and with _ for spaces. Expectations suggest the number for them.
	Words    []string
	Quantile string // mean, p50, p99 or max

	Worse int  // sign of a change for the worse; 0: neither direction is worse
	Count bool // counts something
	Share bool // is a share of 1, which tables have in percent
	// Trouble is set for counts of what a network without trouble does not have: the first is a
	// difference, whatever the noise.
	Trouble bool

	// Of returns the value for a run, in Unit. An error says why there is none.
	Of func(s *Summary) (float64, error)

	// Index is that of a number of one of several collectives, plateaus or averaging times.
	Index int

	at    func(s *Summary, index int) (float64, error) // Of, if Name has an N
	item  bool                                         // of a collective
	shown func(*Summary) bool                          // tables show it only of such runs; nil: of all
}

// A Unit is the unit of a Number.
type Unit string

// The units of numbers. Times in ns of a summary are numbers in us.
const (
	Plain        Unit = ""
	Microseconds Unit = "us"
	Bytes        Unit = "B"
	Gbps         Unit = "Gb/s"
	Truth        Unit = "bool" // 1 is true
	Word         Unit = "word" // its Of returns an error alone
)

// Get returns the value for a run. It is an error if the run did not measure it, or if it is not
// finite.
func (n *Number) Get(s *Summary) (float64, error) {
	if why := s.Lacks(n.Path); why != "" {
		return 0, fmt.Errorf("not measured: %s", why)
	}
	v, err := n.Of(s)
	if err == nil && (math.IsInf(v, 0) || math.IsNaN(v)) {
		err = errors.New(notFinite)
	}
	return v, err
}

// Value returns what Get does, and NaN instead of an error.
func (n *Number) Value(s *Summary) float64 {
	if v, err := n.Get(s); err == nil {
		return v
	}
	return math.NaN()
}

// Shown returns the value for a table. is is false if the run has none, or if it would mislead: the
// completion times of a run that did not reach its end, the counts of one that sent nothing.
func (n *Number) Shown(s *Summary) (v float64, is bool) {
	v, err := n.Get(s)
	return v, err == nil && (n.shown == nil || n.shown(s))
}

// Format writes a value for people.
func (n *Number) Format(v float64) string {
	switch {
	case n.Count:
		return units.Count(int64(v))
	case n.Share:
		return units.Shown(100*v, "%")
	}
	return units.Shown(v, string(n.Unit))
}

// Text writes the value for a run in a table: a dash if it has none, and with "at least" if it is a
// lower bound.
func (n *Number) Text(s *Summary) string {
	v, is := n.Shown(s)
	switch {
	case !is:
		return "–"
	case s.LowerBound(n.Path) != "":
		return "at least " + n.Format(v)
	}
	return n.Format(v)
}

// Item reports whether the number is one of a collective.
func (n *Number) Item() bool { return n.item }

// Named returns the number of a name, such as fct.p99, collective.3.busbw or metric.time_us.max.
func Named(name string) (n Number, ok bool) {
	all := Numbers()
	if i := slices.IndexFunc(all, func(n Number) bool { return n.Name == name && n.at == nil }); i >= 0 {
		return all[i], true
	}
	parts := strings.Split(name, ".")
	if len(parts) < 3 {
		return Number{}, false
	}
	if parts[0] == "metric" {
		return metricNumber(name, parts[1], strings.Join(parts[2:], "."))
	}
	index, rest := parts[1], parts[0]+".N."+strings.Join(parts[2:], ".")
	at, err := strconv.Atoi(index)
	if err != nil || at < 0 || index[0] == '+' {
		return Number{}, false
	}
	i := slices.IndexFunc(all, func(n Number) bool { return n.Name == rest })
	if i < 0 {
		return Number{}, false
	}
	n = all[i]
	n.Name, n.Path, n.Index = name, strings.Replace(n.Path, ".N.", "."+index+".", 1), at
	n.Of = func(s *Summary) (float64, error) { return n.at(s, at) }
	return n, true
}

// Select returns the numbers of names, which must have one each.
func Select(names ...string) []Number {
	all := make([]Number, len(names))
	for i, name := range names {
		n, ok := Named(name)
		if !ok {
			panic("record: no number is called " + name) // a constant of the caller
		}
		all[i] = n
	}
	return all
}
