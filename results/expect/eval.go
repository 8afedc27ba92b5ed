package expect

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"weft/results/record"
	"weft/results/stats"
)

// tolerance is the relative difference up to which two numbers count as equal: the rounding of 1.1 * 10 and its
// like, not a margin for measurements.
const tolerance = 1e-9

var (
	errDivide = errors.New("division by zero")
	errRoot   = errors.New("square root of a negative number")
)

// Eval applies the expression to the summary of a run. Got is the left side of the comparison in the units of
// the summary: microseconds, bytes, Gb/s; 1 and 0 stand for true and false. Want is the right side, if that is more than a literal. A line that cannot be evaluated
// counts as missed, and Note says why; so does a miss.
func (e *Expr) Eval(sum *record.Summary, s Scope) record.Expect {
	out := record.Expect{That: e.text}
	if err := e.Check(s); err != nil {
		out.Note = err.Error()
		return out
	}
	if e.Cross() {
		out.Note = "it compares points of a sweep, and this is one run"
		return out
	}
	s.judge(e, sum, &out)
	return out
}

// judge fills in how the comparison of an expression comes out. It returns by how much the comparison holds, as a share of
// the right side: negative for a miss, minus infinity for one that cannot be judged.
func (s Scope) judge(e *Expr, sum *record.Summary, out *record.Expect) float64 {
	sides := []*node{e.root}
	if e.root.op != "name" && e.root.op != "" {
		sides = e.root.args
	}
	var got [2]value
	for i, side := range sides {
		v, err := s.eval(side, sum)
		if err != nil {
			out.Note = err.Error()
			return math.Inf(-1)
		}
		got[i] = v
	}
	out.Got, out.Unit, out.Word = got[0].natural(), unitOf(got[0].typ), got[0].word
	if len(sides) == 1 {
		out.OK = got[0].num != 0
	} else {
		out.OK = compare(e.root.op, got[0], got[1])
		if sides[1].op != "" && got[1].typ != aWord {
			want := got[1].natural()
			out.Want = &want
		}
	}
	switch {
	case out.OK:
	case len(sides) == 1:
		out.Note = "it is false"
	default:
		out.Note = fmt.Sprintf("%v is not %s %v", got[0], e.root.op, got[1])
	}
	return margin(e.root.op, out.OK, got)
}

// margin is by how much a comparison holds, as a share of its right side; negative for a miss.
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
	default: // as equal as any other
		return 0
	}
}

// unitOf is the unit of the natural value of a type.
func unitOf(t typ) string {
	switch t {
	case span:
		return "us"
	case size:
		return "B"
	case rate:
		return "Gb/s"
	case aTruth:
		return "bool"
	}
	return ""
}

// All evaluates every line but those that compare points of a sweep, which Sweep does when all points are there. Lines
// that do not parse are missed, with the error as their note.
func All(lines []string, sum *record.Summary, s Scope) []record.Expect {
	out := make([]record.Expect, 0, len(lines))
	for _, line := range lines {
		e, err := Parse(line)
		if err != nil {
			out = append(out, record.Expect{That: line, Note: err.Error()})
			continue
		}
		if !e.Cross() {
			out = append(out, e.Eval(sum, s))
		}
	}
	return out
}

// eval computes the value of an expression whose types were checked.
func (s Scope) eval(n *node, sum *record.Summary) (value, error) {
	switch n.op {
	case "":
		return n.lit, nil
	case "name":
		if s.picked != nil {
			return s.picked(n)
		}
		if e, ok := find(n.name); ok {
			v, err := e.get(sum)
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

// apply computes one operation.
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
	return value{typ: t, num: a}, err
}

// aggregate is one number for all that the arguments hold.
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
		return 0, errors.New("no point of the sweep is meant")
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

// compare decides a comparison.
func compare(op string, a, b value) bool {
	same := a.word == b.word && (a.num == b.num || math.Abs(a.num-b.num) <= tolerance*max(math.Abs(a.num), math.Abs(b.num)))
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
