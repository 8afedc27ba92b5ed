package ports

import (
	"errors"
	"fmt"

	"weft/fabric"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// over returns a path with one more link, before all others.
func over(p *fabric.PortConfig, rest transport.Path) transport.Path {
	return transport.Path{Propagation: p.Delay + rest.Propagation,
		Rates: append([]units.Bandwidth{p.Rate}, rest.Rates...)}
}

// Transits are the paths of a network in which receivers hold packets back for the time that those
// take, because the kernel's links delay none.
type Transits struct {
	To [][]transport.Path // by receiver and sender; no Rates: there is none
	// Apart is how far packets that meet in a queue are from each other at most, in lab time: one
	// has links of that delay behind it that the other has not, and neither has been delayed by
	// them. 0: the order of packets in every queue is that of the modelled network.
	Apart units.Time
}

// errUnequal means that a packet's delay depends on its path, which a receiver cannot know.
var errUnequal = errors.New("the receiver cannot know which path a packet took, to hold it back for that path's " +
	"delay, and this kernel has no netem to delay it on its way")

// TransitsOf returns the transits of a network whose largest IP packet has mtu bytes. On error,
// port is one of equal paths that take different times.
func TransitsOf(cfg *fabric.Config, mtu units.Bytes) (all *Transits, port int, err error) {
	all = &Transits{To: make([][]transport.Path, cfg.Hosts)}
	nics := make([]int, cfg.Hosts)
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; int(p.From) < cfg.Hosts {
			nics[p.From] = i
		}
	}
	w := walk{cfg: cfg, largest: largest(mtu), nics: nics, met: map[int]span{}}
	for h := range cfg.Hosts {
		if port, err := w.towards(h); err != nil {
			return nil, port, err
		}
		all.To[h] = make([]transport.Path, cfg.Hosts)
		for from, nic := range nics {
			if n := w.left[cfg.Ports[nic].To]; n.reaches && from != h {
				all.To[h][from] = over(&cfg.Ports[nic], n.Path)
			}
		}
	}
	for _, m := range w.met {
		all.Apart = max(all.Apart, m.high-m.low)
	}
	return all, 0, nil
}

// largest returns the size on the wire of the largest packet, in bytes: mtu has the headers of IPv4
// and UDP.
func largest(mtu units.Bytes) units.Bytes { return mtu + wire.Overhead - 28 }

// walk follows the routes to one host after the other.
type walk struct {
	cfg     *fabric.Config
	largest units.Bytes // packet on the wire
	nics    []int       // by host
	left    map[fabric.NodeID]rest
	met     map[int]span // by port of a switch
}

// rest is what a packet has before it at a node.
type rest struct {
	transport.Path
	hops    int
	reaches bool
}

// same reports whether a packet of size bytes on the wire takes as long on two paths.
func same(a, b transport.Path, size units.Bytes) bool {
	return a.Propagation == b.Propagation && a.Delay(size) == b.Delay(size)
}

// span is from when to when packets come that left their hosts at the same time, without delay, and
// would come at one instant with it.
type span struct{ low, high units.Time }

// towards finds the transits from all nodes to a host, and what meets on the way.
func (w *walk) towards(host int) (port int, err error) {
	w.left = map[fabric.NodeID]rest{fabric.NodeID(host): {reaches: true}}
	for _, nic := range w.nics {
		if port, err = w.from(w.cfg.Ports[nic].To, host); err != nil {
			return port, err
		}
	}
	w.meet(host)
	return 0, nil
}

// ports returns the ports by which a switch sends what is for a host.
func (w *walk) ports(node fabric.NodeID, host int) []int32 {
	s := &w.cfg.Switches[int(node)-w.cfg.Hosts]
	if g := s.Route[host]; g >= 0 {
		return s.Groups[g]
	}
	return nil
}

// from finds the transit from a node to a host.
func (w *walk) from(node fabric.NodeID, host int) (port int, err error) {
	if _, known := w.left[node]; known || int(node) < w.cfg.Hosts {
		return 0, nil
	}
	w.left[node] = rest{} // a loop reaches nothing
	var found rest
	for _, p := range w.ports(node, host) {
		out := &w.cfg.Ports[p]
		if port, err := w.from(out.To, host); err != nil {
			return port, err
		}
		next := w.left[out.To]
		if !next.reaches {
			continue
		}
		now := rest{over(out, next.Path), next.hops + 1, true}
		if found.reaches && !same(now.Path, found.Path, w.largest) {
			return int(p), fmt.Errorf("%w: by it %v and another path %v", errUnequal,
				now.Delay(w.largest).Rounded(), found.Delay(w.largest).Rounded())
		}
		now.hops = max(now.hops, found.hops)
		found = now
	}
	w.left[node] = found
	return 0, nil
}

// meet notes, for each queue on the way to a host, how different the delays are that packets have
// behind them.
func (w *walk) meet(host int) {
	levels := [][]fabric.NodeID{}
	for node, r := range w.left {
		for len(levels) <= r.hops {
			levels = append(levels, nil)
		}
		levels[r.hops] = append(levels[r.hops], node)
	}
	behind := map[fabric.NodeID]span{}
	cross := func(p *fabric.PortConfig, came span) {
		took := p.Delay + p.Rate.TransmitTime(w.largest)
		widen(behind, p.To, span{came.low + took, came.high + took})
	}
	for from, nic := range w.nics {
		if from != host {
			cross(&w.cfg.Ports[nic], span{})
		}
	}
	for level := len(levels) - 1; level > 0; level-- { // farthest first
		for _, node := range levels[level] {
			came, ok := behind[node]
			if !ok || !w.left[node].reaches {
				continue
			}
			for _, i := range w.ports(node, host) {
				widen(w.met, int(i), came)
				cross(&w.cfg.Ports[i], came)
			}
		}
	}
}

// widen makes the span of a key include another one.
func widen[K comparable](of map[K]span, key K, s span) {
	if old, ok := of[key]; ok {
		s = span{min(old.low, s.low), max(old.high, s.high)}
	}
	of[key] = s
}

// checkTransits returns an error if receivers cannot hold packets back for the delay of their
// links: at the start of a lab, or because a change makes it another one.
func checkTransits(cfg *fabric.Config, changes []fabric.Change, mtu units.Bytes) (port int, err error) {
	start, port, err := TransitsOf(cfg, mtu)
	if err != nil {
		return port, err
	}
	for i := range changes {
		change := &changes[i]
		at := change.At.Duration()
		if change.Link != nil {
			for _, port := range change.Ports {
				if p := &cfg.Ports[port]; change.Link.Delay != p.Delay || change.Link.Rate != p.Rate {
					return port, fmt.Errorf("another delay or rate from %v on: %w", at, errUnequal)
				}
			}
		}
		if change.Tables == nil {
			continue
		}
		then := *cfg
		then.Switches = change.Tables
		now, port, err := TransitsOf(&then, mtu)
		if err != nil {
			return port, fmt.Errorf("from %v on: %w", at, err)
		}
		for to := range now.To {
			for from, t := range now.To[to] {
				if was := start.To[to][from]; len(t.Rates) > 0 && !same(t, was, largest(mtu)) {
					return changed(change), fmt.Errorf("routes of %v for %v from %v on: %w",
						t.Delay(largest(mtu)).Rounded(), was.Delay(largest(mtu)).Rounded(), at, errUnequal)
				}
			}
		}
	}
	return 0, nil
}

// changed returns a port that a change is about.
func changed(c *fabric.Change) int {
	if len(c.Ports) > 0 {
		return c.Ports[0]
	}
	return 0
}
