package ptp

import (
	"cmp"

	"weft/clocksync"
)

// DataSet describes a grandmaster: the attributes by which clocks choose their master. They are
// compared in the order of the fields, and lower is better; Steps decides between two paths to one
// grandmaster.
type DataSet struct {
	Priority1   uint8         // set by the user
	Class       uint8         // clockClass: up to 127 for a clock with a source of time, which is never a slave
	Accuracy    uint8         // clockAccuracy (table 5)
	Variance    uint16        // offsetScaledLogVariance
	Priority2   uint8         // set by the user
	Grandmaster ClockIdentity // breaks ties
	Steps       uint16        // stepsRemoved: boundary clocks on the path
}

// Values of a DataSet for a clock without a source of its own (tables 4 and 5).
const (
	DefaultPriority = 128
	DefaultClass    = 248
	varianceUnknown = 0xffff
	maxSteps        = 255 // an Announce with this or more runs in a loop (clause 9.3.2.5)
)

// claim is a DataSet with the path by which it came.
type claim struct {
	set      DataSet
	sender   PortIdentity // the port that sent it
	receiver PortIdentity // the port that received it
}

// order is the result of comparing two claims.
type order int8

// Results of compare. "By topology" means that a claim is better only because its path is shorter.
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
	case d == 1: // a is farther; by topology, unless its receiver is below its sender
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
		return order(c) // -1 or 1: by topology
	}
	return same
}

// compare compares two grandmasters. It returns less than 0 if d is better, and 0 if they are the
// same.
func (d *DataSet) compare(o *DataSet) int {
	return cmp.Or(cmp.Compare(d.Priority1, o.Priority1), cmp.Compare(d.Class, o.Class),
		cmp.Compare(d.Accuracy, o.Accuracy), cmp.Compare(d.Variance, o.Variance),
		cmp.Compare(d.Priority2, o.Priority2), cmp.Compare(d.Grandmaster, o.Grandmaster))
}

// better reports whether a is better than b, by topology or otherwise. nil is worst.
func (a *claim) better(b *claim) bool { return a != nil && (b == nil || compare(a, b) < 0) }

// decide is the state decision algorithm (clause 9.3.3, figure 33), with the figure's names of its
// results. It returns the recommended state of a port, given the clock's own claim d0, the best
// claim of the port and the best claim of all ports. The latter two are nil without an Announce.
// listening is true while the port waits for a first Announce.
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

// IdentityOf returns the identity of a node's clock, a locally administered EUI-64.
func IdentityOf(n clocksync.Node) ClockIdentity {
	return 0x020000fffe000000 + ClockIdentity(n) + 1
}
