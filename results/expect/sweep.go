package expect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/results/record"
)

// Sweep evaluates an expression that compares points, once for every combination of values that its
// selections leave open. It must hold for each. The result has Got of the combination with the
// smallest margin; Note names that combination and the number of combinations that meet the line.
func (e *Expr) Sweep(points []Point) record.Expect {
	out := record.Expect{That: e.text}
	x, err := e.bindPoints(points)
	if err != nil {
		out.Note, out.Unmeasured = err.Error(), true
		return out
	}
	if len(x.groups) == 0 {
		out.Note, out.Unmeasured = "no point of the sweep was run", true
		return x.untested(out)
	}
	met, missed, smallest := 0, false, math.Inf(1)
	alike := true // all combinations have the same margin
	var doubt string
	for k, g := range x.groups {
		s := x.scopeOf(g)
		if err := e.Check(s); err != nil {
			return record.Expect{That: e.text, Note: err.Error(), Unmeasured: true}
		}
		doubt = cmp.Or(doubt, x.timeoutDoubt(g))
		one := record.Expect{That: e.text}
		margin := s.judge(e, nil, &one)
		if one.OK {
			met++
		}
		missed = missed || !one.OK && !one.Unmeasured
		alike = alike && (k == 0 || margin == smallest)
		if k > 0 && margin >= smallest {
			continue
		}
		smallest = margin
		if name := x.name(g); len(x.groups) > 1 && !one.OK {
			one.Note = "worst at " + name + ": " + one.Note
		} else if one.OK {
			one.Note = "closest at " + name
		}
		out = one
	}
	if !missed {
		out = x.untested(out)
	}
	switch of := fmt.Sprintf("%d of %d met", met, len(x.groups)); {
	case out.Skipped:
	case len(x.groups) == 1 && out.OK:
		out.Note = ""
	case len(x.groups) == 1:
	case out.OK && alike:
		out.Note = of
	default:
		out.Note = of + "; " + out.Note
	}
	unproven := x.fidelityDoubt()
	out.Unproven = unproven != ""
	out.Doubt = strings.Trim(unproven+"; "+doubt, "; ")
	return out
}

// untested returns the result of a line that could not be judged: if runs of the sweep were
// interrupted, it was not tested, which is no miss.
func (x *sweepEval) untested(out record.Expect) record.Expect {
	if out.Unmeasured && slices.ContainsFunc(x.points, func(p Point) bool {
		return p.Summary != nil && p.Summary.Status == record.Interrupted
	}) {
		return record.Expect{That: out.That, Skipped: true, Note: "not tested: the sweep was interrupted"}
	}
	return out
}

// fidelityDoubt returns a warning with the number of selected runs with invalid fidelity and the
// first of them; empty if there are none.
func (x *sweepEval) fidelityDoubt() string {
	selected, invalid, first := 0, 0, ""
	picked := map[int]bool{}
	for n := range x.pick {
		for _, g := range x.groups {
			for _, i := range x.selected(n, g) {
				picked[i] = true
			}
		}
	}
	for i, p := range x.points {
		if !picked[i] {
			continue
		}
		selected++
		if s := p.Summary; s != nil && s.Fidelity.Invalid() {
			invalid++
			first = cmp.Or(first, pointText(p.At, nil))
		}
	}
	if invalid == 0 {
		return ""
	}
	return fmt.Sprintf("fidelity of %d of its %d runs is invalid, so this proves nothing; the first is %s",
		invalid, selected, first)
}

// timeoutsMatter reports whether retransmission timeouts can decide a name: whether it is about the
// duration of messages or collectives.
func timeoutsMatter(name string) bool {
	if strings.HasPrefix(name, "collective.") {
		return strings.HasSuffix(name, ".time") || strings.HasSuffix(name, "bw")
	}
	return strings.HasPrefix(name, "fct") || name == "lab_time"
}

// timeoutDoubt returns a warning with the minimum retransmission timeouts of the selected runs of a
// group, if they differ and decide the slowest messages of any run. It is empty for names that
// timeouts do not affect, and if the sweep varies the minimum.
func (x *sweepEval) timeoutDoubt(group []int) string {
	transports := map[float64][]string{} // by minimum timeout, in microseconds
	decided := false
	for n := range x.pick {
		if !timeoutsMatter(n.name) {
			continue
		}
		for _, i := range x.selected(n, group) {
			p := x.points[i]
			if p.Summary == nil {
				continue
			}
			s := p.Summary
			if _, swept := p.At[s.RTOMinKey]; swept {
				return ""
			}
			decided = decided || s.Tail != nil
			if !slices.Contains(transports[s.RTOMinUS], s.Transport) {
				transports[s.RTOMinUS] = append(transports[s.RTOMinUS], s.Transport)
			}
		}
	}
	if !decided || len(transports) < 2 {
		return ""
	}
	var parts []string
	for _, us := range slices.Sorted(maps.Keys(transports)) {
		slices.Sort(transports[us])
		parts = append(parts, fmt.Sprintf("%v (%s)", value{typ: duration, num: us}, strings.Join(transports[us], ", ")))
	}
	return "timeouts decide it, and the minimum timeouts differ: " + strings.Join(parts, ", ")
}

// name returns what the points of a group have in common.
func (x *sweepEval) name(group []int) string {
	return pointText(x.points[group[0]].At, x.bound)
}

// A Line is an expectation of a lab file, and the points of the sweep that meet its condition.
type Line struct {
	Text   string // without the condition
	That   string // with it
	Points []Point
}

// Sweep evaluates the lines that compare points of a sweep. It skips a line whose points the
// command line removed.
func Sweep(lines []Line) []record.Expect {
	var out []record.Expect
	for _, line := range lines {
		if e, err := Parse(line.Text); err == nil && e.Cross() {
			reduced := slices.ContainsFunc(line.Points, func(p Point) bool { return len(p.Fixed) > 0 })
			if err := e.CheckSweep(line.Points); err != nil && reduced {
				note := "--set leaves no points to compare: " + err.Error()
				out = append(out, record.Expect{That: line.That, Skipped: true, Note: note})
				continue
			}
			one := e.Sweep(line.Points)
			one.That = line.That
			out = append(out, one)
		}
	}
	return out
}

// A Quantity is a number with its unit.
type Quantity struct {
	Value float64
	Unit  string // us, B, Gb/s or ""
	Text  string // four significant digits in a suitable unit
}

// errTruth is returned for a comparison in place of a value.
var errTruth = errors.New("this is true or false; expected a value")

// quantityOf converts a number; other values are an error.
func quantityOf(v value) (Quantity, error) {
	if v.typ.shape != number || v.typ.list {
		return Quantity{}, errTruth
	}
	return Quantity{Value: v.inSummaryUnits(), Unit: unitOf(v.typ), Text: v.String()}, nil
}

// ParseValue parses an expression that is a value instead of a comparison, such as
// mean(rtt.mean[transport=pc4, seed=*]).
func ParseValue(text string) (*Expr, error) {
	e, err := parse(text)
	if err != nil {
		return nil, err
	}
	t, err := Scope{}.typeOf(e.root)
	if err == nil && (t.list || t.shape != number && t.shape != unknown) {
		err = errorAt(e.root.at, "this is %v; expected one value", t)
	}
	return e, err
}

// Value evaluates a value over the points of a sweep, or for one run without selections. All points
// must agree in the paths that its selections leave open.
func (e *Expr) Value(points []Point) (Quantity, error) {
	if !e.Cross() && len(points) == 1 {
		if err := points[0].measured(); err != nil {
			return Quantity{}, err
		}
		v, err := points[0].Scope.eval(e.root, points[0].Summary)
		if err != nil {
			return Quantity{}, err
		}
		return quantityOf(v)
	}
	x, err := e.bindPoints(points)
	if err != nil {
		return Quantity{}, err
	}
	if len(x.groups) != 1 {
		return Quantity{}, fmt.Errorf("%d points are selected; select one, or min, max, mean or median over [%s=*]",
			len(x.groups), x.openPath())
	}
	v, err := x.scopeOf(x.groups[0]).eval(e.root, nil)
	if err != nil {
		return Quantity{}, err
	}
	return quantityOf(v)
}

// openPath returns a path that differs between groups.
func (x *sweepEval) openPath() string {
	first := x.points[x.groups[0][0]].At
	second := x.points[x.groups[min(1, len(x.groups)-1)][0]].At
	for _, path := range slices.Sorted(maps.Keys(first)) {
		if first[path] != second[path] {
			return path
		}
	}
	return "seed"
}

// ParseQuantity parses a number with its unit: 23.5ms, 25%.
func ParseQuantity(text string) (Quantity, error) {
	v, err := quantity(strings.TrimSpace(text))
	if err != nil {
		return Quantity{}, err
	}
	return quantityOf(v)
}

// At returns the values of a point as text, as selections have them.
func At(point map[string]any) map[string]string {
	out := make(map[string]string, len(point))
	for path, v := range point {
		out[path] = fmt.Sprint(v)
	}
	return out
}
