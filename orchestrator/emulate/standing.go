package emulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"weft/clocksync"
	clocks "weft/clocksync/node"
	"weft/host"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/nodeimg/agent"
	"weft/units"
)

// Synchronized reports whether a protocol synchronizes the clocks of the lab's hosts. The process
// of each node then runs it, as in a run.
func (s *Deployment) Synchronized() bool { return s.agents != nil }

// ClockOffset returns by how much the clock of a host is ahead of lab time, and the state of its
// synchronization. ok is false if the clock is exact, or programs cannot read it.
func (s *Deployment) ClockOffset(host int) (by units.Time, state clocksync.State, ok bool) {
	return s.clocks.Offset(host)
}

// configureNodes configures the processes of the nodes if there is a protocol. When ctx ends, they
// are not waited for.
func (s *Deployment) configureNodes(ctx context.Context, x *Experiment) error {
	if !slices.ContainsFunc(x.Plans, func(p host.Plan) bool {
		return p.Clock != nil && len(clocks.Ports(p.Clock.Sync)) > 0
	}) {
		return nil
	}
	peers := x.peers()
	s.agents = make([]agent.Config, len(x.Plans))
	var group errgroup.Group
	for i := range s.agents {
		s.agents[i] = x.nodeConfig(i, peers)
		s.agents[i].Steers, s.agents[i].Standing = true, true
		group.Go(func() error { return s.configureNode(ctx, i, &s.agents[i]) })
	}
	return group.Wait()
}

// configureNode configures the process of a node and waits until it is ready.
func (s *Deployment) configureNode(ctx context.Context, host int, config *agent.Config) error {
	p := s.cluster.Node(host)
	stop := context.AfterFunc(ctx, func() { _ = p.Conn.SetReadDeadline(time.Now()) })
	defer stop()
	err := p.Conn.SendValue(agent.KindConfigure, config)
	if err == nil {
		_, err = p.Conn.Expect(agent.KindReady, nil)
	}
	return called(p, err)
}

// startNodes has all nodes begin to synchronize their clocks at lab time 0.
func (s *Deployment) startNodes() error {
	for i := range s.agents {
		if err := s.startNode(i, false); err != nil {
			return err
		}
	}
	return nil
}

// startNode starts the process of a node. again says that the node had a process before.
func (s *Deployment) startNode(host int, again bool) error {
	p := s.cluster.Node(host)
	if p.PID == 0 { // on another machine, whose agent asks for it
	} else if err := poller.Favour(p.PID); err != nil && !again {
		s.unfavoured = fmt.Sprintf("no real-time scheduling, so other programs may delay the messages that "+
			"synchronize clocks: %v; run as root, or with CAP_SYS_NICE", err)
	}
	if err := p.Conn.SendValue(agent.KindStart, agent.Start{T0: s.scale.T0}); err != nil {
		return called(p, err)
	}
	s.running.Go(func() { s.followClock(host, p.Conn, again) })
	return nil
}

// followClock corrects the clock of a host as its node says, until the node ends. A node that was
// started again keeps its correction until it is synchronized.
func (s *Deployment) followClock(host int, conn *control.Conn, again bool) {
	for {
		m, fds, err := conn.Recv()
		control.CloseAll(fds)
		if err != nil {
			return
		}
		var c clocksync.Correction
		if m.Kind != agent.KindCorrection || m.Decode(&c) != nil || again && c.State != clocksync.Locked {
			continue
		}
		again = false
		_ = s.clocks.Correct(host, c) // one that is not usable changes nothing
	}
}

// resynchronize has a node that was started again synchronize its clock from now on.
func (s *Deployment) resynchronize(ctx context.Context, host int) error {
	if s.agents == nil {
		return nil
	}
	config := s.agents[host]
	clock := *config.Plan.Clock
	clock.Outages = []clocks.Outage{{At: 0, For: max(1, s.Now())}} // no process ran so far
	config.Plan.Clock = &clock
	if err := s.configureNode(ctx, host, &config); err != nil {
		return err
	}
	return s.startNode(host, true)
}
