package expect

import (
	"errors"
	"strings"

	"weft/results/record"
)

var (
	errNoStep   = errors.New("no such step happened")
	errMoreStep = errors.New("more kinds of steps happened than the summary keeps; see events.jsonl")
)

// isStepFunction reports whether a function is about steps.
func isStepFunction(name string) bool { return name == "steps" || name == "first" || name == "last" }

// steps parses the argument of a step function. The result is a name node: the function and its
// pattern.
func (p *parser) steps(name token) (*node, error) {
	open := p.next()
	t := p.next()
	if t.kind != quoted || len(t.text) < 3 {
		return nil, errorAt(t.at, "expected the text of a step in double quotes, found %v", t)
	}
	return &node{op: "name", at: name.at, name: name.text + "(" + t.text + ")"}, p.closing(open)
}

// stepNumber returns the number of a name by parser.steps.
func stepNumber(name string) (n record.Number, ok bool) {
	pattern, ok := stepPattern(name)
	if !ok {
		return n, false
	}
	function, _, _ := strings.Cut(name, "(")
	n = record.Number{Name: name, Unit: record.Microseconds, Of: func(s *record.Summary) (float64, error) {
		if s.Network.CCM == nil {
			return 0, record.ErrNoCCM
		}
		return findSteps(s.Network.CCM, function, pattern)
	}}
	if function == "steps" {
		n.Unit = record.Plain
	}
	return n, true
}

// stepPattern returns the pattern of a name by parser.steps.
func stepPattern(name string) (pattern string, ok bool) {
	function, rest, ok := strings.Cut(name, "(\"")
	pattern, closed := strings.CutSuffix(rest, "\")")
	return pattern, ok && closed && isStepFunction(function)
}

// findSteps returns the number of steps that match pattern, or the time of the first or last one in
// microseconds.
func findSteps(c *record.CCM, function, pattern string) (float64, error) {
	var count int64
	var at float64
	for _, s := range c.Steps {
		if !matchesPattern(s.Step, pattern) {
			continue
		}
		switch {
		case function == "first" && (count == 0 || s.FirstUS < at):
			at = s.FirstUS
		case function == "last" && (count == 0 || s.LastUS > at):
			at = s.LastUS
		}
		count += s.Count
	}
	switch {
	case c.Unkept > 0:
		return 0, errMoreStep
	case function == "steps":
		return float64(count), nil
	}
	if count == 0 {
		return 0, errNoStep
	}
	return at, nil
}

// matchesPattern reports whether text matches pattern, in which * stands for any text.
func matchesPattern(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && text == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
