package expect

import (
	"slices"
	"strings"

	"weft/results/record"
)

// Limits of a line, far above any sensible one: bytes, and levels of nesting.
const (
	maxLen   = 1000
	maxDepth = 50
)

// An Expr is a parsed line.
type Expr struct {
	text string
	root *node
}

// A node is a node of the syntax tree.
type node struct {
	op   string // an operator, a function, "-1" for a sign, "" for a literal, "name" for a name
	at   int    // byte of the text
	args []*node
	lit  value      // of a literal
	name string     // of a name
	pick []selector // of a name: its selection of points
}

// Parse parses one line of an expect section. It returns an *Error for bad syntax, unknown names
// and units that do not match, as far as it can know without the lab; Expr.Check does the rest.
func Parse(text string) (*Expr, error) {
	e, err := parse(text)
	if err != nil {
		return nil, err
	}
	return e, e.Check(Scope{})
}

// OneSided reports whether a line bounds a value from one side by a number of its own, as in
// "fct.p99 <= 10us" or "a <= 1.5 * b". An order of two measured values ("a <= b") and a distance
// ("abs(a - b) <= 10% * b") are none.
func (e *Expr) OneSided() bool {
	switch e.root.op {
	case "<", "<=", ">", ">=":
	default:
		return false
	}
	return e.root.args[0].op != "abs" && slices.ContainsFunc(e.root.args, (*node).hasNumber)
}

// hasNumber reports whether a literal number is part of an expression; selections do not count.
func (n *node) hasNumber() bool {
	return n.op == "" && n.lit.typ.shape == number || slices.ContainsFunc(n.args, (*node).hasNumber)
}

// parse parses an expression of any type.
func parse(text string) (*Expr, error) {
	if len(text) > maxLen {
		return nil, errorAt(maxLen, "the line is longer than %d bytes", maxLen)
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{rest: tokens}
	root, err := p.line()
	if err != nil {
		return nil, err
	}
	return &Expr{text: text, root: root}, nil
}

// A parser is a recursive descent parser; the package doc has the grammar.
type parser struct {
	rest  []token
	last  token // returned by next before
	depth int
}

func (p *parser) peek() token { return p.rest[0] }

// next returns the next token and advances, except at the end.
func (p *parser) next() token {
	t := p.rest[0]
	if t.kind != end {
		p.rest = p.rest[1:]
	}
	p.last = t
	return t
}

// take consumes the next token if it is one of the operators ops.
func (p *parser) take(ops ...string) (token, bool) {
	t := p.peek()
	if t.kind == operator {
		for _, op := range ops {
			if t.text == op {
				return p.next(), true
			}
		}
	}
	return t, false
}

// line parses a whole line: a comparison, or one side of it.
func (p *parser) line() (*node, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	comparisons := []string{"==", "!=", "<", "<=", ">", ">="}
	if t, ok := p.take(comparisons...); ok {
		if w := p.peek(); left.op == "name" && setting(left.name) && isWord(w) && p.rest[1].text != "(" {
			return nil, errorAt(w.at, "%s: only a condition compares a setting with a word; write what is expected, "+
				"then when %[2]s %[3]s %[1]s", w.text, left.name, t.text)
		}
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		left = &node{op: t.text, at: t.at, args: []*node{left, right}}
		if t, again := p.take(comparisons...); again {
			return nil, errorAt(t.at, "a line has one comparison; write a second line")
		}
	}
	if t := p.peek(); t.kind != end {
		if n := p.last; n.kind == quantityToken && t.kind == nameToken {
			if _, err := quantity(n.text + t.text); err == nil {
				return nil, errorAt(n.at, "%s %s has a space; write %[1]s%[2]s", n.text, t.text)
			}
		}
		return nil, errorAt(t.at, "expected an operator, found %v", t)
	}
	return left, nil
}

func (p *parser) sum() (*node, error)     { return p.chain(p.product, "+", "-") }
func (p *parser) product() (*node, error) { return p.chain(p.factor, "*", "/") }

// chain parses operands joined by left-associative operators.
func (p *parser) chain(part func() (*node, error), ops ...string) (*node, error) {
	left, err := part()
	for err == nil {
		t, ok := p.take(ops...)
		if !ok {
			break
		}
		var right *node
		right, err = part()
		left = &node{op: t.text, at: t.at, args: []*node{left, right}}
	}
	return left, err
}

// factor parses a literal, a name, a call, a negation or an expression in parentheses.
func (p *parser) factor() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errorAt(p.peek().at, "nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	switch t := p.next(); {
	case t.kind == quantityToken:
		v, err := quantity(t.text)
		if err != nil {
			return nil, errorAt(t.at, "%v", err)
		}
		return &node{at: t.at, lit: v}, nil
	case t.kind == nameToken && p.peek().text == "(" && !isStepFunction(t.text):
		return p.call(t)
	case t.kind == nameToken:
		parse := nameNode
		if p.peek().text == "(" {
			parse = p.steps
		}
		n, err := parse(t)
		if err == nil && p.peek().kind == selection {
			err = n.addSelection(p.next())
		}
		return n, err
	case t.text == "-" && t.kind == operator:
		arg, err := p.factor()
		return &node{op: "-1", at: t.at, args: []*node{arg}}, err
	case t.text == "(" && t.kind == operator:
		inner, err := p.sum()
		if err != nil {
			return nil, err
		}
		return inner, p.closing(t)
	default:
		return nil, errorAt(t.at, "expected a number or a name, found %v", t)
	}
}

// call parses the arguments of a function.
func (p *parser) call(name token) (*node, error) {
	n := &node{op: name.text, at: name.at}
	switch name.text {
	case "abs", "min", "max", "sqrt", "mean", "median":
	default:
		return nil, errorAt(name.at, "unknown function %q; expected abs, min, max, mean, median, sqrt, steps, first "+
			"or last", name.text)
	}
	open := p.next()
	for {
		arg, err := p.sum()
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, arg)
		if _, more := p.take(","); !more {
			break
		}
	}
	if err := p.closing(open); err != nil {
		return nil, err
	}
	if (name.text == "abs" || name.text == "sqrt") && len(n.args) != 1 {
		return nil, errorAt(name.at, "%s takes one argument, not %d", name.text, len(n.args))
	}
	return n, nil
}

// closing consumes the ) for open.
func (p *parser) closing(open token) error {
	if t, ok := p.take(")"); !ok {
		return errorAt(t.at, "expected ) for the ( in column %d, found %v", open.at+1, t)
	}
	return nil
}

// nameNode returns a literal for true, false and the verdicts of fidelity, and a name node for a
// name of the summary or the lab.
func nameNode(t token) (*node, error) {
	switch t.text {
	case "true", "false":
		return &node{at: t.at, lit: truthValue(t.text == "true")}, nil
	}
	if slices.Contains(record.Verdicts(), t.text) {
		return &node{at: t.at, lit: value{typ: wordType, word: t.text}}, nil
	}
	if _, ok := findEntry(t.text); !ok && !setting(t.text) {
		return nil, errorAt(t.at, "unknown name %q%s", t.text, suggestion(t.text))
	}
	return &node{op: "name", at: t.at, name: t.text}, nil
}

// isWord reports whether a token is a name without a dot that stands for nothing in an expectation.
func isWord(t token) bool {
	_, known := findEntry(t.text)
	return t.kind == nameToken && !known && !setting(t.text) && !strings.Contains(t.text, ".") &&
		t.text != "true" && t.text != "false"
}

// setting reports whether name looks like a path of a lab file.
func setting(name string) bool {
	section, _, dotted := strings.Cut(name, ".")
	switch section {
	case "topology", "queues", "clocks", "transport", "workload", "measure", "engine", "faults", "background":
		return dotted
	case "seed":
		return !dotted
	}
	return false
}
