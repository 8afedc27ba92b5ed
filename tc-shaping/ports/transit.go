package ports

import (
	"slices"

	"weft/fabric"
	"weft/tc-shaping/qdisc"
	"weft/transport/wire"
	"weft/units"
)

// Transit is about the time that packets take on the links of a network, where those delay nothing
// and receivers hold packets back for it.
type Transit struct {
	// Longest is at least the time that any path takes, without queues, before and after changes of
	// links.
	Longest units.Time
	// Apart is how far packets that meet in a queue are from each other at most, in lab time: one
	// has links of that delay behind it that the other has not, and neither has been delayed by
	// them. 0: the order of packets in every queue is that of the modelled network. It is that of
	// the network before any change.
	Apart units.Time
}

// TransitOf returns the transit of a network whose largest IP packet has mtu bytes.
func TransitOf(cfg *fabric.Config, changes []fabric.Change, mtu units.Bytes) Transit {
	w := walk{cfg: cfg, took: make([]units.Time, len(cfg.Ports)), nics: make([]int, cfg.Hosts), met: map[int]span{}}
	var later units.Time
	size := mtu + wire.Overhead - 28 // mtu has the headers of IPv4 and UDP
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		w.took[i] = p.Delay + p.Rate.TransmitTime(size)
		later = max(later, latest(&p.Link))
		if int(p.From) < cfg.Hosts {
			w.nics[p.From] = i
		}
	}
	hops := 0
	var slowest units.Time
	for h := range cfg.Hosts {
		hops = max(hops, w.towards(h))
	}
	if slices.ContainsFunc(cfg.Switches, func(s fabric.SwitchConfig) bool { return s.Aside != nil }) {
		hops = max(hops, len(cfg.Switches)) // a detour passes each at most once
	}
	var t Transit
	for _, m := range w.met {
		t.Apart = max(t.Apart, m.high-m.low)
	}
	for _, took := range w.took {
		slowest = max(slowest, took)
	}
	for i := range changes {
		if l := changes[i].Link; l != nil {
			slowest, later = max(slowest, l.Delay+l.Rate.TransmitTime(size)), max(later, latest(l))
		}
		if changes[i].Tables != nil {
			hops = max(hops, len(cfg.Switches))
		}
	}
	t.Longest = units.Time(hops+1) * (slowest + later)
	return t
}

// latest returns the largest random delay of a packet, as qdisc.Direction draws it.
func latest(l *fabric.Link) units.Time {
	if l.Reorder > 0 {
		return l.ReorderBy
	}
	return qdisc.LatestJitter * l.Jitter
}

// walk follows the routes to one host after the other.
type walk struct {
	cfg  *fabric.Config
	took []units.Time          // by port: how long the largest packet takes on the link
	nics []int                 // by host
	met  map[int]span          // by port of a switch
	hops map[fabric.NodeID]int // the largest number of links to the host; 0: it is not reached
}

// span is from when to when packets come that left their hosts at the same time, without delay, and
// would come at one instant with it.
type span struct{ low, high units.Time }

// towards finds what meets on the way to a host, and returns the largest number of links behind a
// host's own.
func (w *walk) towards(host int) (hops int) {
	w.hops = map[fabric.NodeID]int{}
	for _, nic := range w.nics {
		hops = max(hops, w.from(w.cfg.Ports[nic].To, host))
	}
	w.meet(host)
	return hops
}

// ports returns the ports by which a switch sends what is for a host.
func (w *walk) ports(node fabric.NodeID, host int) []int32 {
	s := &w.cfg.Switches[int(node)-w.cfg.Hosts]
	if g := s.Route[host]; g >= 0 {
		return s.Groups[g]
	}
	return nil
}

// from returns the largest number of links from a node to a host.
func (w *walk) from(node fabric.NodeID, host int) int {
	if n, known := w.hops[node]; known || int(node) < w.cfg.Hosts {
		return n
	}
	w.hops[node] = 0 // a loop reaches nothing
	most := 0
	for _, p := range w.ports(node, host) {
		to := w.cfg.Ports[p].To
		if n := w.from(to, host); n > 0 || int(to) == host {
			most = max(most, n+1)
		}
	}
	w.hops[node] = most
	return most
}

// meet notes, for each queue on the way to a host, how different the delays are that packets have
// behind them.
func (w *walk) meet(host int) {
	levels := [][]fabric.NodeID{}
	for node, n := range w.hops {
		for len(levels) <= n {
			levels = append(levels, nil)
		}
		levels[n] = append(levels[n], node)
	}
	behind := map[fabric.NodeID]span{}
	cross := func(port int, came span) {
		took := w.took[port]
		widen(behind, w.cfg.Ports[port].To, span{came.low + took, came.high + took})
	}
	for from, nic := range w.nics {
		if from != host {
			cross(nic, span{})
		}
	}
	for level := len(levels) - 1; level > 0; level-- { // farthest first
		for _, node := range levels[level] {
			came, ok := behind[node]
			if !ok {
				continue
			}
			for _, i := range w.ports(node, host) {
				widen(w.met, int(i), came)
				cross(int(i), came)
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
