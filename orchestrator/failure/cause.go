package failure

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/collectives/schedule"
	"weft/fabric"
	"weft/host"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// How faults affect a flow, most certain first.
const (
	atHalted = iota // its sender or receiver is halted
	cutOff          // none of its packets get through in one direction
	impeded         // its packets pass, or may pass, a changed or failed link
)

// Bounds of the examination and of its report. Our own values.
const (
	maxExamined = 20_000 // unfinished connections
	maxCauses   = 3
)

// cause is a set of faults and the unfinished flows that they affect.
type cause struct {
	kind   int
	faults []int // indices of the lab's faults
	flows  map[[2]transport.HostID]int
	count  int
	conn   transport.ConnID // of one of the flows
	scene  *scene
}

// unfinishedError is a failure of a run that is explained by the lab's faults.
type unfinishedError struct {
	error
	text  string
	about []string // its sentences about faults
}

func (e *unfinishedError) Error() string { return e.text }
func (e *unfinishedError) Unwrap() error { return e.error }

// Explain explains a run's failure at time by with the lab's faults, if a connection gave up or
// nothing moved any more; otherwise it returns err. anyPath means that the switches' hash is
// unknown, so that a flow may take any of its paths.
func Explain(x *experiment.Experiment, err error, o *summary.Outcome, anyPath bool, by units.Time) error {
	if len(x.Faults.All) == 0 {
		return err
	}
	causes, unfinished := findCauses(x, o, anyPath, by)
	if len(causes) == 0 {
		return blame(x, err, by)
	}
	e := &unfinishedError{error: err}
	var lines []string
	for i := range causes {
		c := &causes[i]
		if i == maxCauses {
			lines = append(lines, fmt.Sprintf("and %d more sets of faults block others", len(causes)-i))
			break
		}
		for _, f := range c.faults {
			e.about = append(e.about, sentence(x, f, by))
		}
		lines = append(lines, headline(x, c, unfinished, by), "  to survive it: "+adviceOn(x, c))
	}
	e.text = strings.Join(append(lines, firstFailure(x, err)), "\n")
	return e
}

// firstFailure returns the line of the error that the faults explain, without the list of waiting
// hosts.
func firstFailure(x *experiment.Experiment, err error) string {
	what, _, _ := strings.Cut(err.Error(), "\n")
	var step *host.StepError
	if errors.As(err, &step) && errors.Is(step.Err, transport.ErrFailed) {
		to := "to"
		if step.Kind == schedule.Recv {
			to = "from"
		}
		why := strings.TrimPrefix(step.Err.Error(), transport.ErrFailed.Error()+": ")
		what = fmt.Sprintf("%s gave up the %s of %v %s %s in %s (%s), repetition %d, rank %d, step %d: %s", step.Host,
			step.Kind, step.Size, to,
			x.Graph.Nodes[step.PeerHost].Name, step.Name, step.Collective, step.Repeat, step.Rank, step.Step, why)
	}
	return "  first failure: " + strings.TrimPrefix(what, "sim: ")
}

// findCauses returns the causes that affect unfinished flows, those with the most flows first, and
// the number of unfinished flows.
func findCauses(x *experiment.Experiment, o *summary.Outcome, anyPath bool, by units.Time) (causes []cause,
	unfinished int) {
	var scenes []*scene
	known := map[transport.ConnID]*cause{}
	found := map[string]*cause{}
	for i := range o.Flows {
		f := &o.Flows[i]
		if f.Acked != 0 {
			continue
		}
		unfinished++
		c, ok := known[f.Conn]
		if !ok && len(known) < maxExamined {
			if scenes == nil {
				scenes = scenesOf(x, f.Conn, anyPath, by)
			}
			c = causeOf(x, f.Conn, scenes, found)
			known[f.Conn] = c
		}
		if c != nil {
			c.flows[[2]transport.HostID{f.Src, f.Dst}]++
			c.count++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		causes = append(causes, *found[key])
	}
	slices.SortStableFunc(causes, func(a, b cause) int { return cmp.Or(a.kind-b.kind, b.count-a.count) })
	if len(causes) > 0 && causes[0].kind < impeded { // a certain cause explains what others only might
		causes = slices.DeleteFunc(causes, func(c cause) bool { return c.kind == impeded })
	}
	return causes, unfinished
}

// scenesOf returns the network at the end of the run and, if a connection like c gave up then, at
// its last attempt.
func scenesOf(x *experiment.Experiment, c transport.ConnID, anyPath bool, by units.Time) []*scene {
	all := []*scene{sceneAt(x, by, anyPath)}
	if _, last := patience(x, c); last < by {
		all = append(all, sceneAt(x, by-last, anyPath))
	}
	return all
}

// patience returns how long a connection waits for progress before it gives up, and how long after
// its last attempt.
func patience(x *experiment.Experiment, c transport.ConnID) (whole, last units.Time) {
	s := x.Conns[c]
	whole, last, err := transport.Patience(x.Plans[s.Src].Endpoint, s)
	if err != nil {
		return 0, 0 // such a connection could not have been opened
	}
	return whole, last
}

// causeOf returns the cause of an unfinished connection from the first scene that has one, and adds
// it to found if it is new. It returns nil if no fault affects the connection.
func causeOf(x *experiment.Experiment, c transport.ConnID, scenes []*scene, found map[string]*cause) *cause {
	for _, s := range scenes {
		kind, faults := atHalted, []int(nil)
		for _, id := range besides(x, c) {
			if k, f := s.inTheWay(x, &x.Conns[id]); len(f) > 0 && (faults == nil || k < kind) {
				kind, faults = k, f
			}
		}
		if faults == nil {
			continue
		}
		key := fmt.Sprint(kind, faults)
		if found[key] == nil {
			found[key] = &cause{kind: kind, faults: faults, flows: map[[2]transport.HostID]int{}, conn: c, scene: s}
		}
		return found[key]
	}
	return nil
}

// besides returns the connections that carry a connection's messages: itself, or all between the
// same hosts if messages are split.
func besides(x *experiment.Experiment, c transport.ConnID) []transport.ConnID {
	all := []transport.ConnID{c}
	s := &x.Conns[c]
	for i := range x.Plans[s.Src].Items {
		it := &x.Plans[s.Src].Items[i]
		if !it.Split {
			continue
		}
		for _, p := range it.Conns {
			if p.Conn != c && x.Conns[p.Conn].Dst == s.Dst {
				all = append(all, p.Conn)
			}
		}
	}
	return all
}

// scene is the network at an instant, with the faults in effect.
type scene struct {
	at      units.Time
	cfg     fabric.Config
	anyPath bool // the switches' hash is unknown
	down    map[int]int
	changed map[int]int // ports whose link a fault has changed
	halted  map[transport.HostID]int
}

func sceneAt(x *experiment.Experiment, at units.Time, anyPath bool) *scene {
	s := &scene{at: at, cfg: x.Fabric, anyPath: anyPath, down: map[int]int{}, changed: map[int]int{},
		halted: map[transport.HostID]int{}}
	for i := range x.Faults.Changes {
		if c := &x.Faults.Changes[i]; c.Tables != nil && c.At <= at {
			s.cfg.Switches = c.Tables
		}
	}
	outages, _ := x.Outages() // checked by Build
	for i := range outages {
		o := &outages[i]
		if o.At > at || o.Until() <= at {
			continue
		}
		into := s.changed
		if o.Down {
			into = s.down
		}
		begin, _ := x.LineChanges(o)
		for _, port := range begin.Ports {
			into[port] = o.Index
		}
	}
	for i := range x.Faults.All {
		f := &x.Faults.All[i]
		if h, ok := x.Graph.NodeNamed(f.Host); ok && f.Host != "" && f.At <= at && (f.Kill || at < f.At+f.For) {
			s.halted[transport.HostID(h)] = i
		}
	}
	return s
}

func (s *scene) isDown(port int) bool { _, ok := s.down[port]; return ok }

// inTheWay returns the faults that affect a connection and how, or none.
func (s *scene) inTheWay(x *experiment.Experiment, c *transport.Spec) (kind int, faults []int) {
	for _, h := range []transport.HostID{c.Src, c.Dst} {
		if i, ok := s.halted[h]; ok {
			return atHalted, []int{i}
		}
	}
	there, back := s.there(x, c), s.back(x, c)
	for _, r := range []fabric.Reach{there, back} {
		if !r.Arrives {
			faults = append(faults, s.faultsOf(s.down, r.Dead)...)
		}
	}
	if kind = cutOff; len(faults) == 0 {
		kind = impeded
		for _, r := range []fabric.Reach{there, back} {
			faults = append(faults, s.faultsOf(s.down, r.Dead)...)
			faults = append(faults, s.faultsOf(s.changed, r.Ports)...)
		}
	}
	slices.Sort(faults)
	return kind, slices.Compact(faults)
}

// there returns what a connection's data can reach over all its source ports. back does the same
// for its acknowledgements, which have one port.
func (s *scene) there(x *experiment.Experiment, c *transport.Spec) fabric.Reach {
	return s.reach(x, c.Src, c.Dst, c.SrcPort, c.Paths())
}

func (s *scene) back(x *experiment.Experiment, c *transport.Spec) fabric.Reach {
	return s.reach(x, c.Dst, c.Src, c.SrcPort, 1)
}

// reach returns what packets between two hosts can reach, for a range of source ports.
func (s *scene) reach(x *experiment.Experiment, from, to transport.HostID, port uint16, ports int) fabric.Reach {
	var all fabric.Reach
	nic := x.Graph.Port(x.Graph.Uplink(nodeID(from)), nodeID(from))
	for i := range ports {
		hash := fabric.FlowHash(fabric.HostID(from), fabric.HostID(to), port+uint16(i), wire.Port)
		r := s.cfg.Reach(nic, fabric.HostID(to), hash, s.anyPath, s.isDown)
		all.Arrives = all.Arrives || r.Arrives
		all.Ports, all.Dead = append(all.Ports, r.Ports...), append(all.Dead, r.Dead...)
	}
	return all
}

// faultsOf returns the faults that changed the ports.
func (s *scene) faultsOf(made map[int]int, ports []int) (faults []int) {
	for _, p := range ports {
		if i, ok := made[p]; ok {
			faults = append(faults, i)
		}
	}
	return faults
}
