package emulate

import (
	"context"
	"slices"
	"time"

	"weft/clocksync"
	clocks "weft/clocksync/node"
	"weft/host"
	"weft/internal/control"
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

// clockAgents returns the configurations of the nodes' processes of a deployment; nil: no protocol
// synchronizes clocks, and they have nothing to do.
func (x *Experiment) clockAgents() []agent.Config {
	if !slices.ContainsFunc(x.Plans, func(p host.Plan) bool {
		return p.Clock != nil && len(clocks.Ports(p.Clock.Sync)) > 0
	}) {
		return nil
	}
	peers := x.peers()
	all := make([]agent.Config, len(x.Plans))
	for i := range all {
		all[i] = x.nodeConfig(i, peers)
		all[i].Steers, all[i].Standing = true, true
	}
	return all
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
	s.crew.conns[host] = s.cluster.Node(host).Conn
	stop := context.AfterFunc(ctx, func() { _ = s.crew.conns[host].SetReadDeadline(time.Now()) })
	defer stop()
	err := s.configureNode(host, &config)
	if err == nil {
		_ = favour(s.cluster.Node(host)) // Notes says if nodes have no real-time scheduling
		err = s.startNode(host)
	}
	if err == nil {
		s.running.Go(func() { s.followClock(host, s.crew.conns[host], true) })
	}
	return s.named(host, err)
}
