package summary

import (
	"cmp"
	"fmt"
	"slices"

	"weft/fabric"
	"weft/orchestrator/experiment"
	"weft/orchestrator/topology"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// Limits on the recorded steps of coordinated congestion management. Ours.
const (
	maxSteps = 200     // different sentences in the summary
	maxLines = 100_000 // lines in events.jsonl
)

// Step is one step of coordinated congestion management, by a switch or a source host.
type Step struct {
	At     units.Time // of a source's step
	Source bool       // a host did it; otherwise Fabric says what a switch did
	Conn   transport.ConnID
	Cc     bool // source: packets carry the CC indicator from now on; false: no longer
	Moved  bool // source: the connection takes another source port
	Fabric fabric.Step
}

// Diary puts steps into words. It counts equal sentences for the summary and writes all events.
type Diary struct {
	x      *experiment.Experiment
	write  func(record.Event) error
	known  map[string]int // index in kept of each sentence
	kept   []record.Step
	unkept int64 // steps whose sentence kept has no room for
	lines  int   // events so far, including those beyond maxLines
}

// NewDiary returns a Diary that writes events with write, or nil if the lab has no coordinated
// congestion management.
func NewDiary(x *experiment.Experiment, write func(record.Event) error) *Diary {
	if x.Fabric.CCM == nil {
		return nil
	}
	return &Diary{x: x, write: write, known: map[string]int{}}
}

// Add adds steps, which must be later than all that were added before. It returns the error of
// write.
func (d *Diary) Add(steps []Step) error {
	lines := make([]record.Event, len(steps))
	for i := range steps {
		lines[i] = d.event(&steps[i])
	}
	slices.SortStableFunc(lines, func(a, b record.Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Where, b.Where), cmp.Compare(a.Detail, b.Detail))
	})
	for _, e := range lines {
		d.count(e)
		if d.lines++; d.lines > maxLines {
			continue
		}
		if err := d.write(e); err != nil {
			return err
		}
	}
	return nil
}

// count adds an event to the summary.
func (d *Diary) count(e record.Event) {
	text, at := e.Where+" "+e.Detail, e.At.Microseconds()
	i, ok := d.known[text]
	switch {
	case !ok && len(d.kept) == maxSteps:
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

// End writes the number of events that were left out, if any. d may be nil.
func (d *Diary) End(at units.Time) error {
	if d == nil || d.lines <= maxLines {
		return nil
	}
	return d.write(record.Event{At: at, Kind: stepKind, Detail: fmt.Sprintf("and %d steps more", d.lines-maxLines)})
}

// stepKind is the kind of event of a step.
const stepKind = "ccm"

// event puts a step into words.
func (d *Diary) event(s *Step) record.Event {
	name := func(n topology.NodeID) string { return d.x.Graph.Nodes[n].Name }
	e := record.Event{At: s.At, Kind: stepKind}
	if s.Source {
		c := &d.x.Conns[s.Conn]
		flow := name(topology.NodeID(c.Src)) + " to " + name(topology.NodeID(c.Dst))
		e.Where = name(topology.NodeID(c.Src))
		switch {
		case s.Moved:
			e.Detail = "takes another source port for " + flow
		case s.Cc:
			e.Detail = "sets CC of " + flow
		default:
			e.Detail = "clears CC of " + flow
		}
		return e
	}
	f := &s.Fabric
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
