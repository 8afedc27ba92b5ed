package expect

import (
	"fmt"
	"slices"
)

// A Scope is the lab that an expression refers to.
type Scope struct {
	// Setting returns a setting of the resolved lab as text: "2us" for transport.pc4.target_qtime.
	// Without the lab it is nil, and every path may exist.
	Setting func(path string) (text string, ok bool)
	// Items is the number of items of the workload, which bounds N in collective.N; 0 if unknown.
	Items int
	// Metrics are the names of metrics that programs of the workload print.
	Metrics []string
	// NoStep returns why no step of the lab can match a pattern; "" if one can. nil: it is not
	// known.
	NoStep func(pattern string) (why string)

	picked func(s Scope, n *node) (value, error) // returns the value of a name in a sweep; nil for one run
	larger *enlarged                             // see Scope.valueOf; nil: values are as they were measured
}

// Check returns an *Error for names that the lab does not have and units that do not match.
func (e *Expr) Check(s Scope) error {
	t, err := s.typeOf(e.root)
	if err != nil {
		return err
	}
	if t.shape != truth && t.shape != unknown {
		return errorAt(e.root.at, "%v is not an expectation; compare it with something", t)
	}
	return nil
}

// typeOf returns the type of an expression.
func (s Scope) typeOf(n *node) (typ, error) {
	switch n.op {
	case "":
		return n.lit.typ, nil
	case "name":
		t, err := s.typeOfName(n)
		t.list = n.isList()
		return t, err
	}
	types := make([]typ, len(n.args))
	for i, arg := range n.args {
		t, err := s.typeOf(arg)
		if err != nil {
			return typ{}, err
		}
		types[i] = t
	}
	if n.op == "/" && s.isZero(n.args[1]) {
		return typ{}, errorAt(n.at, "%v", errDivide)
	}
	return combine(n, types)
}

// isZero reports whether an expression is 0 for every run.
func (s Scope) isZero(n *node) bool {
	if !s.constant(n) {
		return false
	}
	v, err := s.eval(n, nil)
	return err == nil && v.typ.shape == number && v.num == 0
}

// constant reports whether an expression has only literals, and settings of a known lab.
func (s Scope) constant(n *node) bool {
	if n.op == "name" {
		return s.Setting != nil && setting(n.name)
	}
	for _, arg := range n.args {
		if !s.constant(arg) {
			return false
		}
	}
	return true
}

// typeOfName returns the type of a name of the summary or the lab.
func (s Scope) typeOfName(n *node) (typ, error) {
	if e, ok := findEntry(n.name); ok {
		if e.Item() && s.Items > 0 && e.Index >= s.Items {
			return typ{}, errorAt(n.at, "%s: the last item of the workload is collective.%d", n.name, s.Items-1)
		}
		if metric := metricOf(n.name); metric != "" && s.Setting != nil && !slices.Contains(s.Metrics, metric) {
			return typ{}, errorAt(n.at, "%s: no metrics of a program in the workload have a group %s", n.name, metric)
		}
		if pattern, is := stepPattern(n.name); is && s.NoStep != nil {
			if why := s.NoStep(pattern); why != "" {
				return typ{}, errorAt(n.at, "%s", why)
			}
		}
		return e.typ, nil
	}
	if s.Setting == nil {
		return typ{}, nil
	}
	v, err := s.setting(n.name)
	if err != nil {
		return typ{}, errorAt(n.at, "%v", err)
	}
	return v.typ, nil
}

// setting returns the value of a setting of the lab.
func (s Scope) setting(path string) (value, error) {
	if s.Setting == nil {
		return value{}, fmt.Errorf("%s is unknown without the lab", path)
	}
	text, ok := s.Setting(path)
	if !ok {
		return value{}, fmt.Errorf("the lab has no setting %s; `weft explain` lists them", path)
	}
	v, err := quantity(text)
	if err != nil {
		return value{}, fmt.Errorf("%s is %q, not a quantity", path, text)
	}
	return v, nil
}

// combine returns the type of an operation on operands of the given types.
func combine(n *node, types []typ) (typ, error) {
	comparison, several := false, false
	switch n.op {
	case "==", "!=", "<", "<=", ">", ">=":
		comparison = true
	case "min", "max", "mean", "median":
		several = true
	}
	types = slices.Clone(types)
	for i := range types {
		if types[i].list && !several {
			return typ{}, errorAt(n.args[i].at, "this is one value for each point; take min, max, mean or median of it")
		}
		types[i].list = false
	}
	first := types[0]
	for i, t := range types {
		switch {
		case t.shape == unknown || first.shape == unknown:
		case t.shape != number && (!comparison || n.op != "==" && n.op != "!="):
			return typ{}, errorAt(n.args[i].at, "%v cannot be used with %s", t, n.op)
		case n.op == "sqrt" && t != plain:
			return typ{}, errorAt(n.args[i].at, "sqrt of %v; expected a plain number", t)
		case n.op == "*" || n.op == "/":
		case t != first:
			return typ{}, errorAt(n.at, "%s between %v and %v; give both the same unit", n.op, first, t)
		}
	}
	switch {
	case comparison:
		return truthType, nil
	case n.op != "*" && n.op != "/":
		return firstKnown(types), nil
	case types[0].shape == unknown || types[1].shape == unknown:
		return typ{}, nil
	}
	sign := int8(1)
	if n.op == "/" {
		sign = -1
	}
	d := dim{first.dim.time + sign*types[1].dim.time, first.dim.data + sign*types[1].dim.data}
	if max(d.time, -d.time, d.data, -d.data) > 9 {
		return typ{}, errorAt(n.at, "%s results in a power above 9", n.op)
	}
	return typ{shape: number, dim: d}, nil
}

// firstKnown returns the first known type.
func firstKnown(types []typ) typ {
	for _, t := range types {
		if t.shape != unknown {
			return t
		}
	}
	return typ{}
}
