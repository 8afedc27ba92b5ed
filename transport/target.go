package transport

import (
	"weft/transport/cc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/strack"
	"weft/transport/cc/swift"
	"weft/units"
)

// DelayTarget returns the queueing delay above which the congestion control of a connection slows
// down, however short the queue really is. Whatever makes packets late by more than that decides
// the connection's rate. 0 means that delays do not matter to it, or that the idle path already
// exceeds its target. It returns an error if cfg or s is invalid.
func DelayTarget(cfg Config, s *Spec) (units.Time, error) {
	l, _, err := connect(cfg, s)
	if err != nil {
		return 0, err
	}
	k, err := kindOf(s.Kind)
	p := s.CC
	for err == nil && k.inner != nil {
		var name string
		name, p = k.inner(p)
		k, err = kindOf(name)
	}
	if err != nil || k.target == nil {
		return 0, err
	}
	return max(0, k.target(s, p, l)), nil
}

// aims adds the queueing delay that a transport aims at.
func (k kind) aims(target func(s *Spec, p cc.Params, l cc.Link) units.Time) kind {
	k.target = target
	return k
}

// starves says that windows have no least: delay alone shrinks them to a small part of a packet.
func (k kind) starves() kind {
	k.hungry = true
	return k
}

// pc4Target is the target of one-way delays.
func pc4Target(s *Spec, p cc.Params, l cc.Link) units.Time {
	return p.(pc4.Params).DelayTarget(l, s.Initial)
}

// swiftTarget is the part of the target round trip that is left for queues.
func swiftTarget(_ *Spec, p cc.Params, l cc.Link) units.Time { return p.(swift.Params).DelayTarget(l) }

// strackTarget is the target queueing delay of STrack and spray.
func strackTarget(_ *Spec, p cc.Params, l cc.Link) units.Time {
	return p.(strack.Params).DelayTarget(l)
}
