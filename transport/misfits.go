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
	l, sch, err := connect(cfg, s)
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
		all = append(all, misfits(p, n, path+name+".")...)
	}
	all = append(all, at(unfilled(s, l, sch), path)...)
	if n.Most > 0 && n.Most < l.BDP() {
		all = append(all, cc.Misfit{Key: "topology.mtu", What: fmt.Sprintf("its recovery keeps track of %v of data on "+
			"their way, and the longest path holds %v (%v at a base RTT of %v): one connection fills %d %% of it; "+
			"expected a larger mtu, shorter or slower links, or more connections",
			n.Most, l.BDP(), l.Line, l.BaseRTT.Rounded(), 100*n.Most/l.BDP())})
	}
	return all, nil
}

// filled is the least share of an idle path that the window of one connection should fill. Ours.
const filled = 0.9

// AckEvery returns the bytes per acknowledgement of a connection that leaves them open:
// DefaultAckEvery, or fewer whole packets where the window would not fill the path otherwise. It
// returns an error if cfg or s is invalid.
func AckEvery(cfg Config, s *Spec) (units.Bytes, error) {
	l, sch, err := connect(cfg, s)
	if err != nil || !sch.selective || !sch.windowed {
		return DefaultAckEvery, err
	}
	window, every := idleWindow(sch.controller(l), l), DefaultAckEvery
	for every > l.Packet && fill(l, window, every) < filled {
		every = (every - 1) / l.Packet * l.Packet
	}
	return every, nil
}

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
	w := (window + l.Packet - 1) / l.Packet
	k := min((every+l.Packet-1)/l.Packet, w)
	over := w % k
	path := float64(l.Line) * l.BaseRTT.Seconds() / 8 / float64(l.Packet)
	return float64(w-over) / (path + float64(k-1-over))
}

// unfilled returns a misfit if the window of one connection leaves more than a tenth of its path
// empty.
func unfilled(s *Spec, l cc.Link, sch scheme) []cc.Misfit {
	window, every := idleWindow(sch.controller(l), l), s.Selective.ackEvery()
	share := fill(l, window, every)
	if !sch.windowed || share >= filled {
		return nil
	}
	return []cc.Misfit{{Key: "max_cwnd", What: fmt.Sprintf("its window is %v, the path holds %v (%v at a base RTT of "+
		"%v), and every %v are acknowledged together: one connection may fill only %.0f %% of it; expected a larger "+
		"max_cwnd, or a smaller topology.mtu or ack_every", window, l.BDP(), l.Line, l.BaseRTT.Rounded(),
		max(every, l.Packet), 100*share)}}
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
	if window := sch.controller(l).Window(); longer > 0 && float64(window) < filled*float64(holds) {
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
	echo := newEcho(s.Forward, sch.telemetry)
	return linkOf(cfg, s, sch, echo.size()), sch, nil
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
