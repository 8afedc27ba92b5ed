package expect

import (
	"errors"
	"fmt"
	"math"

	"weft/results/record"
)

// tolerance is the relative difference up to which two numbers count as equal: the rounding of 1.1 * 10 and its
// like, not a margin for measurements.
const tolerance = 1e-9

var (
	errDivide = errors.New("division by zero")
	errRoot   = errors.New("square root of a negative number")
)

// Eval applies the expression to the summary of a run. Got is the left side of the comparison in the units of
// the summary: microseconds, bytes, Gb/s; 1 and 0 stand for true and false. A line that cannot be evaluated
// counts as missed, and Note says why; so does a miss.
func (e *Expr) Eval(sum *record.Summary, s Scope) record.Expect {
	out := record.Expect{That: e.text}
	if err := e.Check(s); err != nil {
		out.Note = err.Error()
		return out
	}
	sides := []*node{e.root}
	if e.root.op != "name" && e.root.op != "" {
		sides = e.root.args
	}
	var got [2]value
	for i, side := range sides {
		v, err := s.eval(side, sum)
		if err != nil {
			out.Note = err.Error()
			return out
		}
		got[i] = v
	}
	out.Got = got[0].natural()
	if len(sides) == 1 {
		out.OK = got[0].num != 0
	} else {
		out.OK = compare(e.root.op, got[0], got[1])
	}
	switch {
	case out.OK:
	case len(sides) == 1:
		out.Note = "it is false"
	default:
		out.Note = fmt.Sprintf("%v is not %s %v", got[0], e.root.op, got[1])
	}
	return out
}

// All evaluates every line. Lines that do not parse are missed, with the error as their note.
func All(lines []string, sum *record.Summary, s Scope) []record.Expect {
	out := make([]record.Expect, 0, len(lines))
	for _, line := range lines {
		e, err := Parse(line)
		if err != nil {
			out = append(out, record.Expect{That: line, Note: err.Error()})
			continue
		}
		out = append(out, e.Eval(sum, s))
	}
	return out
}

// eval computes the value of an expression whose types were checked.
func (s Scope) eval(n *node, sum *record.Summary) (value, error) {
	switch n.op {
	case "":
		return n.lit, nil
	case "name":
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
	case "min", "max":
		for _, v := range args {
			if n.op == "min" {
				a = min(a, v.num)
			} else {
				a = max(a, v.num)
			}
		}
	}
	return value{typ: t, num: a}, nil
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
