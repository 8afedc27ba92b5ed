package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"weft/fabric"
	"weft/host"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/units"
)

// Outage is a fault of a link that was found in the network.
type Outage struct {
	lab.Fault
	link  topology.LinkID
	Index int // in the lab
}

// Until returns when the fault is over.
func (o *Outage) Until() units.Time {
	if o.For == 0 {
		return units.Never
	}
	return o.At + o.For
}

// Faults are the faults of a run.
type Faults struct {
	All     []lab.Fault     // those of the lab in its order, at the lab time of the run: after the clocks' warm-up
	Changes []fabric.Change // what they make of the network, by their instants
}

// addFaults gives hosts their faults, and works out how the others change the network.
func (x *compiler) addFaults() error {
	changes, err := x.changes()
	x.Faults.Changes = changes
	return errors.Join(x.corrupt(), x.addHalts(), err)
}

// changes returns the changes of the network that faults cause, with their instants.
func (x *compiler) changes() ([]fabric.Change, error) {
	outages, err := x.Outages()
	if err != nil {
		return nil, err
	}
	var all []fabric.Change
	for i := range outages {
		o := &outages[i]
		begin, end := x.LineChanges(o)
		all = append(all, begin)
		if o.For > 0 {
			all = append(all, end)
		}
	}
	reroutes, err := x.reroutes(outages)
	all = append(all, reroutes...)
	slices.SortStableFunc(all, func(a, b fabric.Change) int { return cmp.Compare(a.At, b.At) })
	return all, err
}

// Outages finds the links of the faults. Two faults of one link must not overlap, because it is
// undefined which of them holds.
func (x *Experiment) Outages() ([]Outage, error) {
	var all []Outage
	var errs []error
faults:
	for _, f := range x.Faults.All {
		if f.Corrupt != "" || f.Host != "" || f.Clock != nil {
			continue
		}
		link, ok := x.Graph.LinkNamed(f.Link)
		if !ok {
			errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, "link"),
				"no link is named %q; `weft graph` draws the links", f.Link))
			continue faults
		}
		if x.Graph.Links[link].Down {
			errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, "link"),
				"%s does not exist from the start (topology.down)", f.Link))
			continue faults
		}
		if k := &x.Graph.Links[link]; f.Toward != "" && f.Toward != x.Graph.Nodes[k.A].Name &&
			f.Toward != x.Graph.Nodes[k.B].Name {
			errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, "toward"), "%s is not an end of %s; expected %s or %s",
				f.Toward, f.Link, x.Graph.Nodes[k.A].Name, x.Graph.Nodes[k.B].Name))
			continue faults
		}
		o := Outage{Fault: f, link: link, Index: f.Index}
		for k := range all {
			if b := &all[k]; b.link == link && b.At < o.Until() && o.At < b.Until() {
				errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, "at"), "overlaps with fault %d of the same link",
					b.Index))
				continue faults
			}
		}
		all = append(all, o)
	}
	return all, errors.Join(errs...)
}

// corrupt gives hosts the bytes that they corrupt.
func (x *compiler) corrupt() error {
	for _, f := range x.Faults.All {
		if f.Corrupt == "" {
			continue
		}
		hosts, err := x.named([]string{f.Corrupt})
		if err != nil {
			return x.Lab.Errorf(FaultPath(f.Index, "corrupt"), "%v", err)
		}
		p := &x.Plans[hosts[0]]
		p.Corrupt = append(p.Corrupt, f.At)
		slices.Sort(p.Corrupt)
	}
	return nil
}

// LineChanges returns the changes at the start and the end of a fault, for both directions of the
// link.
func (x *Experiment) LineChanges(o *Outage) (begin, end fabric.Change) {
	ports := []int{2 * int(o.link), 2*int(o.link) + 1}
	begin, end = fabric.Change{At: o.At, Ports: ports}, fabric.Change{At: o.Until(), Ports: ports}
	if o.Down {
		begin.Up, end.Up = new(false), new(true)
		return begin, end
	}
	k := x.Graph.Links[o.link]
	if o.Toward != "" {
		one := ports[:1] // from A to B
		if x.Graph.Nodes[k.A].Name == o.Toward {
			one = ports[1:]
		}
		begin.Ports, end.Ports = one, one
	}
	end.Link, begin.Link = new(k.Link), new(k.Link)
	begin.Link.Rate, begin.Link.Delay = *cmp.Or(o.Rate, &k.Rate), *cmp.Or(o.Delay, &k.Delay)
	begin.Link.Loss, begin.Link.BitErrors = *cmp.Or(o.Loss, &k.Loss), *cmp.Or(o.BitErrors, &k.BitErrors)
	if o.Scaled {
		begin.Queue, end.Queue = x.scaled(begin.Ports, float64(begin.Link.Rate)/float64(k.Rate))
	}
	return begin, end
}

// scaled returns the settings of the first of some ports that is of a switch, times share, and as
// they are. nil: there is none.
func (x *Experiment) scaled(ports []int, share float64) (changed, own *fabric.Queue) {
	for _, i := range ports {
		if p := &x.Fabric.Ports[i]; int(p.From) >= x.Graph.Hosts {
			of := func(b units.Bytes) units.Bytes { return units.Bytes(float64(b) * share) }
			return &fabric.Queue{Buffer: of(p.Buffer), Kmin: of(p.ECN.Kmin), Kmax: of(p.ECN.Kmax)},
				&fabric.Queue{Buffer: p.Buffer, Kmin: p.ECN.Kmin, Kmax: p.ECN.Kmax}
		}
	}
	return nil, nil
}

// reroutes returns the changes at which all switches learn that links went down or came up.
func (x *compiler) reroutes(outages []Outage) ([]fabric.Change, error) {
	type turn struct {
		at   units.Time
		o    *Outage
		down bool
	}
	var turns []turn
	for i := range outages {
		if o := &outages[i]; o.Reroute > 0 {
			turns = append(turns, turn{o.At + o.Reroute, o, true})
			if o.For > 0 {
				turns = append(turns, turn{o.Until() + o.Reroute, o, false})
			}
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	var all []fabric.Change
	known := map[topology.LinkID]bool{} // links that the tables leave out
	for _, t := range turns {
		known[t.o.link] = t.down
		tables, err := x.Tables(known)
		if err != nil {
			return nil, x.Lab.Errorf(FaultPath(t.o.Index, "reroute"), "no routing tables are possible: %v", err)
		}
		all = append(all, fabric.Change{At: t.at, Tables: tables})
	}
	return all, nil
}

// Tables returns how switches choose ports if links are missing besides those that do not exist
// from the start.
func (x *Experiment) Tables(missing map[topology.LinkID]bool) ([]fabric.SwitchConfig, error) {
	t := x.Lab.Topology
	t.Down = slices.Clone(t.Down)
	for i := range x.Graph.Links {
		if missing[topology.LinkID(i)] {
			t.Down = append(t.Down, x.Graph.Links[i].Name)
		}
	}
	g, err := topology.Build(t)
	if err != nil {
		return nil, err
	}
	if x.Lab.Queues.PFC != nil {
		if text := cycleOf(g); text != "" {
			return nil, fmt.Errorf("with queues.pfc the switches %s could then deadlock, waiting for each other in "+
				"a cycle", text)
		}
	}
	return switches(x.Lab, g, g.Routes()), nil
}

// addHalts gives hosts the faults that end or freeze them.
func (x *compiler) addHalts() error {
	var errs []error
halts:
	for _, f := range x.Faults.All {
		if f.Host == "" {
			continue
		}
		id, ok := x.Graph.NodeNamed(f.Host)
		if !ok || int(id) >= x.Graph.Hosts {
			errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, "host"),
				"no host is named %q; `weft graph` draws them", f.Host))
			continue halts
		}
		k := host.Halt{At: f.At, Until: units.Never}
		if f.Pause {
			k.Until = f.At + f.For
		}
		p := &x.Plans[id]
		for _, other := range p.Halts {
			if other.At < k.Until && k.At < other.Until {
				errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, "at"), "overlaps with another fault of %s", f.Host))
				continue halts
			}
		}
		p.Halts = append(p.Halts, k)
		slices.SortFunc(p.Halts, func(a, b host.Halt) int { return cmp.Compare(a.At, b.At) })
	}
	return errors.Join(errs...)
}

// FaultPath returns the path of a fault's setting in the lab.
func FaultPath(i int, key string) string { return fmt.Sprintf("faults.%d.%s", i, key) }
