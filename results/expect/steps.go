package expect

import (
	"errors"
	"strings"

	"weft/results/record"
)

var (
	errNoStep   = errors.New("no such step happened")
	errMoreStep = errors.New("more kinds of steps happened than a summary keeps; events.jsonl has them")
)

// aboutSteps says whether a function is of steps.
func aboutSteps(name string) bool { return name == "steps" || name == "first" || name == "last" }

// steps parses the argument of a function of steps. What comes out is a name: the function and its pattern.
func (p *parser) steps(name token) (*node, error) {
	open := p.next()
	t := p.next()
	if t.kind != quoted || len(t.text) < 3 {
		return nil, fail(t.at, "expected what a step reads like, in double quotes, found %v", t)
	}
	return &node{op: "name", at: name.at, name: name.text + "(" + t.text + ")"}, p.closing(open)
}

// ofSteps returns the entry of a name that steps made.
func ofSteps(name string) (entry, bool) {
	function, rest, ok := strings.Cut(name, "(\"")
	pattern, closed := strings.CutSuffix(rest, "\")")
	if !ok || !closed || !aboutSteps(function) {
		return entry{}, false
	}
	t := span
	if function == "steps" {
		t = plain
	}
	return entry{name, t, func(s *record.Summary) (value, error) {
		if s.Network.CCM == nil {
			return value{typ: t}, errNoCCM
		}
		return among(s.Network.CCM, function, t, pattern)
	}}, true
}

// among counts the steps that read like pattern, or finds the first or the last.
func among(c *record.CCM, function string, t typ, pattern string) (value, error) {
	var count int64
	v := value{typ: t}
	for _, s := range c.Steps {
		if !like(s.Step, pattern) {
			continue
		}
		switch {
		case function == "first" && (count == 0 || s.FirstUS < v.num):
			v.num = s.FirstUS
		case function == "last" && (count == 0 || s.LastUS > v.num):
			v.num = s.LastUS
		}
		count += s.Count
	}
	switch {
	case c.Unkept > 0:
		return v, errMoreStep
	case function == "steps":
		v.num = float64(count)
	case count == 0:
		return v, errNoStep
	}
	return v, nil
}

// like says whether text is pattern, in which * is any text.
func like(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && text == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
