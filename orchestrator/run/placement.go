package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/internal/privilege"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/lab"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/uml"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// placement is where the nodes of an emulation live and what carries their packets.
type placement struct {
	runtime string
	launch  runtime.Launch // nil: the built-in runtime's
	// containers says that the runtime starts a container for each process of the lab, and a
	// process that removes them if weft is killed.
	containers bool
	datapath   string             // fabric or kernel
	bypass     bool               // agents use bypass NICs
	mixed      bool               // but not all of them: see lab.Engine.Sockets
	kernel     qdisc.Capabilities // with datapath kernel
}

// findPlacement returns the placement of a lab on this machine, or on those of the options.
func findPlacement(ctx context.Context, l *lab.Lab, o Options) (placement, error) {
	if o.Machines != nil { // their agents have looked
		p := inNamespaces
		p.datapath = lab.DatapathFabric
		return p, nil
	}
	p, err := findRuntime(ctx, l)
	p.datapath = lab.DatapathFabric
	p.attach(&l.Engine)
	if err == nil && l.Engine.OnKernel() {
		p.datapath = lab.DatapathKernel
		p.kernel, err = ownKernel(ctx)
		if path := experiment.ProgramPath(l); err == nil && path != "" && !p.kernel.Delays() {
			err = l.Errorf(path, "%v", noDelays(ctx, p.kernel, "programs"))
		}
	}
	return p, err
}

// noDelays returns why this kernel cannot carry packets of programs, with a way out.
func noDelays(ctx context.Context, kernel qdisc.Capabilities, what string) error {
	return fmt.Errorf("datapath kernel: this kernel lacks %s, so that links delay nothing; the hosts of a workload "+
		"hold packets back instead, but %s cannot; datapath fabric can; %s",
		strings.Join(kernel.LacksDelays(), ", "), what, uml.Offer(ctx))
}

// ownKernel returns what this machine's kernel can do as a datapath, or an error with a way out.
func ownKernel(ctx context.Context) (qdisc.Capabilities, error) {
	c, err := kernelpath.Available()
	if err != nil && uml.Inside() == "" {
		err = fmt.Errorf("%w; %s", err, uml.Offer(ctx))
	}
	return c, err
}

// WithMachine adds what this machine's kernel lacks to the problems of a lab if one of them is that
// no kernel can do what the lab asks of datapath kernel. The user then sees both at once. It
// returns other errors as they are.
func WithMachine(ctx context.Context, err error) error {
	var all lab.Problems
	if !errors.As(err, &all) {
		return err
	}
	i := slices.IndexFunc(all, lab.Problem.OfKernel)
	if i < 0 {
		return err
	}
	_, lacks := ownKernel(ctx)
	if !errors.Is(lacks, qdisc.ErrRefused) { // it lacks nothing, or its abilities are unknown
		return err
	}
	return append(slices.Clone(all), lab.Problem{File: all[i].File, Path: "engine.datapath", Message: lacks.Error()})
}

// The runtimes that nodes can live in.
var (
	inNamespaces = placement{runtime: "namespace"}
	inContainers = placement{runtime: "docker", launch: docker.Launch, containers: true}
)

// requestedRuntime returns the runtime that a lab asks for. open reports whether Docker may replace
// it.
func requestedRuntime(l *lab.Lab) (p placement, open bool, err error) {
	image := experiment.ImagePath(l)
	switch {
	case l.Engine.Runtime == "docker":
		return inContainers, false, nil
	case l.Engine.Runtime == "namespace" && image != "":
		return inNamespaces, false, l.Errorf(image, "the built-in runtime knows no images; "+
			"--runtime docker does, and without the image the host runs a program of this machine")
	case image != "":
		return inContainers, false, nil
	}
	return inNamespaces, l.Engine.Runtime != "namespace" && l.Engine.Machines < 2, nil
}

// findRuntime returns a runtime for the nodes of a lab on this machine: the requested one or, if
// the lab leaves it open, the built-in one, and Docker where the built-in one is not available.
func findRuntime(ctx context.Context, l *lab.Lab) (placement, error) {
	p, open, err := requestedRuntime(l)
	if err != nil {
		return p, err
	}
	if p.containers {
		_, err = docker.Probe(ctx, "")
		return p, err
	}
	if err = privilege.CheckNamespaces(); err == nil || !open {
		return p, err
	}
	if _, e := docker.Probe(ctx, ""); e != nil {
		return p, err
	}
	return inContainers, nil
}

// attach sets what the agents send through.
func (p *placement) attach(e *lab.Engine) {
	p.bypass, p.mixed = e.Bypasses(), len(e.Sockets) > 0
}

// checkSockets returns an error if agents that drive several hosts lack sockets for the connections
// of x.
func (p placement) checkSockets(x *experiment.Experiment, o Options) error {
	if p.containers || p.bypass && !p.mixed || p.datapath != lab.DatapathFabric || o.Machines != nil {
		return nil
	}
	return emulate.CheckSockets(x.Plans)
}

// nic returns the kind of NIC of the agents for the record: empty for sockets.
func (p placement) nic() string {
	switch {
	case p.bypass && p.mixed:
		return "bypass, some sockets"
	case p.bypass:
		return "bypass"
	}
	return ""
}

// processes says how to start the nodes and the fabric: as this program.
func (p placement) processes(o Options) emulate.Processes {
	all := emulate.Processes{Launch: p.launch, Runtime: p.runtime, NoAgents: p.containers, Self: o.Self, Step: o.Step,
		Bypass: p.bypass}
	if o.Progress != nil {
		all.Measuring = func(done, of int) {
			o.Progress(Progress{Phase: Measuring, Done: units.Bytes(done), Total: units.Bytes(of)})
		}
	}
	return all
}

// hostPrograms returns the programs of the lab's hosts.
func hostPrograms(x *experiment.Experiment) (all []emulate.Program) {
	nodes, _ := x.Lab.Topology.Drawn()
	for _, n := range nodes {
		if id, ok := x.Graph.NodeNamed(n.Name); ok && n.Programmed() {
			all = append(all, emulate.Program{Host: int(id), LabTime: n.LabTime,
				Command: runtime.Command{Image: n.Image, Args: n.Run}})
		}
	}
	return all
}

// cannotEmulate returns err with the fact that this machine cannot emulate and a way out. It
// returns problems of the lab file as they are.
func cannotEmulate(l *lab.Lab, err error) error {
	var written lab.Problem
	if errors.As(err, &written) {
		return err
	}
	if experiment.ProgramPath(l) != "" {
		return fmt.Errorf("this machine cannot emulate, and the simulator runs no programs: %w", err)
	}
	return fmt.Errorf("this machine cannot emulate: %w; --engine sim runs the lab anywhere", err)
}
