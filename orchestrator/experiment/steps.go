package experiment

import (
	"fmt"
	"strings"
	"sync"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
)

// Words that stand for names in stepForms. The name of aSender is the same at each of its places,
// and the receiver of a flow is another host than its sender.
const (
	aSwitch = "SWITCH"
	aHost   = "HOST"
	aNode   = "NODE" // a switch or a host, other than the switch before
	aNext   = "NEXT" // a switch with a link to the switch before
	aSender = "SENDER"
)

// stepForms are the sentences of steps of coordinated congestion management. A test compares them
// with those that package summary writes.
var stepForms = []string{
	"SWITCH tells NODE that HOST to HOST causes incast", "SWITCH tells NODE that no path of HOST to HOST is light",
	"SWITCH tells NODE that HOST to HOST is released", "SWITCH asks NODE for another path of HOST to HOST",
	"SWITCH keeps HOST to HOST off NEXT", "SWITCH moves HOST to HOST to NEXT",
	"SWITCH sends HOST to HOST by NEXT of several", "SWITCH sends HOST to HOST by NEXT alone",
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
	net := stepNames{next: map[string][]string{}}
	for i := range g.Nodes {
		if name := g.Nodes[i].Name; i < g.Hosts {
			net.hosts = append(net.hosts, name)
		} else {
			net.switches = append(net.switches, name)
		}
	}
	for i := range g.Links {
		a, b := g.Links[i].A, g.Links[i].B
		if int(min(a, b)) >= g.Hosts {
			net.next[g.Nodes[a].Name] = append(net.next[g.Nodes[a].Name], g.Nodes[b].Name)
			net.next[g.Nodes[b].Name] = append(net.next[g.Nodes[b].Name], g.Nodes[a].Name)
		}
	}
	words := append(strings.FieldsFunc(pattern, func(r rune) bool { return r == ' ' || r == '*' }), "x")
	any := stepNames{hosts: words, switches: words}
	var like []string // forms that have its words, with other names
	for _, form := range stepForms {
		if net.canMatch(form, pattern) {
			return ""
		}
		if any.canMatch(strings.ReplaceAll(form, aSender, aHost), pattern) {
			like = append(like, form)
		}
	}
	if len(like) == 0 || len(like) == len(stepForms) {
		return fmt.Sprintf("no step has the words of %q; expected %s", pattern, strings.Join(stepForms, ", "))
	}
	return fmt.Sprintf("no step of this network matches %q; expected %s, with names of its nodes (`weft graph` draws "+
		"them): HOST to HOST are two, NEXT is a switch with a link to SWITCH, and NODE another node", pattern,
		strings.Join(like, " or "))
}

// stepNames are the names that forms of steps may have.
type stepNames struct {
	hosts, switches []string
	next            map[string][]string // switches with a link to a switch; nil: any name, and all may be equal
}

// canMatch reports whether a form with some of the names matches a pattern.
func (n *stepNames) canMatch(form, pattern string) bool {
	at := make(states, len(pattern)+1)
	at.reach(pattern, 0)
	words := strings.Split(form, " ")
	first, all := aSwitch, n.switches
	if words[0] == aSender {
		first, all = aSender, n.hosts
	}
	if words[0] != first {
		return n.rest(words, "", pattern, at)
	}
	for _, name := range all {
		after := at.after(pattern, name)
		if after.alive() && n.rest(words[1:], name, pattern, after.after(pattern, " ")) {
			return true
		}
	}
	return false
}

// rest is canMatch for words of a form whose first name is known, from positions in the pattern.
func (n *stepNames) rest(words []string, first, pattern string, at states) bool {
	for i, word := range words {
		if i > 0 {
			at = at.after(pattern, " ")
		}
		if !at.alive() {
			return false
		}
		var all []string
		switch word {
		case aSender:
			all = []string{first}
		case aHost:
			all = n.hosts
		case aNode:
			all = append(append([]string(nil), n.switches...), n.hosts...)
		case aNext:
			if all = n.next[first]; n.next == nil {
				all = n.switches
			}
		default:
			all = []string{word}
		}
		if n.next != nil && word == aHost && i+2 < len(words) && words[i+2] == aHost {
			return n.flows(words[i:], first, pattern, at)
		}
		next := make(states, len(at))
		for _, name := range all {
			if n.next != nil && name == first && (word == aHost || word == aNode) { // a step to itself
				continue
			}
			next.join(at.after(pattern, name))
		}
		at = next
	}
	return at[len(pattern)]
}

// flows is rest for words that begin with the sender and the receiver of a flow. Senders that lead
// to the same positions are one case: only if there is one of them, the receiver cannot have its
// name.
func (n *stepNames) flows(words []string, first, pattern string, at states) bool {
	type senders struct { // that lead to the same positions
		at     states
		first  string
		number int
	}
	cases := map[string]*senders{}
	for _, name := range n.hosts {
		after := at.after(pattern, name)
		if !after.alive() {
			continue
		}
		key := after.key()
		if cases[key] == nil {
			cases[key] = &senders{at: after, first: name}
		}
		cases[key].number++
	}
	for _, c := range cases {
		to := c.at.after(pattern, " ").after(pattern, "to").after(pattern, " ")
		next := make(states, len(at))
		for _, name := range n.hosts {
			if c.number > 1 || name != c.first {
				next.join(to.after(pattern, name))
			}
		}
		if len(words) == 3 && next[len(pattern)] ||
			len(words) > 3 && n.rest(words[3:], first, pattern, next.after(pattern, " ")) {
			return true
		}
	}
	return false
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

// join adds the positions of others.
func (s states) join(others states) {
	for p, reached := range others {
		s[p] = s[p] || reached
	}
}

// alive reports whether there is any position.
func (s states) alive() bool {
	for _, reached := range s {
		if reached {
			return true
		}
	}
	return false
}

// key returns the positions as a key of maps.
func (s states) key() string {
	b := make([]byte, len(s))
	for p, reached := range s {
		if reached {
			b[p] = 1
		}
	}
	return string(b)
}
