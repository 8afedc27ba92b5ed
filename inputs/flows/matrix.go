package flows

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/collectives/graph"
	"weft/internal/clip"
	"weft/units"
)

// matrix reads a connection matrix of htsim.
type matrix struct {
	*scanner
	list     *List
	said     map[string]int // numbers of the header
	ids      map[int]int    // line of each flow's id
	waits    map[int][]int  // flows that a trigger starts
	fires    map[int][]After
	triggers map[int]*trigger
}

// trigger starts flows when other flows are done.
type trigger struct {
	line  int
	kind  string // oneshot or barrier
	count int    // of a barrier: the number of flows that must be done
}

// parseMatrix reads a connection matrix: a header of counts, connections and triggers. Times are in
// picoseconds.
func parseMatrix(s *scanner) (*List, error) {
	m := &matrix{scanner: s, list: &List{File: s.File}, said: map[string]int{}, ids: map[int]int{},
		waits: map[int][]int{}, fires: map[int][]After{}, triggers: map[int]*trigger{}}
	for more := true; more; more = s.next() {
		var err error
		switch first := s.fields[0]; {
		case strings.Contains(first, "->"):
			err = m.connection()
		case first == "trigger":
			err = m.trigger()
		case slices.Contains([]string{"Nodes", "Connections", "Triggers", "Failures"}, first) && len(s.fields) == 2:
			if _, twice := m.said[first]; twice {
				return nil, s.Errorf("%s is there twice", first)
			}
			m.said[first], err = s.number(first, s.fields[1], maxFlows)
			if err == nil && first == "Failures" && m.said[first] > 0 {
				err = s.Errorf("failures of links belong to the lab's faults; expected Failures 0")
			}
		default:
			err = s.Errorf("%q is not understood; expected Nodes, Connections, Triggers, a connection such as 0->5, "+
				"or trigger", clip.Text(first))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.end(nil); err != nil {
		return nil, err
	}
	return m.finish()
}

// connection reads a line such as 0->5 id 1 start 0 size 2000000 send_done_trigger 1.
func (m *matrix) connection() error {
	if len(m.list.Flows) == maxFlows {
		return m.Errorf("more than %d connections", maxFlows)
	}
	f := Flow{Line: m.Number}
	from, to, _ := strings.Cut(m.fields[0], "->")
	var err error
	if f.From, err = m.number("the source", from, graph.MaxRanks-1); err != nil {
		return err
	}
	if f.To, err = m.number("the destination", to, graph.MaxRanks-1); err != nil {
		return err
	}
	at, id, message, start, trigger := len(m.list.Flows), 0, false, false, 0
	said := map[string]bool{}
	for i := 1; i < len(m.fields); i++ {
		word := m.fields[i]
		if said[word] {
			return m.Errorf("%s is there twice", clip.Text(word))
		}
		said[word] = true
		if word == "msg" { // with a number, or alone
			message = true
			if i+1 < len(m.fields) && m.fields[i+1][0] >= '0' && m.fields[i+1][0] <= '9' {
				i++
			}
			continue
		}
		if i++; i == len(m.fields) {
			return m.Errorf("%s without a value", clip.Text(word))
		}
		value := m.fields[i]
		n := 0
		switch word {
		case "start":
			start = true
			f.At, err = m.time(word, value, units.Picosecond)
		case "size":
			n, err = m.number(word, value, int64(graph.MaxSize))
			f.Size = units.Bytes(n)
		case "id":
			id, err = m.number(word, value, maxFlows)
		case "trigger":
			trigger, err = m.number(word, value, maxFlows)
			m.waits[trigger] = append(m.waits[trigger], at)
		case "send_done_trigger", "recv_done_trigger":
			if n, err = m.number(word, value, maxFlows); n > 0 { // 0: none
				m.fires[n] = append(m.fires[n], After{at, word == "recv_done_trigger"})
			}
		case "prio":
			err = m.Errorf("prio: all flows here have one priority; leave it out")
		default:
			err = m.Errorf("%q is not understood; expected start, size, id, msg, trigger, send_done_trigger or "+
				"recv_done_trigger", clip.Text(word))
		}
		if err != nil {
			return err
		}
	}
	switch line := m.ids[id]; {
	case start == (trigger != 0):
		return m.Errorf("a connection starts at an instant or by a trigger; expected one of start and trigger")
	case f.Size == 0:
		return m.Errorf("a connection without a size, or of 0 bytes")
	case id != 0 && line != 0 && !message:
		return m.Errorf("id %d is that of line %d, too", id, line)
	}
	if id != 0 {
		m.ids[id] = m.Number
		f.ID = fmt.Sprint(id)
	}
	f.Message = message
	m.list.Nodes = max(m.list.Nodes, f.From+1, f.To+1)
	m.list.Flows = append(m.list.Flows, f)
	return nil
}

// trigger reads a line such as trigger id 1 oneshot.
func (m *matrix) trigger() error {
	t := &trigger{line: m.Number}
	id := 0
	said := map[string]bool{}
	for i := 1; i < len(m.fields); i++ {
		var err error
		word := m.fields[i]
		if said[word] || t.kind != "" && (word == "oneshot" || word == "barrier") {
			return m.Errorf("%s is there twice, or besides another kind", clip.Text(word))
		}
		said[word] = true
		switch {
		case (word == "id" || word == "count") && i+1 < len(m.fields):
			i++
			n := 0
			if n, err = m.number(word, m.fields[i], maxFlows); word == "id" {
				id = n
			} else {
				t.count = n
			}
		case word == "oneshot" || word == "barrier":
			t.kind = word
		case word == "multishot":
			err = m.Errorf("multishot: which flow it starts depends on which one ends first; expected oneshot or " +
				"barrier")
		default:
			err = m.Errorf("%q is not understood; expected id, count, oneshot or barrier", clip.Text(word))
		}
		if err != nil {
			return err
		}
	}
	if id == 0 || t.kind == "" {
		return m.Errorf("a trigger without an id or a kind")
	}
	if said["count"] && t.kind == "oneshot" {
		return m.Errorf("a count of a oneshot trigger; expected barrier, or no count")
	}
	if old := m.triggers[id]; old != nil {
		return m.Errorf("trigger %d is on line %d, too", id, old.line)
	}
	m.triggers[id] = t
	return nil
}

// finish resolves the triggers.
func (m *matrix) finish() (*List, error) {
	l := m.list
	if n, ok := m.said["Connections"]; ok && n != len(l.Flows) {
		return nil, m.end(fmt.Errorf("%d connections; the header says %d", len(l.Flows), n))
	}
	if n, ok := m.said["Triggers"]; ok && n != len(m.triggers) {
		return nil, m.end(fmt.Errorf("%d triggers; the header says %d", len(m.triggers), n))
	}
	if n, ok := m.said["Nodes"]; ok && n < l.Nodes {
		return nil, m.end(fmt.Errorf("a connection of node %d; the header says there are %d nodes", l.Nodes-1, n))
	}
	l.Nodes = max(l.Nodes, m.said["Nodes"])
	for _, id := range slices.Sorted(maps.Keys(m.fires)) {
		if m.triggers[id] == nil {
			return nil, graph.Errorf(l.File, l.Flows[m.fires[id][0].Flow].Line, "trigger %d is nowhere", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.triggers)) {
		if m.waits[id] == nil {
			l.Notes.Add(l.File, m.triggers[id].line, "a trigger that no connection waits for")
		}
	}
	for id, flows := range m.waits {
		t := m.triggers[id]
		line := l.Flows[flows[0]].Line
		switch fires := len(m.fires[id]); {
		case t == nil:
			return nil, graph.Errorf(l.File, line, "trigger %d is nowhere", id)
		case t.kind == "oneshot" && fires != 1:
			return nil, graph.Errorf(l.File, t.line, "trigger %d is oneshot and fired by %d flows; expected 1", id,
				fires)
		case t.kind == "barrier" && fires != t.count:
			return nil, graph.Errorf(l.File, t.line, "trigger %d waits for %d flows and is fired by %d", id, t.count,
				fires)
		}
		for _, i := range flows {
			l.Flows[i].After = m.fires[id]
		}
	}
	return l, nil
}
