// Package watch shows a run in progress as text for a terminal: progress, queues, links, and which
// expectations hold so far.
//
// Input: the frames of the run (package frames), its network, and its progress. Output: lines of a
// given width.
//
// The one idea: it is the same data as package view shows in a browser, for who has only ssh. A
// Screen keeps the last state of every port, so that adding frames costs as much as there is new.
//
// The package is pure. Start reading at Screen.Text.
package watch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/results/expect"
	"weft/results/frames"
	"weft/results/record"
	"weft/units"
)

// Screen draws a run. It belongs to one goroutine.
type Screen struct {
	Title       string
	Done, Total units.Bytes // of the workload; Total 0: not known yet
	Collectives []string    // of the workload: all-reduce of 16 ranks
	Expect      []string    // lines of the lab

	network  *record.NetworkMap
	at       units.Time // of the last frame
	span     units.Time // between the last two looks
	ports    []frames.Port
	sent     []units.Bytes // since the look before
	maxQueue units.Bytes   // of any switch so far
	conns    map[uint32]units.Bytes
}

// New returns the screen of a run in a network.
func New(title string, n *record.NetworkMap) *Screen {
	return &Screen{
		Title: title, network: n, ports: make([]frames.Port, len(n.Ports)), sent: make([]units.Bytes, len(n.Ports)),
		conns: map[uint32]units.Bytes{},
	}
}

// Add adds the frames that are later than all before.
func (s *Screen) Add(all []frames.Frame) {
	from := len(all)
	for from > 0 && all[from-1].At > s.at {
		from--
	}
	if from == len(all) {
		return
	}
	clear(s.sent)
	for i := range s.ports {
		s.ports[i].Queued, s.ports[i].Paused = 0, false // without a row nothing waits
	}
	before := s.at
	for i := range all[from:] {
		f := &all[from+i]
		last := from+i == len(all)-1
		for _, p := range f.Ports {
			if int(p.Port) >= len(s.ports) || p.Port < 0 {
				continue
			}
			s.sent[p.Port] += p.Sent - s.ports[p.Port].Sent
			if !s.network.Nodes[s.network.Ports[p.Port].From].Host {
				s.maxQueue = max(s.maxQueue, p.Queued)
			}
			if !last {
				p.Queued, p.Paused = 0, false
			}
			s.ports[p.Port] = p
		}
		for _, c := range f.Conns {
			if c.Arrived > 0 {
				s.conns[c.Conn] = c.Arrived
			}
		}
		s.at = f.At
	}
	s.span = s.at - before
}

// Text returns the screen for a terminal of some columns and lines.
func (s *Screen) Text(width, height int) string {
	width = max(width, 40)
	var marks, drops, waiting int64
	for i := range s.ports {
		marks += s.ports[i].Marks
		drops += s.ports[i].Drops
		if !s.network.Nodes[s.network.Ports[i].From].Host {
			waiting += int64(s.ports[i].Queued)
		}
	}
	share := 0.0
	if s.Total > 0 {
		share = float64(s.Done) / float64(s.Total)
	}
	lines := []string{
		s.Title + "   " + units.Shown(s.at.Nanoseconds(), "ns"),
		fmt.Sprintf("%s %3.0f %%  %s of %s", bar(share, max(10, min(40, width-40))), 100*share, size(s.Done),
			size(s.Total)),
		fmt.Sprintf("%s queued, at most %s in one switch port", size(units.Bytes(waiting)), size(s.maxQueue)),
		units.Count(marks) + " marked, " + units.Count(drops) + " dropped",
	}
	if s.Total == 0 { // nobody has said yet
		lines[1] = bar(0, max(10, min(40, width-40)))
	}
	if len(s.conns) > 0 {
		lines[3] += "; " + units.Count(int64(len(s.conns))) + " connections have delivered"
	}
	if len(s.Collectives) > 0 {
		lines = append(lines, "workload: "+strings.Join(s.Collectives, ", "))
	}
	room := max(1, min(8, (height-len(lines)-len(s.Expect)-7)/2))
	lines = append(append(lines, "", "longest queues"), s.queues(room, width)...)
	lines = append(append(lines, "", "busiest links"), s.links(room, width)...)
	if len(s.Expect) > 0 {
		lines = append(append(lines, "", "expectations"), s.verdicts(marks, drops)...)
	}
	lines = append(lines, "")
	if height > 0 && len(lines) >= height {
		lines = lines[:height-1]
	}
	lines = append(lines, "q leaves this view · Ctrl-C interrupts the run")
	for i, l := range lines {
		lines[i] = clip(l, width)
	}
	return strings.Join(lines, "\n")
}

// clip cuts a text to some columns.
func clip(text string, columns int) string {
	if r := []rune(text); len(r) > columns {
		return string(r[:columns-1]) + "…"
	}
	return text
}

// size formats a number of bytes.
func size(b units.Bytes) string { return units.Shown(float64(b), "B") }

// bar returns a bar of some columns that is filled to a share.
func bar(share float64, columns int) string {
	n := int(min(max(share, 0), 1)*float64(columns) + 0.5)
	return strings.Repeat("█", n) + strings.Repeat("·", columns-n)
}

// top returns the ports with the largest values above 0, the largest first.
func (s *Screen) top(n int, value func(port int) float64) []int {
	var all []int
	for i := range s.ports {
		if value(i) > 0 {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(value(b), value(a)) })
	return all[:min(n, len(all))]
}

// rows returns a line for each port: its name, a bar filled to its share, and what value says.
func (s *Screen) rows(ports []int, width int, share func(port int) float64, value func(port int) string) []string {
	const rest = 2 + 2 + 10 + 8 // indent, spaces, a number, "  paused"
	name := 0
	for _, p := range ports {
		name = max(name, len([]rune(s.network.Ports[p].Name)))
	}
	name = min(max(name, 12), width-rest-5)
	long := min(30, width-rest-name)
	out := make([]string, len(ports))
	for i, p := range ports {
		out[i] = fmt.Sprintf("  %-*s %s %s", name, clip(s.network.Ports[p].Name, name), bar(share(p), long), value(p))
	}
	return out
}

// queues lists the longest queues of switches, with a bar as long as the longest so far is full.
func (s *Screen) queues(n, width int) []string {
	ports := s.top(n, func(i int) float64 {
		if s.network.Nodes[s.network.Ports[i].From].Host {
			return 0
		}
		return float64(s.ports[i].Queued)
	})
	if len(ports) == 0 {
		return []string{"  nothing waits"}
	}
	share := func(i int) float64 { return float64(s.ports[i].Queued) / float64(max(s.maxQueue, 1)) }
	return s.rows(ports, width, share, func(i int) string {
		text := fmt.Sprintf("%10s", size(s.ports[i].Queued))
		if s.ports[i].Paused {
			text += "  paused"
		}
		return text
	})
}

// links lists the busiest ports since the look before, those with the same number in order of
// ports.
func (s *Screen) links(n, width int) []string {
	use := func(i int) float64 {
		capacity := float64(s.network.Ports[i].RateBPS) / 8 * float64(s.span) / float64(units.Second)
		if capacity <= 0 {
			return 0
		}
		return min(float64(s.sent[i])/capacity, 1)
	}
	ports := s.top(n, func(i int) float64 { return math.Round(100 * use(i)) })
	if len(ports) == 0 {
		return []string{"  nothing is sent"}
	}
	return s.rows(ports, width, use, func(i int) string { return fmt.Sprintf("%8.0f %%", 100*use(i)) })
}

// verdicts lists the expectations: those that bound a counter, which only grows, are judged as it
// is now, the others at the end.
func (s *Screen) verdicts(marks, drops int64) []string {
	now := &record.Summary{
		Network: record.Network{CEMarks: marks, Drops: drops, MaxQueue: int64(s.maxQueue), Packets: 1},
	}
	var out []string
	for _, line := range s.Expect {
		word := "at the end"
		if e, err := expect.Parse(line); err == nil && !e.Cross() && boundsCounter(line) {
			if word = "so far"; !e.Eval(now, expect.Scope{}).OK {
				word = "missed"
			}
		}
		out = append(out, fmt.Sprintf("  %-10s  %s", word, line))
	}
	return out
}

// boundsCounter reports whether an expectation gives a counter an upper bound: once missed, it
// stays missed.
func boundsCounter(line string) bool {
	words := strings.Fields(line)
	if len(words) != 3 || !slices.Contains([]string{"drops", "ce_marks", "max_queue"}, words[0]) {
		return false
	}
	return words[1] == "<" || words[1] == "<=" || words[1] == "==" && words[2] == "0"
}
