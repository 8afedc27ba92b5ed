package expect

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"weft/results/record"
	"weft/results/stats"
)

// tolerance is the relative difference up to which two numbers are equal. It covers rounding, as in
// 1.1 * 10, and is no margin for measurements.
const tolerance = 1e-9

var (
	errDivide = errors.New("division by zero")
	errRoot   = errors.New("square root of a negative number")

	errNotFinite = errors.New("the result is infinite or not a number")
)

// Eval evaluates the expression for the summary of a run. Got is the left side of the comparison in
// the units of the summary (microseconds, bytes, Gb/s), or 1 for true and 0 for false. Want is the
// right side, unless that is a literal. A line that cannot be evaluated is missed. Note says why a
// line is missed.
func (e *Expr) Eval(sum *record.Summary, s Scope) record.Expect {
	out := record.Expect{That: e.text}
	if err := e.Check(s); err != nil {
		out.Note, out.Unmeasured = err.Error(), true
		return out
	}
	if e.Cross() {
		out.Unmeasured = true
		out.Note = "the line compares points of a sweep, but this is one run"
		return out
	}
	s.judge(e, sum, &out)
	unsound := func(name string) bool { return !slices.Contains(soundNames, name) }
	if sum != nil && sum.Fidelity.Invalid() && slices.ContainsFunc(e.Measured(), unsound) {
		out.Doubt = "the fidelity of the run is invalid, so this proves nothing"
		out.Unproven = true
	}
	return out
}

// soundNames are the names that an invalid emulation has as well as any: what was transferred, not
// when.
var soundNames = []string{"fidelity", "verified", "unfinished", "flows", "ranks", "dilation"}

// judge fills in the result of an expression, and returns the margin of its comparison; minus
// infinity if it cannot be judged. A comparison that a larger value of what has only a lower bound
// could miss is not met.
func (s Scope) judge(e *Expr, sum *record.Summary, out *record.Expect) float64 {
	by := s.weigh(e, sum, out)
	if !out.OK {
		return by
	}
	larger := &enlarged{}
	s.larger = larger
	holds := s.holds(e, sum)
	for i := 0; holds && i < len(larger.all) && len(larger.all) > 1; i++ {
		larger.only = &larger.all[i]
		holds = s.holds(e, sum)
	}
	if len(larger.all) == 0 || holds && e.root.op != "!=" {
		return by
	}
	*out = record.Expect{That: out.That, Unmeasured: true,
		Note: larger.why + ", so only a lower bound of it can be met"}
	return math.Inf(-1)
}

// holds reports whether an expression is met with the values of s.valueOf.
func (s Scope) holds(e *Expr, sum *record.Summary) bool {
	var out record.Expect
	s.weigh(e, sum, &out)
	return out.OK
}

// enlarged are the lower bounds in an expression, which all stand for larger values at once, or
// each for itself: two of them may be far apart.
type enlarged struct {
	all  []bounded
	only *bounded // nil: all
	why  string   // the latest of all is a lower bound
}

// bounded is a field of a summary that has a lower bound alone.
type bounded struct {
	sum  *record.Summary
	path string
}

// valueOf returns the value of a name for a run. If s.larger is not nil and the value is a lower
// bound, it notes that there, and returns a very large one if s.larger has it enlarged.
func (s Scope) valueOf(e entry, sum *record.Summary) (value, error) {
	v, err := e.get(sum)
	if s.larger == nil || err != nil {
		return v, err
	}
	of := bounded{sum, e.Path}
	why := sum.LowerBound(of.path)
	if why == "" {
		return v, nil
	}
	if !slices.Contains(s.larger.all, of) {
		s.larger.all = append(s.larger.all, of)
		s.larger.why = fmt.Sprintf("%s: not measured: %v is %s", e.Name, v, why)
	}
	if s.larger.only == nil || *s.larger.only == of {
		v.num = veryLarge
	}
	return v, nil
}

// veryLarge exceeds every quantity of a run, in bytes and microseconds.
const veryLarge = 1e30

// weigh is judge for values as s.valueOf returns them.
func (s Scope) weigh(e *Expr, sum *record.Summary, out *record.Expect) float64 {
	sides := []*node{e.root}
	if e.root.op != "name" && e.root.op != "" {
		sides = e.root.args
	}
	var got [2]value
	for i, side := range sides {
		v, err := s.eval(side, sum)
		if err != nil {
			out.Note, out.Unmeasured = err.Error(), true
			return math.Inf(-1)
		}
		got[i] = v
	}
	out.Got, out.Unit, out.Word = got[0].inSummaryUnits(), unitOf(got[0].typ), got[0].word
	if len(sides) == 1 {
		out.OK = got[0].num != 0
	} else {
		out.OK = compare(e.root.op, got[0], got[1])
		if sides[1].op != "" && got[1].typ != wordType {
			want := got[1].inSummaryUnits()
			out.Want = &want
		}
	}
	switch {
	case out.OK:
	case len(sides) == 1:
		out.Note = "false"
	default:
		out.Note = fmt.Sprintf("got %v, expected %s %v", got[0], e.root.op, got[1])
	}
	return margin(e.root.op, out.OK, got)
}

// margin returns by how much a comparison holds, as a share of its right side; negative for a miss.
func margin(op string, ok bool, got [2]value) float64 {
	by := math.Abs(got[0].num - got[1].num)
	if got[1].num != 0 {
		by /= math.Abs(got[1].num)
	}
	switch {
	case !ok:
		return -by
	case op == "<" || op == "<=" || op == ">" || op == ">=" || op == "!=":
		return by
	default: // ==
		return 0
	}
}

// unitOf returns the unit of a type in the summary.
func unitOf(t typ) string {
	switch t {
	case duration:
		return "us"
	case size:
		return "B"
	case rate:
		return "Gb/s"
	case truthType:
		return "bool"
	}
	return ""
}

// All evaluates all lines for one run, except those that compare points, which Sweep evaluates at
// the end of a sweep. A line with a syntax error is missed, with the error as its note.
func All(lines []string, sum *record.Summary, s Scope) []record.Expect {
	out := make([]record.Expect, 0, len(lines))
	for _, line := range lines {
		e, err := Parse(line)
		if err != nil {
			out = append(out, record.Expect{That: line, Note: err.Error(), Unmeasured: true})
			continue
		}
		if !e.Cross() {
			out = append(out, e.Eval(sum, s))
		}
	}
	return out
}

// eval returns the value of an expression with checked types.
func (s Scope) eval(n *node, sum *record.Summary) (value, error) {
	switch n.op {
	case "":
		return n.lit, nil
	case "name":
		if s.picked != nil {
			return s.picked(s, n)
		}
		if e, ok := findEntry(n.name); ok {
			v, err := s.valueOf(e, sum)
			if err != nil {
				return value{}, fmt.Errorf("%s: %w", n.name, err)
			}
			return v, nil
		}
		return s.setting(n.name)
	}
	args := make([]value, len(n.args))
	for i, arg := range n.args {
		v, err := s.eval(arg, sum)
		if err != nil {
			return value{}, err
		}
		args[i] = v
	}
	return apply(n, args)
}

// apply returns the result of one operation.
func apply(n *node, args []value) (value, error) {
	types := make([]typ, len(args))
	for i, a := range args {
		types[i] = a.typ
	}
	t, err := combine(n, types)
	if err != nil {
		return value{}, err
	}
	a, b := args[0].num, args[len(args)-1].num
	switch n.op {
	case "-1":
		a = -a
	case "+":
		a += b
	case "-":
		a -= b
	case "*":
		a *= b
	case "/":
		if b == 0 {
			return value{}, errDivide
		}
		a /= b
	case "abs":
		a = math.Abs(a)
	case "sqrt":
		if a < 0 {
			return value{}, errRoot
		}
		a = math.Sqrt(a)
	case "min", "max", "mean", "median":
		a, err = aggregate(n.op, args)
	}
	if err == nil && !finite(a) {
		err = fmt.Errorf("%s: %w", n.op, errNotFinite)
	}
	return value{typ: t, num: a}, err
}

// finite reports whether n is a number that comparisons and JSON can express.
func finite(n float64) bool { return !math.IsInf(n, 0) && !math.IsNaN(n) }

// aggregate returns the minimum, maximum, mean or median of the arguments and of the lists in them.
func aggregate(op string, args []value) (float64, error) {
	var all []float64
	for _, v := range args {
		if v.typ.list {
			all = append(all, v.list...)
			continue
		}
		all = append(all, v.num)
	}
	switch {
	case len(all) == 0:
		return 0, errors.New("no point of the sweep is selected")
	case op == "min":
		return slices.Min(all), nil
	case op == "max":
		return slices.Max(all), nil
	case op == "mean":
		return stats.Mean(all), nil
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, nil
}

// compare reports whether a comparison holds.
func compare(op string, a, b value) bool {
	equal := a.num == b.num || math.Abs(a.num-b.num) <= tolerance*max(math.Abs(a.num), math.Abs(b.num))
	same := a.word == b.word && equal
	switch op {
	case "==":
		return same
	case "!=":
		return !same
	case "<":
		return a.num < b.num && !same
	case "<=":
		return a.num < b.num || same
	case ">":
		return a.num > b.num && !same
	default: // >=
		return a.num > b.num || same
	}
}
