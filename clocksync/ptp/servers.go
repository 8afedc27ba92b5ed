package ptp

import (
	"slices"

	"weft/clocksync"
)

// Clock returns a node's clock that has not started: an ordinary or a boundary clock, or with
// several servers one of them or a voter over them.
func (p *Params) Clock(s clocksync.Setup) (clocksync.Protocol, error) {
	if p.Servers < 2 {
		return New(s, p.Config(s))
	}
	if p.Serves(s) {
		own, cfg := p.domain(s, serverOf(s))
		return New(own, cfg)
	}
	setups, servers := make([]clocksync.Setup, p.Servers), make([]Config, p.Servers)
	for i := range servers {
		setups[i], servers[i] = p.domain(s, i)
	}
	return NewVoter(setups, VoterConfig{Servers: servers, Agree: p.Agree})
}

// Serves reports whether a node is one of several servers with a source of time of its own.
func (p *Params) Serves(s clocksync.Setup) bool { return p.Servers > 1 && serverOf(s) < p.Servers }

// Followed reports whether others may follow a node: the reference, a backup, a server or, where
// there are any, a boundary clock.
func (p *Params) Followed(s clocksync.Setup) bool {
	return serverOf(s) <= p.Backups || p.Serves(s) || p.Boundary.Some()
}

// serverOf is the number of a node from the reference on, which is that of its server if it is one.
func serverOf(s clocksync.Setup) int { return (int(s.Self) - int(s.Reference) + s.Nodes) % s.Nodes }

// domain returns what a node is in the domain of a server: the server itself, with all nodes but
// the other servers, or a slave of it.
func (p *Params) domain(s clocksync.Setup, rank int) (clocksync.Setup, Config) {
	all := s
	s.Reference = clocksync.Node((int(s.Reference) + rank) % s.Nodes)
	s.Seed += uint64(rank) << 32 // so that a node does not ask all servers at once
	one := *p
	one.Backups = 0
	cfg := one.Config(s)
	cfg.Domain = uint8(rank)
	cfg.Ports[0] = slices.DeleteFunc(cfg.Ports[0], func(n clocksync.Node) bool {
		all.Self = n
		return s.Self == s.Reference && serverOf(all) < p.Servers
	})
	return s, cfg
}

// Rate is about how many messages per second a node sends.
func (p *Params) Rate(s clocksync.Setup) float64 {
	interval := p.Interval.Seconds()
	switch {
	case s.Bridge != 0:
		// Pdelay_Req, Pdelay_Resp and its Follow_Up; Sync and Follow_Up.
		return (3 + 2*float64(p.followers(s))) / interval
	case p.Servers > 1 && !p.Serves(s):
		return float64(p.Servers) / interval
	case s.Place != nil:
		return (1 + 3*float64(len(s.Place.Followers))) / interval
	case p.Servers > 1 || s.Self == s.Reference:
		return 3 * float64(p.followers(s)) / interval // Sync, Follow_Up, Delay_Resp
	}
	return 1 / interval
}

// followers is how many nodes ask this one for the time.
func (p *Params) followers(s clocksync.Setup) int {
	switch {
	case s.Place != nil:
		return len(s.Place.Followers)
	case p.Serves(s):
		return s.Nodes - p.Servers
	case p.Servers <= 1 && s.Self == s.Reference:
		return s.Nodes - 1
	}
	return 0
}
