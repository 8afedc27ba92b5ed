package experiment

import (
	"errors"
	"fmt"

	"weft/host"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/units"
)

// Program is a program of the workload with its hosts.
type Program struct {
	*lab.Program
	On    []topology.NodeID // its hosts, in the order of ranks
	Names []string          // of these hosts
	Begin units.Time        // the lab's start, after the warm-up of clocks
}

// addPrograms adds the programs of the workload.
func (x *compiler) addPrograms() error {
	var errs []error
	for i := range x.Lab.Programs {
		p := &x.Lab.Programs[i]
		at := fmt.Sprintf("workload.%d", p.Index)
		on, err := x.programHosts(p)
		if err != nil {
			errs = append(errs, x.Lab.Errorf(at+".hosts", "%v", err))
		}
		if x.Lab.Engine.OnKernel() {
			errs = append(errs, x.Lab.Errorf("engine.datapath", "programs of the workload run on the modelled fabric "+
				"alone; --datapath fabric runs this lab"))
		}
		program := Program{Program: p, On: on, Begin: p.Start}
		for _, h := range on {
			program.Names = append(program.Names, x.Graph.Nodes[h].Name)
		}
		x.Programs = append(x.Programs, program)
	}
	return errors.Join(errs...)
}

// programHosts returns the hosts of a program.
func (x *compiler) programHosts(p *lab.Program) (on []topology.NodeID, err error) {
	first := p.Hosts.First
	if p.Hosts.All {
		first = x.Graph.Hosts
	}
	if first > x.Graph.Hosts {
		return nil, fmt.Errorf("%d hosts; the lab has %d", first, x.Graph.Hosts)
	}
	for h := range first {
		on = append(on, topology.NodeID(h))
	}
	for _, name := range p.Hosts.Names {
		id, ok := x.Graph.NodeNamed(name)
		if !ok || int(id) >= x.Graph.Hosts {
			return nil, fmt.Errorf("no host is named %q", name)
		}
		on = append(on, id)
	}
	return on, nil
}

// ProgramDemands returns what each host can ask of the network for its programs: nobody knows what
// they do, so each may send at line rate, to all others that have some.
func (x *Experiment) ProgramDemands() []host.Demand {
	all := make([]host.Demand, len(x.Plans))
	var on []transport.HostID
	for i := range x.Programs {
		for _, h := range x.Programs[i].On {
			if p, d := &x.Plans[h], &all[h]; d.Sent == 0 {
				d.Sent = host.PacketRate(p.Endpoint.LineRate, p.Endpoint.MTU)
				d.Received = d.Sent
				on = append(on, transport.HostID(h))
			}
		}
	}
	for _, h := range on {
		all[h].To = [][]transport.HostID{on}
	}
	return all
}
