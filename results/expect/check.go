package expect

import (
	"fmt"
	"slices"
)

// Scope is what an expression may refer to beside the summary.
type Scope struct {
	// Setting returns a setting of the resolved lab as text (transport.pc4.target_qtime is "2us"). Nil: the lab
	// is not at hand, and every path is taken to exist.
	Setting func(path string) (text string, ok bool)
	// Items is the number of items of the workload, which bounds N in collective.N. 0: not known.
	Items int

	picked func(n *node) (value, error) // what a name stands for while points are compared; nil: the one run's
}

// Check reports, as *Error, names that the lab does not have and units that do not fit.
func (e *Expr) Check(s Scope) error {
	t, err := s.typeOf(e.root)
	if err != nil {
		return err
	}
	if t.shape != truth && t.shape != unknown {
		return fail(e.root.at, "%v is not an expectation; compare it with something", t)
	}
	return nil
}

// typeOf returns the type of an expression, or why it has none.
func (s Scope) typeOf(n *node) (typ, error) {
	switch n.op {
	case "":
		return n.lit.typ, nil
	case "name":
		t, err := s.typeOfName(n)
		t.list = n.many()
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
	if n.op == "/" && s.zero(n.args[1]) {
		return typ{}, fail(n.at, "%v", errDivide)
	}
	return combine(n, types)
}

// zero reports whether an expression is 0 whatever a run measures.
func (s Scope) zero(n *node) bool {
	if !s.constant(n) {
		return false
	}
	v, err := s.eval(n, nil)
	return err == nil && v.typ.shape == number && v.num == 0
}

// constant reports whether an expression is made of literals, and of settings if the lab is at hand.
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

func (s Scope) typeOfName(n *node) (typ, error) {
	if e, ok := find(n.name); ok {
		if i, _, indexed := numbered("collective.", n.name, collectiveFields()); indexed && s.Items > 0 && i >= s.Items {
			return typ{}, fail(n.at, "%s: the last item of the workload is collective.%d", n.name, s.Items-1)
		}
		return e.typ, nil
	}
	if s.Setting == nil {
		return typ{}, nil
	}
	v, err := s.setting(n.name)
	if err != nil {
		return typ{}, fail(n.at, "%v", err)
	}
	return v.typ, nil
}

// setting returns the value of a setting of the lab.
func (s Scope) setting(path string) (value, error) {
	if s.Setting == nil {
		return value{}, fmt.Errorf("the lab's %s is not at hand", path)
	}
	text, ok := s.Setting(path)
	if !ok {
		return value{}, fmt.Errorf("the lab has no setting %s; `weft explain` lists them", path)
	}
	v, err := quantity(text)
	if err != nil {
		return value{}, fmt.Errorf("%s is %q, which is no quantity", path, text)
	}
	return v, nil
}

// combine is the type of an operation on operands of the given types.
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
			return typ{}, fail(n.args[i].at, "this is one value for each point; take min, max, mean or median of it")
		}
		types[i].list = false
	}
	first := types[0]
	for i, t := range types {
		switch {
		case t.shape == unknown || first.shape == unknown:
		case t.shape != number && (!comparison || n.op != "==" && n.op != "!="):
			return typ{}, fail(n.args[i].at, "%v cannot be used with %s", t, n.op)
		case n.op == "sqrt" && t != plain:
			return typ{}, fail(n.args[i].at, "sqrt of %v; expected a plain number", t)
		case n.op == "*" || n.op == "/":
		case t != first:
			return typ{}, fail(n.at, "%s between %v and %v", n.op, first, t)
		}
	}
	switch {
	case comparison:
		return aTruth, nil
	case n.op != "*" && n.op != "/":
		return known(types), nil
	case types[0].shape == unknown || types[1].shape == unknown:
		return typ{}, nil
	}
	sign := int8(1)
	if n.op == "/" {
		sign = -1
	}
	d := dim{first.dim.time + sign*types[1].dim.time, first.dim.data + sign*types[1].dim.data}
	if max(d.time, -d.time, d.data, -d.data) > 9 {
		return typ{}, fail(n.at, "%s gives a quantity of a power above 9", n.op)
	}
	return typ{shape: number, dim: d}, nil
}

// known returns the first type that is known.
func known(types []typ) typ {
	for _, t := range types {
		if t.shape != unknown {
			return t
		}
	}
	return typ{}
}
