package run

import (
	"context"
	"fmt"

	"weft/orchestrator/emulate"
	"weft/orchestrator/lab"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
)

// place is where the nodes of an emulation live.
type place struct {
	runtime string
	launch  runtime.Launch // nil: the built-in runtime's
}

// places finds where the nodes of a lab can live on this machine: in the runtime that the lab asks for or, if it leaves
// that open, in the built-in one, and in Docker's where that one cannot be had.
func places(ctx context.Context, l *lab.Lab) (place, error) {
	inNamespaces, inContainers := place{runtime: "namespace"}, place{runtime: "docker", launch: docker.Launch}
	switch l.Engine.Runtime {
	case "docker":
		_, err := docker.Probe(ctx, "")
		return inContainers, err
	case "namespace":
		return inNamespaces, namespace.Available()
	}
	err := namespace.Available()
	if err == nil {
		return inNamespaces, nil
	}
	if _, e := docker.Probe(ctx, ""); e != nil {
		return inNamespaces, err
	}
	return inContainers, nil
}

// processes says how nodes and the fabric are started: as this program.
func (p place) processes(o Options) emulate.Processes {
	return emulate.Processes{Launch: p.launch, Runtime: p.runtime, Self: o.Self}
}

// chosen says that the lab asks for this runtime and no other, so that simulating instead would not be what was asked.
func chosen(l *lab.Lab) bool { return l.Engine.Runtime == "docker" }

// unable is why this machine cannot emulate, and a way out.
func unable(err error) error {
	return fmt.Errorf("this machine cannot emulate: %w; --engine sim runs the lab anywhere", err)
}
