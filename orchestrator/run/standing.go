package run

import (
	"cmp"
	"context"
	"fmt"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/realtime"
	"weft/transport/wire"
)

// Stand is the network of a lab as it is deployed: to be used by hand, without the lab's workload and faults.
type Stand struct {
	Experiment *experiment.Experiment
	Emulation  emulate.Experiment
	Dilation   float64
	Why        string // how the dilation was chosen
}

// Standing makes the network of a lab that is to stay up. The lab needs no workload; if it has one, the dilation is one
// at which this machine could carry it.
func Standing(ctx context.Context, l *lab.Lab, o Options) (*Stand, error) {
	x, err := experiment.Stand(l, o.Subnet)
	if err != nil {
		return nil, err
	}
	where, err := places(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("this machine cannot emulate: %w", err)
	}
	s := &Stand{Experiment: x, Dilation: cmp.Or(l.Engine.Dilation, o.Dilation), Why: "asked for"}
	if s.Dilation == 0 {
		load, err := standingLoad(l, x)
		if err != nil {
			return nil, err
		}
		if s.Dilation, s.Why, err = where.dilation(ctx, x, load, o); err != nil {
			return nil, err
		}
	}
	s.Emulation = emulation(x, s.Dilation, where.processes(o))
	if k := s.Emulation.Kernel; k != nil {
		k.Slower = slower(x, where, s.Dilation)
		k.Slowed = func(r realtime.Ready) { s.Dilation, s.Why = r.Dilation, slowed(r) }
	}
	s.Emulation.SampleQueues = 0 // nobody keeps samples, and a network that only stands has to cost nothing
	return s, nil
}

// Deployable returns the error with which Standing refuses a lab on every machine.
func Deployable(l *lab.Lab) error {
	x, err := experiment.Stand(l, 0)
	if err == nil && l.Engine.Dilation == 0 {
		_, err = standingLoad(l, x)
	}
	return err
}

// standingLoad is how many data packets per second of lab time the network should carry: those of the workload, and
// without one what one host can send. Ours: what people do by hand.
func standingLoad(l *lab.Lab, x *experiment.Experiment) (float64, error) {
	if len(l.Workload) > 0 {
		y, err := experiment.BuildOn(l, x.Graph) // the same network
		if err != nil {
			return 0, err
		}
		return emulate.Load(y.Plans), nil
	}
	most := 0.0
	for h := range x.Plans {
		wire := x.Plans[h].Endpoint.MTU + wire.DataSize + wire.Overhead
		most = max(most, float64(x.Plans[h].Endpoint.LineRate)/float64(8*wire))
	}
	return most, nil
}
