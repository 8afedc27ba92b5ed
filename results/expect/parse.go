package expect

import "strings"

// Bounds that no sensible line comes near.
const (
	maxLen   = 1000
	maxDepth = 50
)

// Expr is a parsed line.
type Expr struct {
	text string
	root *node
}

// node is a part of an expression. op is one of the operators, the name of a function, "-1" for a sign, "" for
// a literal and "name" for a name.
type node struct {
	op   string
	at   int
	args []*node
	lit  value
	name string
	pick []selector // of a name: which points of a sweep are meant
}

// Parse reads one line of an expect section. It reports, as *Error, bad syntax, names that nothing has and
// units that do not fit, as far as that shows without the lab; Check does the rest.
func Parse(text string) (*Expr, error) {
	e, err := parse(text)
	if err != nil {
		return nil, err
	}
	return e, e.Check(Scope{})
}

// parse reads an expression of any type.
func parse(text string) (*Expr, error) {
	if len(text) > maxLen {
		return nil, fail(maxLen, "the line is longer than %d bytes", maxLen)
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

type parser struct {
	rest  []token
	depth int
}

func (p *parser) peek() token { return p.rest[0] }

// next takes a token. The last one, end, stays.
func (p *parser) next() token {
	t := p.rest[0]
	if t.kind != end {
		p.rest = p.rest[1:]
	}
	return t
}

// take takes the next token if it is one of the operators in ops.
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

func (p *parser) line() (*node, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	comparisons := []string{"==", "!=", "<", "<=", ">", ">="}
	if t, ok := p.take(comparisons...); ok {
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		left = &node{op: t.text, at: t.at, args: []*node{left, right}}
		if t, again := p.take(comparisons...); again {
			return nil, fail(t.at, "a line holds one comparison; write a second line")
		}
	}
	if t := p.peek(); t.kind != end {
		return nil, fail(t.at, "expected an operator, found %v", t)
	}
	return left, nil
}

func (p *parser) sum() (*node, error)     { return p.chain(p.product, "+", "-") }
func (p *parser) product() (*node, error) { return p.chain(p.factor, "*", "/") }

// chain parses parts joined by the operators, from the left.
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

func (p *parser) factor() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fail(p.peek().at, "nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	switch t := p.next(); {
	case t.kind == quantityToken:
		v, err := quantity(t.text)
		if err != nil {
			return nil, fail(t.at, "%v", err)
		}
		return &node{at: t.at, lit: v}, nil
	case t.kind == nameToken && p.peek().text == "(" && aboutSteps(t.text):
		n, err := p.steps(t)
		if err == nil && p.peek().kind == selection {
			err = n.selects(p.next())
		}
		return n, err
	case t.kind == nameToken && p.peek().text == "(":
		return p.call(t)
	case t.kind == nameToken:
		n, err := named(t)
		if err == nil && p.peek().kind == selection {
			err = n.selects(p.next())
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
		return nil, fail(t.at, "expected a number or a name, found %v", t)
	}
}

// call parses the arguments of a function.
func (p *parser) call(name token) (*node, error) {
	n := &node{op: name.text, at: name.at}
	switch name.text {
	case "abs", "min", "max", "sqrt", "mean", "median":
	default:
		return nil, fail(name.at, "there is no function %q; there are abs, min, max, mean, median, sqrt, and of steps: steps, first, last", name.text)
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
		return nil, fail(name.at, "%s takes one argument, not %d", name.text, len(n.args))
	}
	return n, nil
}

func (p *parser) closing(open token) error {
	if t, ok := p.take(")"); !ok {
		return fail(t.at, "expected ) for the ( in column %d, found %v", open.at+1, t)
	}
	return nil
}

// named makes a literal of true, false and the verdicts, and a name of everything else that something has.
func named(t token) (*node, error) {
	switch t.text {
	case "true", "false":
		return &node{at: t.at, lit: boolean(t.text == "true")}, nil
	case "ok", "degraded", "invalid":
		return &node{at: t.at, lit: value{typ: aWord, word: t.text}}, nil
	}
	if _, ok := find(t.text); !ok && !setting(t.text) {
		return nil, fail(t.at, "nothing is called %q%s", t.text, suggestion(t.text))
	}
	return &node{op: "name", at: t.at, name: t.text}, nil
}

// setting reports whether name is a path into a lab file.
func setting(name string) bool {
	section, _, dotted := strings.Cut(name, ".")
	switch section {
	case "topology", "queues", "clocks", "transport", "workload", "measure", "engine":
		return dotted
	}
	return false
}
