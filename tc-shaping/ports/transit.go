package ports

import (
	"errors"
	"fmt"
	"math"

	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// Transit is the time that a packet takes on the links between two hosts if it waits nowhere.
type Transit struct {
	Delay   units.Time // propagation, of all links
	PerByte float64    // transmission on all links, in picoseconds per byte on the wire
}

// Of returns the time for a packet of size bytes on the wire.
func (t Transit) Of(size units.Bytes) units.Time {
	return t.Delay + units.Time(t.PerByte*float64(size))
}

// same reports whether two transits are equal, but for rounding.
func (t Transit) same(o Transit) bool {
	return t.Delay == o.Delay && math.Abs(t.PerByte-o.PerByte) <= 1e-9*t.PerByte
}

// over returns the transit with one more link.
func (t Transit) over(p *fabric.PortConfig) Transit {
	return Transit{t.Delay + p.Delay, t.PerByte + float64(8*units.Second)/float64(p.Rate)}
}

// Transits are the transits of a network in which receivers hold packets back, because the kernel's
// links delay none.
type Transits struct {
	To [][]Transit // by receiver and sender
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
	all = &Transits{To: make([][]Transit, cfg.Hosts)}
	nics := make([]int, cfg.Hosts)
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; int(p.From) < cfg.Hosts {
			nics[p.From] = i
		}
	}
	w := walk{cfg: cfg, largest: mtu + wire.Overhead - 28, nics: nics}
	for h := range cfg.Hosts {
		if port, err := w.towards(h); err != nil {
			return nil, port, err
		}
		all.To[h] = make([]Transit, cfg.Hosts)
		for from, nic := range nics {
			if n := w.left[cfg.Ports[nic].To]; n.reaches && from != h {
				all.To[h][from] = n.Transit.over(&cfg.Ports[nic])
			}
		}
	}
	for _, m := range w.met {
		all.Apart = max(all.Apart, m.high-m.low)
	}
	return all, 0, nil
}

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
	Transit
	hops    int
	reaches bool
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
		now := rest{next.Transit.over(out), next.hops + 1, true}
		if found.reaches && !found.same(now.Transit) {
			return int(p), fmt.Errorf("%w: by it %v and another path %v", errUnequal,
				now.Of(w.largest).Rounded(), found.Of(w.largest).Rounded())
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
	if w.met == nil {
		w.met = map[int]span{}
	}
	levels := [][]fabric.NodeID{}
	for node, r := range w.left {
		for len(levels) <= r.hops {
			levels = append(levels, nil)
		}
		levels[r.hops] = append(levels[r.hops], node)
	}
	behind := map[fabric.NodeID]span{}
	widen := func(m map[fabric.NodeID]span, at fabric.NodeID, s span) {
		if old, ok := m[at]; ok {
			s = span{min(old.low, s.low), max(old.high, s.high)}
		}
		m[at] = s
	}
	for from, nic := range w.nics {
		if p := &w.cfg.Ports[nic]; from != host {
			took := Transit{}.over(p).Of(w.largest)
			widen(behind, p.To, span{took, took})
		}
	}
	for level := len(levels) - 1; level > 0; level-- { // farthest first
		for _, node := range levels[level] {
			came, ok := behind[node]
			if !ok || !w.left[node].reaches {
				continue
			}
			for _, i := range w.ports(node, host) {
				s := came
				if old, ok := w.met[int(i)]; ok {
					s = span{min(old.low, s.low), max(old.high, s.high)}
				}
				w.met[int(i)] = s
				p := &w.cfg.Ports[i]
				took := Transit{}.over(p).Of(w.largest)
				widen(behind, p.To, span{came.low + took, came.high + took})
			}
		}
	}
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
				if was := start.To[to][from]; t != (Transit{}) && !t.same(was) {
					return changed(change), fmt.Errorf("routes of %v for %v from %v on: %w", t.Of(mtu).Rounded(),
						was.Of(mtu).Rounded(), at, errUnequal)
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
