package transport

import (
	"fmt"
	"slices"
	"strings"

	"weft/transport/cc"
	"weft/units"
)

// Misfits returns the parameters of a connection's transport that do not work on its path: those of
// its congestion control, of the one inside, and of its recovery. Keys are paths of the lab. took
// is how long a run took whose switches marked packets, 0 before it. It returns an error if cfg or
// s is invalid.
func Misfits(cfg Config, s *Spec, took units.Time) ([]cc.Misfit, error) {
	alone := *s
	alone.Initial = cfg.LineRate // what a controller plans for a connection alone on its path
	l, sch, err := connect(cfg, &alone)
	if err != nil {
		return nil, err
	}
	n := cc.Network{Link: l, Took: took}
	if sch.selective {
		n.Most = units.Bytes(min(sch.span(l), maxSpan)) * l.Packet
	}
	k, err := kindOf(s.Kind)
	if err != nil {
		return nil, err
	}
	path := "transport." + k.in + "."
	all := misfits(s.CC, n, path)
	if k.inner != nil {
		name, p := k.inner(s.CC)
		path += name + "."
		all = append(all, misfits(p, n, path)...)
		if k, err = kindOf(name); err != nil {
			return nil, err
		}
	}
	all = append(all, at(unfilled(s, n, sch, k.bound), path)...)
	all = append(all, at(uncredited(n, sch), path)...)
	all = append(all, at(unprobed(s, n, sch), path)...)
	if l.Line = n.Narrowest(); n.Most > 0 && n.Most < l.BDP() {
		all = append(all, cc.Misfit{Key: "topology.mtu", What: fmt.Sprintf("its recovery keeps track of %v of data on "+
			"their way, and the longest path holds %v (%v at a base RTT of %v): one connection fills %d %% of it; "+
			"expected a larger mtu, shorter or slower links, or more connections",
			n.Most, l.BDP(), l.Line, l.BaseRTT.Rounded(), 100*n.Most/l.BDP())})
	}
	return all, nil
}

// AckEvery returns the bytes per acknowledgement of a connection that leaves them open:
// DefaultAckEvery, or as many whole packets as let its window fill the path by as much as
// acknowledgements of every packet would. It returns an error if cfg or s is invalid.
func AckEvery(cfg Config, s *Spec) (units.Bytes, error) {
	l, sch, err := connect(cfg, s)
	if err != nil || !sch.selective {
		return DefaultAckEvery, err
	}
	window, every := idleWindow(sch.controller(l), l), DefaultAckEvery
	share := max(cc.Filled, nearly*min(fill(l, window, l.Packet), 1))
	for every > l.Packet && fill(l, window, every) < share {
		every = (every - 1) / l.Packet * l.Packet
	}
	return every, nil
}

// nearly is the share of a path that acknowledgements of several packets may cost. Ours.
const nearly = 0.99

// endless is a window that bounds nothing: that of a rate, or of credits.
const endless = 1000 * units.GB

// idleWindow returns the window after an acknowledgement of an idle path: UEC's follows the
// smallest round trip.
func idleWindow(c cc.Controller, l cc.Link) units.Bytes {
	c.OnStart(0)
	c.OnAck(l.BaseRTT, cc.Ack{Size: l.Packet, Packets: 1, RTT: l.BaseRTT})
	return c.Window()
}

// fill returns the share of an idle path that a window of w packets fills if k of them are
// acknowledged together. Of the k packets that an acknowledgement lets leave, number k - w mod k
// completes a later acknowledgement, which comes a round trip after it has left. In that time
// w - w mod k packets leave.
func fill(l cc.Link, window, every units.Bytes) float64 {
	if window > endless {
		return 1
	}
	w := (window + l.Packet - 1) / l.Packet
	k := min((every+l.Packet-1)/l.Packet, w)
	over := w % k
	path := float64(l.Line) * l.BaseRTT.Seconds() / 8 / float64(l.Packet)
	return float64(w-over) / (path + float64(k-1-over))
}

// A bound names the keys that bound a transport's window.
type bound struct {
	key   string // of the largest window; "": it has none
	first string // of the first window
}

// bounded names the keys that bound its windows: of the largest, and of the first one.
func (k kind) bounded(key, first string) kind {
	k.bound = bound{key, first}
	return k
}

// A growth is what the window of one connection does on an idle path.
type growth struct {
	first, second, last units.Bytes // windows of the first two base RTTs, and of the last that counts
	share               float64     // of the path, filled over all that count
	largest             units.Bytes // window after the first base RTT, until it fills the path or never will
}

// rounds is the number of base RTTs that count: a flow of that length should not lose a tenth to
// its first window. Ours.
const rounds = 100

// patience is the number of base RTTs after which a window that does not fill its path never does.
const patience = 100 * rounds

// growthOf returns the growth of a connection's window on a path, if every bytes are acknowledged
// together.
func growthOf(c cc.Controller, r cc.Receiver, l cc.Link, every units.Bytes) (g growth) {
	c.OnStart(0)
	g.first = c.Window()
	for i := range units.Time(patience) {
		window := c.Window()
		if i < rounds {
			g.last = window
			g.share += min(fill(l, window, every), 1) / rounds
		} else if fill(l, g.largest, every) >= cc.Filled {
			break
		}
		back := r.OnData(i*l.BaseRTT, cc.Data{
			At: l.Baseline, Baseline: l.Baseline, Size: l.Packet, Expected: 1, Observed: 1,
		})
		packets := max(window/l.Packet, 1)
		c.OnAck((i+1)*l.BaseRTT, cc.Ack{
			Size: packets * l.Packet, Packets: int(packets), RTT: l.BaseRTT, BaseRate: back.BaseRate,
		})
		if g.largest = max(g.largest, c.Window()); i == 0 {
			g.second = c.Window() // UEC's follows the smallest round trip
		}
	}
	return g
}

// unfilled returns a misfit if the window of one connection leaves more than a tenth of its path
// empty: for good, or while it grows. b names its keys.
func unfilled(s *Spec, n cc.Network, sch scheme, b bound) []cc.Misfit {
	if b.key == "" {
		return nil
	}
	c, l := sch.controller(n.Link), n.Link
	if c.Window() > endless {
		return nil
	}
	l.Line = n.Narrowest()
	every, together, advice := l.Packet, "", "or the default"
	if sch.selective {
		every, advice = max(s.Selective.ackEvery(), l.Packet), "or a smaller topology.mtu"
		together = fmt.Sprintf(" and every %v are acknowledged together,", every)
	}
	if sch.windowed {
		advice += " or ack_every"
	}
	g := growthOf(c, sch.receiver(n.Line), l, every)
	most := fill(l, g.largest, every)
	holds := fmt.Sprintf("the path holds %v (%v at a base RTT of %v),", l.BDP(), l.Line, l.BaseRTT.Rounded())
	switch {
	case g.share >= cc.Filled || g.last < g.second: // shrinking without a queue is a condition of its target
		return nil
	case most < cc.Filled:
		return []cc.Misfit{{Key: b.key, What: fmt.Sprintf("its window is %v, %s%s so that one connection may fill "+
			"only %.0f %% of it; expected a larger %s, %s", g.largest, holds, together, 100*most, b.key, advice)}}
	}
	return []cc.Misfit{{Key: b.first, What: fmt.Sprintf("its first window is %v, %s and the window grows to %v in "+
		"%d base RTTs: one connection of that length may fill only %.0f %% of it; expected a larger %s, or longer "+
		"flows", g.first, holds, g.last, rounds, 100*g.share, b.first)}}
}

// longSilence is the number of base RTTs without an acknowledgement from which on a later probe is
// warned of: four flows have 89 % of the line at 6, 80 % at 20. Ours.
const longSilence = 2 * DefaultProbeAfter

// unprobed returns a misfit if a sender whose window is less than what is acknowledged together
// waits for long before it asks.
func unprobed(s *Spec, n cc.Network, sch scheme) []cc.Misfit {
	after, every := s.Selective.ProbeAfter, s.Selective.ackEvery()
	if !sch.windowed || sch.trims || after <= longSilence || every <= n.Packet {
		return nil
	}
	return []cc.Misfit{{Key: "probe_after", What: fmt.Sprintf("every %v are acknowledged together, and a sender whose "+
		"window is less waits %v, %g base RTTs, before it asks; expected a probe_after of up to %g, or an ack_every "+
		"of one packet", every, units.Time(after*float64(n.NetBaseRTT())).Rounded(), after, longSilence)}}
}

// uncredited returns a misfit if a connection whose receiver alone limits it has credit for less
// than its path holds.
func uncredited(n cc.Network, sch scheme) []cc.Misfit {
	if sch.credit == nil || sch.credit.windowed {
		return nil
	}
	l := n.Link
	l.Line = n.Narrowest()
	most := max(sch.credit.initial(n.Link), l.Packet)
	if fill(l, most, l.Packet) >= cc.Filled {
		return nil
	}
	return []cc.Misfit{{Key: "max_cwnd", What: fmt.Sprintf("its receiver grants credit for at most %v, and the path "+
		"holds %v (%v at a base RTT of %v): one connection may wait for credit while its path is empty; expected a "+
		"max_cwnd of at least 1", most, l.BDP(), l.Line, l.BaseRTT.Rounded())}}
}

// Upset returns what of a connection's transport does not work once its base RTT is longer by some
// time, or its packets pass a link of some rate (0: none slower than before); "" if nothing.
// Senders know the path as it was at the start. It returns an error if cfg or s is invalid.
func Upset(cfg Config, s *Spec, longer units.Time, rate units.Bandwidth) (string, error) {
	l, sch, err := connect(cfg, s)
	if err != nil {
		return "", err
	}
	k, err := kindOf(s.Kind)
	if err != nil {
		return "", err
	}
	target, err := DelayTarget(cfg, s)
	switch {
	case err != nil:
		return "", err
	case target == 0: // delays do not matter to it
	case longer > target:
		return fmt.Sprintf("its senders take %v more for queueing, and aim at %v of it", longer.Rounded(),
			target.Rounded()), nil
	case k.hungry && rate > 0 && rate.TransmitTime(l.Packet) > target:
		return fmt.Sprintf("a packet then takes %v, and its senders aim at %v of queueing",
			rate.TransmitTime(l.Packet).Rounded(), target.Rounded()), nil
	}
	holds := l.Line.BytesIn(l.BaseRTT + longer)
	if window := sch.controller(l).Window(); longer > 0 && float64(window) < cc.Filled*float64(holds) {
		return fmt.Sprintf("its window is %v, and the path then holds %v", window, holds), nil
	}
	return "", nil
}

// connect returns what the congestion control of a connection knows of its path, and its scheme. It
// returns an error if cfg or s is invalid.
func connect(cfg Config, s *Spec) (cc.Link, scheme, error) {
	err := cfg.check()
	if err == nil {
		err = s.check(s.Src)
	}
	if err != nil {
		return cc.Link{}, scheme{}, err
	}
	sch, err := newScheme(s)
	if err != nil {
		return cc.Link{}, scheme{}, err
	}
	return linkOf(cfg, s, sch), sch, nil
}

func misfits(p cc.Params, n cc.Network, path string) []cc.Misfit {
	if c, ok := p.(cc.Conditional); ok {
		return at(c.Misfits(n), path)
	}
	return nil
}

// at returns misfits with paths of the lab in place of keys of a section.
func at(all []cc.Misfit, path string) []cc.Misfit {
	all = slices.Clone(all)
	for i := range all {
		if !strings.Contains(all[i].Key, ".") {
			all[i].Key = path + all[i].Key
		}
	}
	return all
}
