package topologies

import (
	"fmt"
	"io"

	"weft/inputs/source"
	"weft/internal/clip"
)

// looksNS3 recognizes the first line: numbers of nodes, switches and links, or SimAI's with the
// GPUs of a server, NVSwitches and the type of GPU.
func looksNS3(_ string, head []byte) bool {
	f := source.FirstFields(head)
	if len(f) == 6 {
		f = f[:5]
	}
	_, ok := numbers(f)
	return ok && (len(f) == 3 || len(f) == 5)
}

// readNS3 reads a topology of HPCC's simulator or of SimAI: a line of counts, the numbers of the
// switches, and a line for each link with its ends, rate, delay and rate of packet errors. These
// simulators do not read what follows; here it must not be a link.
func readNS3(n *Network, r io.Reader) error {
	w := source.NewLines(n.file, r)
	first := w.Fields()
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
		return w.Errorf("%d nodes, %d switches and %d links; expected at most %d nodes and %d links",
			nodes, switches, links, maxNodes, maxLinks)
	}
	isSwitch := make([]bool, nodes)
	for found := 0; found < switches; {
		ids, ok := numbers(w.Fields())
		if !ok || len(ids) == 0 || found+len(ids) > switches {
			return w.Errorf("expected the numbers of %d switches", switches)
		}
		for _, id := range ids {
			if id >= nodes {
				return w.Errorf("switch %d of %d nodes", id, nodes)
			}
			if isSwitch[id] {
				return w.Errorf("switch %d is listed twice; the first line counts %d switches", id, switches)
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
	for id := range nodes {
		node, err := n.node(name(id), 1)
		if err != nil {
			return err
		}
		node.Switch = isSwitch[id]
	}
	for i := range links {
		const columns = 5
		f := w.Fields()
		if f == nil && w.Err() == nil {
			return w.Errorf("the file ends after %d of %d links", i, links)
		}
		if len(f) < columns {
			return w.Errorf("expected a link: source, destination, rate, delay and error rate")
		}
		ends, ok := numbers(f[:2])
		if !ok || ends[0] >= nodes || ends[1] >= nodes {
			return w.Errorf("a link from %s to %s of %d nodes", clip.Text(f[0]), clip.Text(f[1]),
				nodes)
		}
		if len(f) > columns {
			n.Notes.Add(n.file, w.Number, "a sixth word of a link")
		}
		l := Link{A: name(ends[0]), B: name(ends[1]), Line: w.Number}
		for i, property := range []string{"rate", "delay", "loss"} {
			if err := n.property(&l, property, f[2+i]); err != nil {
				return err
			}
		}
		if err := n.link(l); err != nil {
			return err
		}
	}
	for f := w.Fields(); f != nil; f = w.Fields() { // people write there what the columns are
		const ends = 2
		if _, ok := numbers(f[:min(len(f), ends)]); ok && len(f) >= ends {
			return w.Errorf("a link beyond the %d that the first line counts; expected the count of all", links)
		}
		n.Notes.Add(n.file, w.Number, "text after the last link")
	}
	if err := w.Err(); err != nil {
		return err
	}
	return n.finish(func(name string) (bool, bool) { return name[0] == 's', true })
}
