package deploy

import (
	"cmp"
	"os"

	"weft/nodeimg/boot"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/realtime"
)

// state returns the present state of the lab.
func (s *supervisor) state() (*State, error) {
	d, g := s.deployment, s.x.Graph
	out := &State{
		Lab: d.Lab, Topology: g.Title, File: d.File, Deployment: d.ID, Began: d.Began, Runtime: s.runtime,
		Datapath: lab.DatapathFabric,
		Dilation: d.Dilation, Supervisor: os.Getpid(), NowUS: s.lab.Now().Microseconds(),
		Committed: s.journal.Committed(),
		Notes:     s.lab.Notes(), Memory: s.lab.Memory(), Subnet: d.Subnet.Prefix().String(),
	}
	if s.switched() {
		out.Datapath = lab.DatapathKernel
	}
	if s.machines != nil {
		out.Machines = s.machines.Names()
	}
	select {
	case <-s.lab.Broken():
		out.Broken = s.lab.Why().Error()
	default:
	}
	for i := range g.Nodes {
		out.Nodes = append(out.Nodes, s.nodeState(topology.NodeID(i)))
	}
	err := s.describeLinks(out)
	if out.Broken == "" {
		out.Broken = s.whyDeserted()
	}
	return out, err
}

// whyDeserted returns why the lab is of no use any more, or "" if it is: no node is alive, and at
// least one of them ended unasked.
func (s *supervisor) whyDeserted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := ""
	for i := range s.nodes {
		if s.nodes[i].dead == "" {
			return ""
		}
		if !s.nodes[i].endRequested && why == "" {
			why = s.nodes[i].dead
		}
	}
	if why == "" {
		return ""
	}
	return "no node is alive: " + why
}

// nodeState returns the state of a host or switch.
func (s *supervisor) nodeState(id topology.NodeID) NodeState {
	n, d := &s.x.Graph.Nodes[id], s.deployment
	out := NodeState{Name: n.Name, Tier: n.Tier, Address: n.Addr, State: "modelled"}
	if sw := int(id) - s.x.Graph.Hosts; sw >= 0 {
		if s.switched() {
			out.State, out.PID, out.Address = "running", s.lab.Cluster().Switch(sw).PID,
				d.Subnet.SwitchAddr(sw).String()
		}
		return out
	}
	p := s.lab.Cluster().Node(int(id))
	out.Machine = s.lab.Machine(int(id))
	out.MAC, out.Cable = boot.MACOf(d.Subnet.HostAddr(id)).String(), string(p.Link.Kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Holder = s.nodes[id].holder
	known := &s.nodes[id]
	switch {
	case known.dead != "":
		out.State, out.Why, out.Killed = "dead", known.dead, known.endRequested
	case known.paused:
		out.State, out.PID = "paused", cmp.Or(p.PID, p.FarPID)
	default:
		out.State, out.PID = "running", cmp.Or(p.PID, p.FarPID)
	}
	if by, state, ok := s.lab.ClockOffset(int(id)); ok && known.dead == "" {
		out.Clock = &ClockState{OffsetUS: by.Microseconds(), State: state.String()}
	}
	s.started.describe(int(id), &out)
	return out
}

// linkState returns the present properties of a link of the lab. p is one of its directions, since
// all changes are of both.
func linkState(l *topology.Link, p *realtime.PortState) LinkState {
	now, lab := effective(p.Link), effective(l.Link)
	k := LinkState{
		Name: l.Name, State: "up",
		RateBPS: int64(now.Rate), DelayUS: now.Delay.Microseconds(), Loss: now.Loss, BitErrors: now.BitErrors,
		Duplicate: now.Duplicate, Reorder: now.Reorder, ReorderByUS: now.ReorderBy.Microseconds(),
		JitterUS: now.Jitter.Microseconds(),
		Changes:  changes(now, lab), Restore: changes(lab, now), Further: further(now),
	}
	switch {
	case l.Down:
		k.State = "absent"
	case !p.Up:
		k.State = "down"
	}
	k.Changed = len(k.Changes) > 0 || k.State == "down"
	return k
}

// describeLinks adds the links and the network's counters to a state.
func (s *supervisor) describeLinks(out *State) error {
	g, names := s.x.Graph, s.x.PortNames()
	if out.Broken != "" {
		return nil
	}
	look, err := s.lab.Look()
	if err != nil {
		return err
	}
	for i := range g.Links {
		l := &g.Links[i]
		k := linkState(l, &look.Ports[2*i])
		k.A, k.B = g.Nodes[l.A].Name, g.Nodes[l.B].Name
		for end := range 2 {
			p := &look.Ports[2*i+end]
			c := &p.Counters
			k.Ports = append(k.Ports, PortState{
				Name: names[2*i+end], QueuedBytes: int64(p.Queued), MaxQueue: int64(c.MaxQueue), Packets: c.Packets,
				Bytes: int64(c.Bytes), Drops: c.Drops, Lost: c.Lost, Cut: c.Cut, Marks: c.Marks,
			})
		}
		out.Links = append(out.Links, k)
	}
	var refused realtime.Refusals
	untaken := int64(0)
	for h := range look.Hosts {
		r := look.Hosts[h].Refusals
		n := &out.Nodes[h]
		n.NotRouted, n.Malformed, n.Spoofed, n.SpoofedMAC = r.NotRouted, r.Malformed, r.Spoofed, r.SpoofedMAC
		if !s.lab.Synchronized() {
			n.Untaken = look.Hosts[h].Own
		}
		if why := s.whyCutOff(h, &look.Hosts[h]); why != "" && n.PID != 0 {
			n.Unplugged, n.Why = true, why
		}
		refused.Add(r)
		untaken += n.Untaken
	}
	c := &look.Network
	out.Network = &Totals{
		Injected: c.Injected, Delivered: c.Delivered - look.Unreceived, Unreceived: look.Unreceived,
		Drops: c.Dropped, Lost: c.Lost, Cut: c.Cut, Marks: c.Marks,
		Refused: look.Refused, NotRouted: refused.NotRouted, Malformed: refused.Malformed, Spoofed: refused.Spoofed,
		SpoofedMAC: refused.SpoofedMAC, Untaken: untaken, Halted: look.Halted,
	}
	return nil
}
