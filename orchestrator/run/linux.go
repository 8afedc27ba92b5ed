package run

import (
	"context"
	"fmt"

	"weft/internal/privilege"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/uml"
)

// Linux is how this machine can have Linux as the network of a lab.
type Linux struct {
	Runtime string // namespace or docker
	// UML says that User Mode Linux carries the packets, since this machine's kernel cannot: Why.
	UML bool
	Why string
	// Err says what the machine lacks, and how to get it; nil: Linux can be the network.
	Err error
}

// FindLinux finds out how this machine can have Linux as the network: in containers where a Docker
// Engine can be used, else in namespaces, and under User Mode Linux if this kernel lacks what it
// needs and that is installed. Nothing is pulled from a registry: the image of the containers is
// made from this program.
func FindLinux(ctx context.Context) Linux {
	_, err := kernelpath.Available()
	if err != nil {
		return linuxWithout(ctx, err)
	}
	if _, err := docker.Probe(ctx, ""); err == nil {
		return Linux{Runtime: inContainers.runtime}
	}
	return Linux{Runtime: inNamespaces.runtime, Err: privilege.CheckNamespaces()}
}

// FindUML is FindLinux for User Mode Linux, whatever this machine's kernel can do.
func FindUML(ctx context.Context) Linux { return linuxWithout(ctx, nil) }

// linuxWithout returns how Linux can be the network without this machine's kernel, which cannot for
// the reason lacks; nil: nobody asked it.
func linuxWithout(ctx context.Context, lacks error) Linux {
	l := Linux{Runtime: inNamespaces.runtime, UML: true, Why: "asked for"}
	if lacks != nil {
		l.Why = lacks.Error()
		if initial, _ := privilege.InitialUserNS(); !initial {
			l.Why += "; root may have more: sudo loads BPF programs"
		}
	}
	if _, err := uml.Find(ctx); err != nil {
		l.Err = fmt.Errorf("%s; %s", l.Why, uml.Offer(ctx))
		if lacks == nil {
			l.Err = err
		}
	}
	return l
}
