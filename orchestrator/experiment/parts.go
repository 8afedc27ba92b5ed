package experiment

import (
	"weft/fabric"
)

// Parts returns the part of the network that each host and switch belongs to, by fabric.NodeID, if
// the lab is emulated by several machines; nil: it stays in one piece. An error says which setting
// does not go with that.
func (x *Experiment) Parts() ([]int32, error) {
	e := &x.Lab.Engine
	if e.Machines < 2 {
		return nil, nil
	}
	for _, c := range []struct {
		set       bool
		path, why string
	}{
		{e.Datapath == OnKernel, "engine.datapath", "Linux forwards packets on one machine; expected fabric"},
		{e.Runtime == "docker", "engine.runtime", "containers are on one machine; expected namespace"},
		{e.Bypasses(), "engine.nic", "a bypass NIC reaches a fabric in one piece; expected socket"},
	} {
		if c.set {
			return nil, x.Lab.Errorf(c.path, "%s, or engine.machines 1", c.why)
		}
	}
	parts, err := x.Fabric.Cut(e.Machines)
	if err != nil {
		return nil, x.Lab.Errorf("engine.machines", "%v", err)
	}
	for i := range x.Faults.Changes {
		c := &x.Faults.Changes[i]
		for _, p := range c.Ports {
			if c.Up != nil && x.Lab.Queues.PFC != nil && crosses(&x.Fabric, parts, p) {
				return nil, x.Lab.Errorf("engine.machines", "a fault takes %s down, which leads from one part of the "+
					"network to another; with PFC only links within a part can go down; expected 1", x.PortNames()[p])
			}
		}
	}
	return parts, nil
}

// crosses reports whether a port's link leads from one part to another.
func crosses(cfg *fabric.Config, parts []int32, port int) bool {
	p := &cfg.Ports[port]
	return parts[p.From] != parts[p.To]
}
