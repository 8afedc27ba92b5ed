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
)

// maxAutoHosts is how many hosts `auto` emulates at most: beyond, processes rather than packets fill the machine.
// Ours.
const maxAutoHosts = 128

// maxHosts is how many hosts are emulated even when asked for: each is a process of some megabytes with a network of
// its own. Ours.
const maxHosts = 1024

// Simulable refuses what only emulation does.
func Simulable(l *lab.Lab) error {
	if at := ProgramPath(l); at != "" {
		return l.Errorf(at, "the simulator's hosts run no programs; --engine emu runs this lab")
	}
	return nil
}

// SimulatedUnasked is why a lab that leaves the engine open is simulated on any machine; "": it is not. One that asks for what only
// emulation has is refused instead.
func (x *Experiment) SimulatedUnasked() (why string, err error) {
	err = x.Emulable()
	switch {
	case err != nil && AsksForEmulation(x.Lab):
		return "", err
	case err != nil:
		return fmt.Sprintf("the emulation cannot run this lab: %v", Problems(x.Lab, err)[0]), nil
	case x.Graph.Hosts > maxAutoHosts:
		return fmt.Sprintf("%d hosts are more than the %d that are emulated unless asked for", x.Graph.Hosts, maxAutoHosts), nil
	}
	return "", nil
}

// Fits refuses more hosts than are emulated, by run as by deploy.
func Fits(l *lab.Lab, g *topology.Graph) error {
	if n := g.Hosts; n > maxHosts {
		return l.Errorf("topology", "%d hosts are more than the %d that can be emulated on one machine; --engine sim runs them", n, maxHosts)
	}
	return nil
}

// Emulable refuses what only the simulator does, by the setting that asks for it.
func (x *Experiment) Emulable() error { return errors.Join(x.summable(), onlySimulated(x.Lab)) }

// summable refuses collectives of more ranks than emulated hosts reduce without rounding.
func (x *Experiment) summable() error {
	l := x.Lab
	found := once{lab: l, told: map[string]bool{}}
	for i := range l.Workload {
		if most, n := buffer.MostRanks(l.Workload[i].Spec(0, 0)), len(x.Item(i).Ranks); n > most {
			found.add(fmt.Sprintf("workload.%d.ranks", l.Workload[i].Index), "emulated hosts reduce %s exactly for at most %d ranks, not for %d; --engine sim runs this lab",
				l.Workload[i].Type, most, n)
		}
	}
	return errors.Join(found.errs...)
}

// onlySimulated refuses the settings of a lab that the simulator alone heeds.
func onlySimulated(l *lab.Lab) error {
	var errs []error
	for _, c := range []struct {
		set        bool
		path, what string
	}{
		{l.Background.Load > 0, "background", "there is background traffic"},
		{l.Measure.Rates > 0, "measure.rates", "rates are measured"},
		{l.Measure.Acks, "measure.acks", "acknowledgements are recorded one by one"},
		{l.Measure.Events != "", "measure.queue_events", "queues are followed event by event"},
		{l.Measure.From > 0 && len(l.Workload) > 0, "measure.from", "there is a warm-up"}, // errors of clocks may count from an instant on
	} {
		if c.set {
			errs = append(errs, l.Errorf(c.path, "%s in the simulator alone so far; --engine sim runs this lab", c.what))
		}
	}
	return errors.Join(errs...)
}

// checkKernel refuses what no kernel can be at the dilation that the lab asks for.
func (x *Experiment) checkKernel() error {
	d := x.Lab.Engine.Dilation
	if x.Lab.Engine.Datapath != OnKernel || x.Lab.Engine.Kind == "sim" || d == 0 {
		return nil
	}
	return x.Honoured(d, qdisc.Full())
}

// Honoured refuses what a kernel cannot be at a dilation, by the setting of the lab.
func (x *Experiment) Honoured(d float64, kernel qdisc.Capabilities) error {
	port, err := ports.Check(&x.Fabric, ports.Sources(x.Addrs()), x.Faults.Changes, d, host.InterfaceMTU(x.Plans), kernel)
	if err == nil {
		return nil
	}
	return x.Lab.Errorf("engine.datapath", "%s at dilation %g: %v; datapath fabric can", x.PortNames()[port], d, err)
}

// OnKernel is the datapath of the machine's kernel.
const OnKernel = "kernel"

// AsksForEmulation says that the lab asks for what only emulation has: this runtime or datapath and no other, or programs in hosts.
// Simulating it instead would not be what was asked.
func AsksForEmulation(l *lab.Lab) bool {
	return l.Engine.Runtime == "docker" || l.Engine.Datapath == OnKernel || ProgramPath(l) != ""
}

// ProgramPath is where the lab's first program is written; empty: it has none.
func ProgramPath(l *lab.Lab) string {
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

// ImagePath is where the lab's first image is written; empty: it has none.
func ImagePath(l *lab.Lab) string {
	nodes, _ := l.Topology.Drawn()
	for i, n := range nodes {
		if n.Image != "" {
			return fmt.Sprintf("topology.nodes.%d.image", i)
		}
	}
	return ""
}
