package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"weft/host"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/realtime"
)

// Deployment is the network of a deployed lab, for use by hand, without the lab's workload and
// faults.
type Deployment struct {
	Experiment *experiment.Experiment
	Emulation  emulate.Experiment
	Dilation   float64
	Why        string // how the dilation was chosen
}

// PrepareDeployment returns the network of a lab that is to stay up. The lab needs no workload. If
// it has one, the dilation is one at which this machine could carry it.
func PrepareDeployment(ctx context.Context, l *lab.Lab, o Options) (*Deployment, error) {
	if err := onePiece(l, o.Machines != nil); err != nil {
		return nil, err
	}
	x, err := experiment.ForDeployment(l, o.Subnet)
	if err == nil {
		_, err = x.Parts()
	}
	if err != nil {
		return nil, err
	}
	where, err := findPlacement(ctx, l, o)
	if errors.As(err, new(lab.Problem)) {
		return nil, err
	}
	if err == nil && where.datapath == lab.DatapathKernel && !where.kernel.Delays() {
		err = noDelays(ctx, where.kernel, "deployed ones")
	}
	if err != nil {
		return nil, fmt.Errorf("this machine cannot emulate: %w", err)
	}
	s := &Deployment{Experiment: x, Dilation: cmp.Or(l.Engine.Dilation, o.Dilation), Why: "asked for"}
	if s.Dilation == 0 {
		work, err := deploymentLoad(l, x)
		if err != nil {
			return nil, err
		}
		if s.Dilation, s.Why, err = where.chooseDilation(ctx, x, work, o); err != nil {
			return nil, err
		}
	}
	s.Emulation = emulation(x, s.Dilation, where.processes(o), where.kernel)
	if k := s.Emulation.Kernel; k != nil {
		k.Slower = slowerDilations(x, where, s.Dilation)
		k.Slowed = func(r realtime.Ready) { s.Dilation, s.Why = r.Dilation, slowdownReason(r) }
	}
	s.Emulation.Clocks = x.Clocks.Standing
	s.Emulation.NoClocks = NoClocks(l)
	if o.Machines != nil {
		if s.Emulation.Processes.Machines, err = o.Machines.Launches(ctx); err != nil {
			return nil, err
		}
	}
	s.Emulation.SampleQueues = 0 // nobody keeps samples, and an idle network must cost nothing
	return s, nil
}

// NoClocks returns why programs cannot read the clocks of a lab when it is deployed; "": they can.
func NoClocks(l *lab.Lab) string {
	kind := l.Clocks.Kind()
	if !kind.Talks || !l.Engine.OnKernel() {
		return ""
	}
	return fmt.Sprintf("programs cannot read this lab's clocks: %s does not run in a lab that is deployed on the "+
		"kernel datapath; deploy it with --datapath fabric, or with --set clocks.sync=none for free clocks, or "+
		"=perfect for exact ones", kind.Title)
}

// onePiece returns an error for a lab in parts that are to be on one machine, and not on others
// (far).
func onePiece(l *lab.Lab, far bool) error {
	if l.Engine.Machines > 1 && !far {
		return l.Errorf("engine.machines", "a deployed lab has its network in one piece on one machine; expected 1, "+
			"or --on with other machines")
	}
	return nil
}

// CheckDeployable returns the error with which PrepareDeployment rejects a lab on every machine, or
// on other machines than this one.
func CheckDeployable(l *lab.Lab, machines Machines) error {
	if err := onePiece(l, machines != nil); err != nil {
		return err
	}
	x, err := experiment.ForDeployment(l, 0)
	if err == nil {
		_, err = x.Parts()
	}
	if err == nil && l.Engine.Dilation == 0 {
		_, err = deploymentLoad(l, x)
	}
	return err
}

// deploymentLoad returns the load that the network should carry: that of the workload, or without
// one what a single host can send, wherever it is. The latter is our own choice, for use by hand.
func deploymentLoad(l *lab.Lab, x *experiment.Experiment) (load, error) {
	if len(l.Workload) > 0 {
		y, err := experiment.BuildOn(l, x.Graph) // the same network
		if err != nil {
			return load{}, err
		}
		return loadOf(y, host.Demands(y.Plans))
	}
	work, err := loadOf(x, host.Demands(x.Plans)) // messages of clocks
	most := 0.0
	for h := range x.Plans {
		e := &x.Plans[h].Endpoint
		most = max(most, host.PacketRate(e.LineRate, e.MTU))
	}
	work.whole += most
	for k := range work.parts {
		work.parts[k] += (1 + emulate.CrossingCost) * most
	}
	return work, err
}
