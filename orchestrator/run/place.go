package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/lab"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
	"weft/orchestrator/uml"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// place is where the nodes of an emulation live.
type place struct {
	runtime  string
	launch   runtime.Launch     // nil: the built-in runtime's
	contains bool               // it starts a container for each process of the lab, and a process that removes them if need be
	datapath string             // fabric, kernel
	kernel   qdisc.Capabilities // of the datapath kernel
}

// places finds where the nodes of a lab can live on this machine, and what carries their packets.
func places(ctx context.Context, l *lab.Lab) (place, error) {
	p, err := nodesIn(ctx, l)
	p.datapath = "fabric"
	if err == nil && l.Engine.Datapath == experiment.OnKernel {
		p.datapath = experiment.OnKernel
		p.kernel, err = ownKernel(ctx)
	}
	return p, err
}

// ownKernel returns what this machine's kernel can do as a datapath, or an error with a way out.
func ownKernel(ctx context.Context) (qdisc.Capabilities, error) {
	c, err := kernelpath.Available()
	if err != nil && uml.Inside() == "" {
		err = fmt.Errorf("%w; %s", err, uml.Offer(ctx))
	}
	return c, err
}

// WithMachine adds what this machine's kernel lacks to the problems of a lab that asks datapath kernel for what no kernel can do, so that
// both are told at once. It returns other errors as they are.
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
	if !errors.Is(lacks, qdisc.ErrRefused) { // it lacks nothing, or it cannot be asked
		return err
	}
	return append(slices.Clone(all), lab.Problem{File: all[i].File, Path: "engine.datapath", Message: lacks.Error()})
}

// The runtimes that nodes can live in.
var (
	inNamespaces = place{runtime: "namespace"}
	inContainers = place{runtime: "docker", launch: docker.Launch, contains: true}
)

// asked is where the nodes of a lab are to live; open: where they can, and there for choice.
func asked(l *lab.Lab) (p place, open bool, err error) {
	image := experiment.ImagePath(l)
	switch {
	case l.Engine.Runtime == "docker":
		return inContainers, false, nil
	case l.Engine.Runtime == "namespace" && image != "":
		return inNamespaces, false, l.Errorf(image, "the built-in runtime knows no images; --runtime docker does, and without the image the host runs a program of this machine")
	case image != "":
		return inContainers, false, nil
	}
	return inNamespaces, l.Engine.Runtime != "namespace", nil
}

// nodesIn finds where the nodes of a lab can live on this machine: in the runtime that the lab asks for or, if it leaves
// that open, in the built-in one, and in Docker's where that one cannot be had.
func nodesIn(ctx context.Context, l *lab.Lab) (place, error) {
	p, open, err := asked(l)
	if err != nil {
		return p, err
	}
	if p.contains {
		_, err = docker.Probe(ctx, "")
		return p, err
	}
	if err = namespace.Available(); err == nil || !open {
		return p, err
	}
	if _, e := docker.Probe(ctx, ""); e != nil {
		return p, err
	}
	return inContainers, nil
}

// processes says how nodes and the fabric are started: as this program.
func (p place) processes(o Options) emulate.Processes {
	all := emulate.Processes{Launch: p.launch, Runtime: p.runtime, NoAgents: p.contains, Self: o.Self, Step: o.Step}
	if o.Progress != nil {
		all.Measuring = func(done, of int) {
			o.Progress(Progress{Phase: Measuring, Done: units.Bytes(done), Total: units.Bytes(of)})
		}
	}
	return all
}

// programs are those of the lab's hosts.
func programs(x *experiment.Experiment) (all []emulate.Program) {
	nodes, _ := x.Lab.Topology.Drawn()
	for _, n := range nodes {
		if id, ok := x.Graph.NodeNamed(n.Name); ok && (n.Image != "" || n.Run != nil) {
			all = append(all, emulate.Program{Host: int(id), Command: runtime.Command{Image: n.Image, Args: n.Run}})
		}
	}
	return all
}

// unable is why this machine cannot emulate, and a way out.
func unable(err error) error {
	var written lab.Problem
	if errors.As(err, &written) {
		return err
	}
	return fmt.Errorf("this machine cannot emulate: %w; --engine sim runs the lab anywhere", err)
}
