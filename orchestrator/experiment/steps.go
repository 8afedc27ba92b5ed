package experiment

import (
	"fmt"
	"strings"
	"sync"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
)

// Words that stand for names in stepForms. The name of aSender is the same at each of its places.
const (
	aSwitch = "SWITCH"
	aHost   = "HOST"
	aNode   = "NODE" // a switch or a host
	aSender = "SENDER"
)

// stepForms are the sentences of steps of coordinated congestion management. A test compares them
// with those that package summary writes.
var stepForms = []string{
	"SWITCH tells NODE that HOST to HOST causes incast", "SWITCH tells NODE that no path of HOST to HOST is light",
	"SWITCH tells NODE that HOST to HOST is released", "SWITCH asks NODE for another path of HOST to HOST",
	"SWITCH keeps HOST to HOST off NODE", "SWITCH moves HOST to HOST to NODE",
	"SWITCH sends HOST to HOST by NODE of several", "SWITCH sends HOST to HOST by NODE alone",
	"SENDER takes another source port for SENDER to HOST", "SENDER sets CC of SENDER to HOST",
	"SENDER clears CC of SENDER to HOST",
}

// StepsOf returns NoStep for the network of a lab, which it builds when it is first needed.
func StepsOf(l *lab.Lab) func(pattern string) (why string) {
	network := sync.OnceValues(func() (*topology.Graph, error) { return NetworkOf(l) })
	return func(pattern string) (why string) {
		g, err := network()
		if err != nil {
			return "" // building the network says why
		}
		return NoStep(g, pattern)
	}
}

// NoStep returns why no step of coordinated congestion management in a network can have a text that
// matches a pattern, in which * stands for any text; "" if one can.
func NoStep(g *topology.Graph, pattern string) (why string) {
	names := map[string][]string{}
	for i := range g.Nodes {
		kind := aSwitch
		if i < g.Hosts {
			kind = aHost
		}
		names[kind], names[aNode] = append(names[kind], g.Nodes[i].Name), append(names[aNode], g.Nodes[i].Name)
	}
	words := append(strings.FieldsFunc(pattern, func(r rune) bool { return r == ' ' || r == '*' }), "x")
	named := map[string][]string{aSwitch: words, aHost: words, aNode: words}
	var like []string // forms that have its words, with other names
	for _, form := range stepForms {
		if canMatch(form, pattern, names) {
			return ""
		}
		if canMatch(strings.ReplaceAll(form, aSender, aHost), pattern, named) {
			like = append(like, form)
		}
	}
	if len(like) == 0 || len(like) == len(stepForms) {
		return fmt.Sprintf("no step has the words of %q; expected %s", pattern, strings.Join(stepForms, ", "))
	}
	return fmt.Sprintf("no step of this network matches %q; expected %s, with names of its nodes (`weft graph` draws "+
		"them)", pattern, strings.Join(like, " or "))
}

// canMatch reports whether a form with some of the names of each kind matches a pattern.
func canMatch(form, pattern string, names map[string][]string) bool {
	if strings.Contains(form, aSender) {
		for _, name := range names[aHost] {
			if canMatch(strings.ReplaceAll(form, aSender, name), pattern, names) {
				return true
			}
		}
		return false
	}
	at := make(states, len(pattern)+1)
	at.reach(pattern, 0)
	for i, word := range strings.Split(form, " ") {
		if i > 0 {
			at = at.after(pattern, " ")
		}
		all := names[word]
		if all == nil {
			all = []string{word}
		}
		next := make(states, len(at))
		for _, name := range all {
			for p, reached := range at.after(pattern, name) {
				next[p] = next[p] || reached
			}
		}
		at = next
	}
	return at[len(pattern)]
}

// states are the positions in a pattern that the text so far can reach.
type states []bool

// reach adds a position, and those behind a * there, which may stand for no text.
func (s states) reach(pattern string, at int) {
	for s[at] = true; at < len(pattern) && pattern[at] == '*'; s[at] = true {
		at++
	}
}

// after returns the positions after more text.
func (s states) after(pattern, text string) states {
	for i := range len(text) {
		next, alive := make(states, len(s)), false
		for p := range len(pattern) {
			switch {
			case !s[p]:
				continue
			case pattern[p] == '*':
				next.reach(pattern, p)
			case pattern[p] == text[i]:
				next.reach(pattern, p+1)
			default:
				continue
			}
			alive = true
		}
		if s = next; !alive {
			break
		}
	}
	return s
}
