package experiment

import (
	"errors"
	"fmt"

	"weft/collectives/buffer"
	"weft/host"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/tc-shaping/ports"
	"weft/tc-shaping/qdisc"
	"weft/transport"
)

// maxAutoHosts is the maximum number of hosts that `auto` emulates. Beyond it, processes rather
// than packets fill the machine. Ours.
const maxAutoHosts = 128

// maxHosts is the maximum number of hosts that are emulated on request. Each is a process of some
// megabytes with a network of its own. Ours.
const maxHosts = 1024

// Simulable returns an error if a lab needs what only emulation has.
func Simulable(l *lab.Lab) error {
	at := ProgramPath(l)
	if at == "" {
		return nil
	}
	if only := unemulated(l); len(only) > 0 {
		return l.Errorf(at, "the simulator's hosts run no programs, and there is %s in the simulator alone; leave out "+
			"one of them", only[0].path)
	}
	return l.Errorf(at, "the simulator's hosts run no programs; --engine emu runs this lab")
}

// simulateInstead returns what to do about a lab that asks for what no emulation has, as the end of
// a message.
func simulateInstead(l *lab.Lab) string {
	if at := ProgramPath(l); at != "" {
		return "the simulator's hosts run no programs (" + at + "): leave out one of them"
	}
	return "--engine sim runs this lab"
}

// SimulatedUnasked returns why a lab that leaves the engine open is simulated on any machine, or ""
// if it is not. For a lab that asks for what only emulation has, it returns an error instead.
func (x *Experiment) SimulatedUnasked() (why string, err error) {
	err = x.Emulable()
	switch {
	case err != nil && AsksForEmulation(x.Lab):
		return "", err
	case err != nil:
		return fmt.Sprintf("the emulation cannot run this lab: %v", Problems(x.Lab, err)[0]), nil
	case x.Graph.Hosts > maxHosts:
		return fmt.Sprintf("%d hosts are more than the %d that can be emulated on one machine", x.Graph.Hosts,
			maxHosts), nil
	case x.Graph.Hosts > maxAutoHosts:
		return fmt.Sprintf("%d hosts are more than the %d that are emulated by default; --engine emu emulates them",
			x.Graph.Hosts,
			maxAutoHosts), nil
	}
	return "", nil
}

// Fits returns an error if there are more hosts than run and deploy emulate.
func Fits(l *lab.Lab, g *topology.Graph) error {
	if n := g.Hosts; n > maxHosts {
		return l.Errorf("topology", "%d hosts are more than the %d that can be emulated on one machine; --engine "+
			"sim runs them", n, maxHosts)
	}
	return nil
}

// Emulable returns an error for each setting that only the simulator supports.
func (x *Experiment) Emulable() error {
	_, parts := x.Parts()
	_, sockets := x.Sockets()
	return errors.Join(x.summable(), x.sendable(), onlySimulated(x.Lab), parts, sockets)
}

// Size of a program in the message to its node, in JSON and at most. Ours: internal/control bounds
// a message to 64 MiB, and the rest of a plan is small.
const (
	maxProgram = 60 << 20
	opBytes    = 250
	afterBytes = 11
)

// sendable rejects jobs with a program that is too large for a node.
func (x *Experiment) sendable() error {
	l := x.Lab
	found := once{lab: l, told: map[string]bool{}}
	for i := range x.Plans {
		bytes := 0
		for k := range x.Plans[i].Items {
			it := &x.Plans[i].Items[k]
			if it.Given == nil || it.Given.Parts[it.Rank] == nil {
				continue
			}
			program := it.Given.Parts[it.Rank].Program
			bytes += opBytes * len(program)
			for o := range program {
				bytes += afterBytes * len(program[o].After)
			}
			if bytes > maxProgram {
				found.add(fmt.Sprintf("workload.%d", l.Workload[it.Index].Index),
					"the program of %s has %d operations, and emulated hosts take about %d; %s",
					x.Graph.Nodes[i].Name, len(program), maxProgram/opBytes, simulateInstead(l))
				break
			}
		}
	}
	return errors.Join(found.errs...)
}

// summable rejects collectives of more ranks than emulated hosts reduce without rounding.
func (x *Experiment) summable() error {
	l := x.Lab
	found := once{lab: l, told: map[string]bool{}}
	for i := range l.Workload {
		if most, n := buffer.MostRanks(l.Workload[i].Spec(0, 0)), len(x.Item(i).Ranks); n > most {
			found.add(fmt.Sprintf("workload.%d.ranks", l.Workload[i].Index),
				"emulated hosts reduce %s exactly for at most %d ranks, not for %d; %s",
				l.Workload[i].Type, most, n, simulateInstead(l))
		}
	}
	return errors.Join(found.errs...)
}

// unemulated lists the settings of a lab that only the simulator supports, and what they ask for.
func unemulated(l *lab.Lab) (all []struct{ path, what string }) {
	for _, c := range []struct {
		set        bool
		path, what string
	}{
		{l.Background.Load > 0, "background", "there is background traffic"},
		{l.Measure.Rates > 0, "measure.rates", "rates are measured"},
		{l.Measure.Acks, "measure.acks", "acknowledgements are recorded one by one"},
		{l.Measure.Events != "", "measure.queue_events", "queues are followed event by event"},
		// Without a workload, measure.from is about errors of clocks, which emulation measures too.
		{l.Measure.From > 0 && len(l.Workload) > 0, "measure.from", "there is a warm-up"},
	} {
		if c.set {
			all = append(all, struct{ path, what string }{c.path, c.what})
		}
	}
	return all
}

// onlySimulated rejects the settings that only the simulator supports.
func onlySimulated(l *lab.Lab) error {
	var errs []error
	for _, c := range unemulated(l) {
		errs = append(errs, l.Errorf(c.path, "%s only in the simulator; %s", c.what, simulateInstead(l)))
	}
	return errors.Join(errs...)
}

// checkKernel rejects what no kernel can do at the dilation of the lab.
func (x *Experiment) checkKernel() error {
	d := x.Lab.Engine.Dilation
	if !x.Lab.Engine.OnKernel() || x.Lab.Engine.Kind == "sim" || d == 0 {
		return nil
	}
	return x.Honoured(d, qdisc.Full())
}

// Honoured returns an error at the lab's setting if a kernel cannot model the network at a
// dilation.
func (x *Experiment) Honoured(d float64, kernel qdisc.Capabilities) error {
	if lacks := kernel.Lacks(qdisc.PartBPF); lacks != nil && transport.FactsOf(x.Lab.Transport.Kind).Telemetry {
		return x.Lab.Errorf("transport.kind", "datapath kernel writes telemetry into packets, which %s needs, by BPF "+
			"programs; this kernel lacks %s", x.Lab.Transport.Kind, lacks[0])
	}
	port, err := ports.Check(&x.Fabric, ports.Sources(x.Addrs()), x.Faults.Changes, d, host.InterfaceMTU(x.Plans),
		kernel)
	if err == nil {
		return nil
	}
	return x.Lab.Errorf("engine.datapath", "%s at dilation %.15g: %v; datapath fabric can", x.PortNames()[port], d, err)
}

// AsksForEmulation reports whether the lab requests something that only an emulation has: a certain
// runtime or datapath, several machines, or programs in hosts.
func AsksForEmulation(l *lab.Lab) bool {
	return l.Engine.Runtime == "docker" || l.Engine.OnKernel() || l.Engine.Machines > 1 ||
		ProgramPath(l) != ""
}

// ProgramPath returns the path of the lab's first program, or "".
func ProgramPath(l *lab.Lab) string {
	if len(l.Programs) > 0 {
		return fmt.Sprintf("workload.%d.program", l.Programs[0].Index)
	}
	nodes, _ := l.Topology.Drawn()
	for i, n := range nodes {
		switch {
		case n.Run != nil:
			return fmt.Sprintf("topology.nodes.%d.run.0", i)
		case n.Image != "":
			return fmt.Sprintf("topology.nodes.%d.image", i)
		}
	}
	return ""
}

// UnknownTime returns why nobody can tell how long a run takes; "" if that follows from the lab.
func UnknownTime(l *lab.Lab) string {
	if ProgramPath(l) == "" {
		return ""
	}
	return "how long it takes depends on its programs"
}

// ImagePath returns the path of the lab's first image, or "".
func ImagePath(l *lab.Lab) string {
	nodes, _ := l.Topology.Drawn()
	for i, n := range nodes {
		if n.Image != "" {
			return fmt.Sprintf("topology.nodes.%d.image", i)
		}
	}
	for i := range l.Programs {
		if l.Programs[i].Image != "" {
			return fmt.Sprintf("workload.%d.image", l.Programs[i].Index)
		}
	}
	return ""
}
