package run

import (
	"cmp"
	"context"
	"fmt"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/lab"
	"weft/orchestrator/plan"
	"weft/orchestrator/topology"
	"weft/tc-shaping/qdisc"
)

// PlanDeployment returns what deploying a lab in a subnet creates, on this machine or on others
// (far). It creates nothing. It looks at the machine to find a runtime if the lab leaves that open.
// kernel is what the kernel can do as a datapath; nil: what this machine's can, or everything if
// this one cannot be a datapath.
func PlanDeployment(ctx context.Context, l *lab.Lab, subnet topology.Subnet, far bool,
	kernel *qdisc.Capabilities) (plan.Plan, error) {
	if l.Engine.Kind == "sim" {
		return simulatedPlan(l)
	}
	if err := onePiece(l, far); err != nil {
		return plan.Plan{}, err
	}
	x, err := experiment.ForDeployment(l, subnet)
	if err == nil {
		_, err = x.Parts()
	}
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := makePlan(ctx, x, "deploy", far, kernel, (*emulate.Experiment).ToDeploy)
	if err == nil && l.Engine.Kind == "auto" && experiment.Runnable(l) == nil {
		p.Note, err = deploymentNote(l, x.Graph)
	}
	return p, err
}

// deploymentNote says how weft run treats a lab that leaves the engine open, unless it emulates the
// lab as weft deploy does.
func deploymentNote(l *lab.Lab, g *topology.Graph) (note string, err error) {
	x, err := experiment.SketchOn(l, g)
	if err != nil {
		return "", err
	}
	simulated, err := x.SimulatedUnasked()
	switch {
	case err != nil:
		first := experiment.Problems(l, err)[0]
		return fmt.Sprintf("weft deploy creates this; weft run refuses the lab: %v", first), nil
	case simulated != "":
		return "weft deploy and weft run --engine emu create this; weft run simulates it: " + simulated, nil
	}
	return "", nil
}

// PlanRun returns what running a lab creates if it is emulated, on this machine or on others (far),
// which are taken to have as many processors. kernel is that of PlanDeployment.
func PlanRun(ctx context.Context, l *lab.Lab, far bool, kernel *qdisc.Capabilities) (plan.Plan, error) {
	if l.Engine.Kind == "sim" {
		return simulatedPlan(l)
	}
	g, err := experiment.NetworkOf(l)
	if err != nil {
		return plan.Plan{}, err
	}
	if err := experiment.Fits(l, g); err != nil {
		return plan.Plan{}, err
	}
	x, err := experiment.BuildOn(l, g)
	if err != nil {
		return plan.Plan{}, err
	}
	simulated := ""
	if l.Engine.Kind == "auto" {
		simulated, err = x.SimulatedUnasked()
	} else {
		err = x.Emulable()
	}
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := makePlan(ctx, x, "run", far, kernel, (*emulate.Experiment).ToRun)
	switch {
	case simulated != "":
		p.Note = "weft run --engine emu creates this; weft run simulates it: " + simulated
	case l.Engine.Both():
		p.Note = "of the two runs, the one in the simulator creates nothing"
	default:
		p.Note = experiment.UnknownTime(l)
	}
	return p, err
}

// simulatedPlan returns the plan of a lab that asks for the simulator.
func simulatedPlan(l *lab.Lab) (plan.Plan, error) {
	g, err := experiment.NetworkOf(l)
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Simulated(l.Name, g.Title), nil
}

// makePlan returns the plan of a command. setup returns the setup that the command launches.
func makePlan(
	ctx context.Context, x *experiment.Experiment, command string, far bool, kernel *qdisc.Capabilities,
	setup func(*emulate.Experiment) (*emulate.Setup, error),
) (plan.Plan, error) {
	where, open, err := requestedRuntime(x.Lab)
	if err != nil {
		return plan.Plan{}, err
	}
	if open && !far {
		where, _ = findRuntime(ctx, x.Lab) // on an error keep the built-in runtime: another machine may have it
	}
	dilation := x.Lab.Engine.Dilation
	if command == "run" { // a deployed lab has no agents
		where.attach(&x.Lab.Engine)
	}
	if kernel == nil {
		all := qdisc.Full()
		kernel = &all
		if x.Lab.Engine.OnKernel() {
			if own, err := kernelpath.Available(); err == nil {
				kernel = &own
			}
		}
	}
	e := emulation(x, cmp.Or(dilation, 1), where.processes(Options{}), *kernel)
	s, err := setup(&e)
	if err != nil {
		return plan.Plan{}, err
	}
	p := plan.Plan{
		Lab: x.Lab.Name, Topology: x.Graph.Title, Command: command, Runtime: where.runtime,
		Datapath: lab.DatapathFabric, Subnet: x.Subnet.Prefix().String(), Dilation: dilation, NIC: where.nic(),
	}
	for k := range s.Machines {
		if far && command == "run" {
			s.Machines[k].Agents = emulate.Agents(len(s.Machines[k].Nodes))
		}
		p.Machines = append(p.Machines, plan.Machine{Name: emulate.MachineName(k)})
	}
	for n, k := range e.Parts {
		if m := &p.Machines[k]; n < len(x.Plans) {
			m.Hosts = append(m.Hosts, x.Graph.Nodes[n].Name)
		} else {
			m.Switches = append(m.Switches, x.Graph.Nodes[n].Name)
		}
	}
	var links []qdisc.Tree
	if s.Network != nil {
		p.Datapath = lab.DatapathKernel
		if dilation != 0 {
			if links, err = e.Shape(*kernel); err != nil {
				return plan.Plan{}, err
			}
		}
	}
	return plan.Emulated(p, s, plan.Runtime{Containers: where.containers, Supervised: command == "deploy"}, links), nil
}
