package run

import (
	"cmp"
	"fmt"
	"slices"

	"weft/fabric"
	"weft/orchestrator/topology"
	"weft/results/record"
	"weft/results/store"
	"weft/transport"
	"weft/units"
)

// What is kept of the steps of coordinated congestion management. Ours.
const (
	mostSteps = 200     // that read differently, in the summary
	mostLines = 100_000 // in events.jsonl
)

// step is something that a switch or, with source, a host did.
type step struct {
	at     units.Time
	source bool
	conn   transport.ConnID
	cc     bool // source: packets carry the CC indicator from now on
	moved  bool // source: the connection takes another source port
	fabric fabric.Step
}

// diary puts steps into words and keeps them.
type diary struct {
	x      *Experiment
	dir    *store.Run
	known  map[string]int // sentences, by where they are in kept
	kept   []record.Step
	unkept int64
	lines  int
}

// newDiary returns nil where nothing is coordinated.
func newDiary(x *Experiment, dir *store.Run) *diary {
	if x.Fabric.CCM == nil {
		return nil
	}
	return &diary{x: x, dir: dir, known: map[string]int{}}
}

// add keeps steps, which come after all that were added before, and says whether they could be written.
func (d *diary) add(steps []step) error {
	lines := make([]record.Event, len(steps))
	for i := range steps {
		lines[i] = d.event(&steps[i])
	}
	slices.SortStableFunc(lines, func(a, b record.Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Where, b.Where), cmp.Compare(a.Detail, b.Detail))
	})
	for _, e := range lines {
		d.count(e)
		if d.lines++; d.lines > mostLines {
			continue
		}
		if err := d.dir.Event(e); err != nil {
			return err
		}
	}
	return nil
}

// count adds an event to the summary.
func (d *diary) count(e record.Event) {
	text, at := e.Where+" "+e.Detail, e.At.Microseconds()
	i, ok := d.known[text]
	switch {
	case !ok && len(d.kept) == mostSteps:
		d.unkept++
		return
	case !ok:
		i = len(d.kept)
		d.known[text] = i
		d.kept = append(d.kept, record.Step{Step: text, FirstUS: at})
	}
	d.kept[i].Count++
	d.kept[i].LastUS = at
}

// end says how many lines there would have been more.
func (d *diary) end(at units.Time) error {
	if d == nil || d.lines <= mostLines {
		return nil
	}
	return d.dir.Event(record.Event{At: at, Kind: stepKind, Detail: fmt.Sprintf("and %d steps more", d.lines-mostLines)})
}

// stepKind is the kind of event of a step.
const stepKind = "ccm"

// event is a step in words.
func (d *diary) event(s *step) record.Event {
	name := func(n topology.NodeID) string { return d.x.Graph.Nodes[n].Name }
	e := record.Event{At: s.at, Kind: stepKind}
	if s.source {
		c := &d.x.Conns[s.conn]
		flow := name(topology.NodeID(c.Src)) + " to " + name(topology.NodeID(c.Dst))
		e.Where = name(topology.NodeID(c.Src))
		switch {
		case s.moved:
			e.Detail = "takes another source port for " + flow
		case s.cc:
			e.Detail = "sets CC of " + flow
		default:
			e.Detail = "clears CC of " + flow
		}
		return e
	}
	f := &s.fabric
	flow := name(topology.NodeID(f.Src)) + " to " + name(topology.NodeID(f.Dst))
	port := func() string { return name(topology.NodeID(d.x.Fabric.Ports[f.Port].To)) }
	e.At, e.Where = f.At, name(topology.NodeID(f.Switch))
	switch f.What {
	case fabric.ToldCC:
		e.Detail = "tells " + name(topology.NodeID(f.To)) + " that " + flow + " causes incast"
	case fabric.LastResort:
		e.Detail = "tells " + name(topology.NodeID(f.To)) + " that no path of " + flow + " is light"
	case fabric.ToldReleased:
		e.Detail = "tells " + name(topology.NodeID(f.To)) + " that " + flow + " is released"
	case fabric.ToldPath:
		e.Detail = "asks " + name(topology.NodeID(f.To)) + " for another path of " + flow
	case fabric.HeardPath:
		e.Detail = "keeps " + flow + " off " + port()
	case fabric.Moved:
		e.Detail = "moves " + flow + " to " + port()
	case fabric.Took:
		e.Detail = "sends " + flow + " by " + port() + " of several"
	case fabric.TookOnly:
		e.Detail = "sends " + flow + " by " + port() + " alone"
	}
	return e
}
