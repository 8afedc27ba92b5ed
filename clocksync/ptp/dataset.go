package ptp

import (
	"cmp"

	"weft/clocksync"
)

// DataSet is what a clock says of the grandmaster it follows, or is: what masters are chosen by. Lower is better.
type DataSet struct {
	Priority1   uint8
	Class       uint8
	Accuracy    uint8
	Variance    uint16 // offsetScaledLogVariance
	Priority2   uint8
	Grandmaster ClockIdentity
	Steps       uint16 // stepsRemoved: boundary clocks between
}

// Values of a DataSet: a clock without a source of its own (tables 4 and 5).
const (
	DefaultPriority = 128
	DefaultClass    = 248
	varianceUnknown = 0xffff
	maxSteps        = 255 // an Announce that says so or more goes in a circle (clause 9.3.2.5)
)

// claim is a DataSet with the way on which it came.
type claim struct {
	set      DataSet
	sender   PortIdentity
	receiver PortIdentity
}

// order is the result of comparing two claims.
type order int8

// Results: a is better, or better only in that it came a shorter way, and the other way round.
const (
	aBetter     order = -2
	aByTopology order = -1
	same        order = 0
	bByTopology order = 1
	bBetter     order = 2
)

// compare is the data set comparison algorithm (clause 9.3.4, figures 34 and 35).
func compare(a, b *claim) order {
	if a.set.Grandmaster != b.set.Grandmaster {
		if c := a.set.compare(&b.set); c < 0 {
			return aBetter
		}
		return bBetter
	}
	switch d := int(a.set.Steps) - int(b.set.Steps); {
	case d > 1:
		return bBetter
	case d < -1:
		return aBetter
	case d == 1: // a is farther: by topology only if it is the sender's own way back
		if cmp.Compare(a.receiver.Clock, a.sender.Clock) < 0 {
			return bBetter
		}
		return bByTopology
	case d == -1:
		if cmp.Compare(b.receiver.Clock, b.sender.Clock) < 0 {
			return aBetter
		}
		return aByTopology
	}
	if c := cmp.Or(cmp.Compare(a.sender.Clock, b.sender.Clock), cmp.Compare(a.sender.Port, b.sender.Port),
		cmp.Compare(a.receiver.Port, b.receiver.Port)); c != 0 {
		return order(c)
	}
	return same
}

// compare holds two grandmasters against each other.
func (d *DataSet) compare(o *DataSet) int {
	return cmp.Or(cmp.Compare(d.Priority1, o.Priority1), cmp.Compare(d.Class, o.Class), cmp.Compare(d.Accuracy, o.Accuracy),
		cmp.Compare(d.Variance, o.Variance), cmp.Compare(d.Priority2, o.Priority2), cmp.Compare(d.Grandmaster, o.Grandmaster))
}

// better reports whether a is better than b in any way; nil is worst.
func (a *claim) better(b *claim) bool { return a != nil && (b == nil || compare(a, b) < 0) }

// decide is the state decision algorithm (clause 9.3.3, figure 33) for a port of a clock with its own data set d0, the
// best claim that the port has (nil: none) and the best of all ports.
func decide(d0, port, best *claim, listening bool) PortState {
	if port == nil && listening {
		return Listening
	}
	if d0.set.Class <= 127 {
		if port == nil || compare(d0, port) < 0 {
			return Master // M1
		}
		return Passive // P1
	}
	switch {
	case best == nil || compare(d0, best) < 0:
		return Master // M2
	case port == best:
		return Slave // S1
	case port != nil && compare(best, port) == aByTopology:
		return Passive // P2
	}
	return Master // M3
}

// IdentityOf returns the identity of a node's clock: an EUI-64 that is locally administered.
func IdentityOf(n clocksync.Node) ClockIdentity {
	return 0x020000fffe000000 + ClockIdentity(n) + 1
}
