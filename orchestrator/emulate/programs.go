package emulate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weft/internal/clock"
	"weft/orchestrator/runtime"
)

// Program is a program that a host runs beside the workload, from the beginning of lab time until
// the workload is done or the program ends. Its output goes where that of the lab's processes goes.
type Program struct {
	Host    int
	Command runtime.Command // without streams
	LabTime bool            // its clocks show lab time
}

// images returns the images that the programs need.
func (x *Experiment) images() (images []string) {
	for _, p := range x.Programs {
		if p.Command.Image != "" {
			images = append(images, p.Command.Image)
		}
	}
	for i := range x.Groups {
		if image := x.Groups[i].Image; image != "" {
			images = append(images, image)
		}
	}
	return images
}

// runPrograms runs all programs from lab time 0 until ctx ends. failed receives the first failure
// before that. wait returns when no program runs any more.
func (r *run) runPrograms(ctx context.Context) (failed <-chan error, wait func()) {
	failures := make(chan error, len(r.x.Programs))
	var all sync.WaitGroup
	out := runtime.NewLines(r.x.Processes.Stderr)
	for _, p := range r.x.Programs {
		all.Go(func() {
			select { // before that, nothing is carried
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(r.scale.T0 - clock.Monotonic())):
			}
			if err := p.run(ctx, r.cluster, &r.clocks, out); err != nil && ctx.Err() == nil {
				failures <- err
			}
		})
	}
	return failures, all.Wait
}

// run runs the program in its host.
func (p *Program) run(ctx context.Context, cluster runtime.Cluster, clocks *Clocks, out *runtime.Lines) error {
	name := cluster.Node(p.Host).Name
	tail := runtime.NewTail(name, out)
	command := p.Command
	command.Stdout, command.Stderr = tail, tail
	if p.LabTime {
		if err := clocks.set(&command, name, p.Host); err != nil {
			return fmt.Errorf("the program of %s: %w", name, err)
		}
	}
	err := cluster.Exec(ctx, name, command)
	if err == nil {
		return nil
	}
	if said := tail.String(); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	var status *runtime.StatusError
	if errors.As(err, &status) {
		return fmt.Errorf("the program of %w", err)
	}
	return err
}

// beside runs the programs of one host of a deployed lab, or of all, until they or the lab end.
func (s *Deployment) beside(host int) {
	for _, p := range s.programs {
		if s.life.Err() != nil || host != allHosts && p.Host != host {
			continue
		}
		s.running.Go(func() {
			err := p.run(s.life, s.cluster, &s.clocks, s.out)
			if s.ended != nil && s.life.Err() == nil {
				s.ended(p.Host, err)
			}
		})
	}
}

// allHosts stands for every host.
const allHosts = -1
