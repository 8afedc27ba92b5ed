package topologies

import (
	"fmt"
	"strings"

	"weft/collectives/graph"
	"weft/internal/clip"
	"weft/units"
)

// looksNS3 recognizes the first line: numbers of nodes, switches and links, or SimAI's with the
// GPUs of a server, NVSwitches and the type of GPU.
func looksNS3(text []byte) bool {
	f := firstLine(text)
	if len(f) == 6 {
		f = f[:5]
	}
	_, ok := numbers(f)
	return ok && (len(f) == 3 || len(f) == 5)
}

// readNS3 reads a topology of HPCC's simulator or of SimAI: a line of counts, the numbers of the
// switches, and a line for each link with its ends, rate, delay and rate of packet errors. What
// follows is not read by these simulators.
func readNS3(file string, text []byte) (*Network, error) {
	lines := strings.Split(string(text), "\n")
	at := 0
	next := func() []string {
		for at < len(lines) {
			f := strings.Fields(lines[at])
			if at++; len(f) > 0 && f[0][0] != '#' {
				return f
			}
		}
		return nil
	}
	first := next()
	var counts []int
	if len(first) == 6 {
		counts, _ = numbers(first[:5])
	} else {
		counts, _ = numbers(first)
	}
	nodes, switches, links := counts[0], counts[len(counts)-2], counts[len(counts)-1]
	if len(counts) == 5 {
		switches += counts[2] // NVSwitches
	}
	if nodes > maxNodes || links > maxLinks || switches > nodes {
		return nil, graph.Errorf(file, at, "%d nodes, %d switches and %d links", nodes, switches, links)
	}
	isSwitch := make([]bool, nodes)
	for found := 0; found < switches; {
		ids, ok := numbers(next())
		if !ok || len(ids) == 0 || found+len(ids) > switches {
			return nil, graph.Errorf(file, at, "expected the numbers of %d switches", switches)
		}
		for _, id := range ids {
			if id >= nodes {
				return nil, graph.Errorf(file, at, "switch %d of %d nodes", id, nodes)
			}
			isSwitch[id] = true
		}
		found += len(ids)
	}
	name := func(id int) string {
		if isSwitch[id] {
			return fmt.Sprintf("s%d", id)
		}
		return fmt.Sprintf("h%d", id)
	}
	n := &Network{}
	for id := range nodes {
		n.Nodes = append(n.Nodes, Node{name(id), isSwitch[id]})
	}
	for range links {
		const columns = 5
		f := next()
		if len(f) < columns {
			return nil, graph.Errorf(file, at, "expected a link: source, destination, rate, delay and error rate")
		}
		ends, ok := numbers(f[:2])
		if !ok || ends[0] >= nodes || ends[1] >= nodes {
			return nil, graph.Errorf(file, at, "a link from %s to %s of %d nodes", clip.Text(f[0]), clip.Text(f[1]),
				nodes)
		}
		l := Link{A: name(ends[0]), B: name(ends[1]), Line: at}
		for i, property := range []string{"rate", "delay", "loss"} {
			if _, err := l.property(property, f[2+i]); err != nil {
				return nil, &graph.Error{At: fmt.Sprintf("%s:%d", file, at), Err: err}
			}
		}
		if l.Delay < 0 || l.Delay > units.Second {
			return nil, graph.Errorf(file, at, "a delay of %v", l.Delay)
		}
		n.Links = append(n.Links, l)
	}
	return n, nil
}
