package experiment

import (
	"fmt"
	"strings"

	"weft/fabric"
	"weft/internal/clip"
	"weft/internal/plural"
)

// Parts returns the part of the network that each host and switch belongs to, by fabric.NodeID, if
// the lab is emulated by several machines; nil: it stays in one piece. An error says which setting
// does not go with that.
func (x *Experiment) Parts() ([]int32, error) {
	e := &x.Lab.Engine
	if e.Machines < 2 {
		return nil, nil
	}
	image := ImagePath(x.Lab)
	for _, c := range []struct {
		set       bool
		path, why string
	}{
		{image != "", image, "a network in parts has no programs of images; expected one that each machine has"},
		{e.OnKernel(), "engine.datapath", "Linux forwards packets on one machine; expected fabric"},
		{e.Runtime == "docker", "engine.runtime", "containers are on one machine; expected namespace"},
		{e.Bypasses(), "engine.nic", "a bypass NIC reaches a fabric in one piece; expected socket"},
	} {
		if c.set {
			return nil, x.Lab.Errorf(c.path, "%s, or engine.machines 1 without --on", c.why)
		}
	}
	parts, err := x.cut()
	if err != nil {
		return nil, err
	}
	for i := range x.Faults.Changes {
		c := &x.Faults.Changes[i]
		for _, p := range c.Ports {
			if c.Up != nil && x.Lab.Queues.PFC != nil && crosses(&x.Fabric, parts, p) {
				return nil, x.Lab.Errorf("engine.machines", "a fault takes %s down, which leads from one part of the "+
					"network to another; with PFC only links within a part can go down; expected 1, without --on",
					x.PortNames()[p])
			}
		}
	}
	return parts, nil
}

// cut returns the part of each node.
func (x *Experiment) cut() ([]int32, error) {
	e := &x.Lab.Engine
	if e.Cut == nil {
		parts, err := x.Fabric.Cut(e.Machines)
		if err != nil {
			return nil, x.Lab.Errorf("engine.machines", "%v; fewer parts may do, or 1 without --on", err)
		}
		return parts, nil
	}
	if len(e.Cut) != e.Machines {
		return nil, x.Lab.Errorf("engine.cut", "%s; expected one for each of engine.machines %d",
			plural.Count(len(e.Cut), "part"), e.Machines)
	}
	of := make([]int32, len(x.Fabric.Switches))
	for k, names := range e.Cut {
		path := fmt.Sprintf("engine.cut.%d", k)
		for name := range strings.FieldsSeq(names) {
			n, ok := x.Graph.NodeNamed(name)
			if s := int(n) - x.Fabric.Hosts; !ok || s < 0 {
				return nil, x.Lab.Errorf(path, "%q is no switch of this network; weft graph lists them",
					clip.Text(name))
			} else if of[s] != 0 {
				return nil, x.Lab.Errorf(path, "%s is in part %d already", name, of[s])
			} else {
				of[s] = int32(k + 1)
			}
		}
	}
	for s := range of {
		if of[s]--; of[s] < 0 {
			return nil, x.Lab.Errorf("engine.cut", "switch %s is in no part", x.Graph.Nodes[x.Fabric.Hosts+s].Name)
		}
	}
	parts, err := x.Fabric.CutBy(of, e.Machines)
	if err != nil {
		return nil, x.Lab.Errorf("engine.cut", "%v", err)
	}
	return parts, nil
}

// crosses reports whether a port's link leads from one part to another.
func crosses(cfg *fabric.Config, parts []int32, port int) bool {
	p := &cfg.Ports[port]
	return parts[p.From] != parts[p.To]
}
