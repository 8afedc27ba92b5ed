package transport

import (
	"slices"

	"weft/transport/cc"
	"weft/transport/cc/ccm"
)

// Condition is an assumption of a transport about the network or its hosts.
type Condition uint8

// Conditions.
const (
	// Lossless means that the network drops nothing: it has PFC.
	Lossless Condition = iota + 1
	// Marks means that switches mark packets when queues are long (ECN).
	Marks
	// SyncedClocks means that the clocks of hosts agree, so that one-way delays can be measured.
	SyncedClocks
	// Trimming means that switches cut packets without room to their headers.
	Trimming
	// InOrder means that the packets of a connection arrive in the order in which they were sent.
	InOrder
	// OnePath means that the packets of a connection pass the same ports.
	OnePath
	// Announced means that a controller knows which flows come to a host before they come.
	Announced
)

// Need is a condition under which a transport does what its authors describe. Without it the
// transport works, but its results say little about it.
type Need struct {
	Condition Condition
	Why       string // the reason, as a clause
	Selective bool   // selective repeat does not need it
}

// goBackN is why go-back-N needs a condition.
const goBackN = "it recovers by go-back-N, which retransmits a whole window for a lost or late packet"

// needs adds a condition of a transport.
func (k kind) needs(c Condition, why string) kind {
	k.wants = append(slices.Clone(k.wants), Need{Condition: c, Why: why})
	return k
}

// controlled sets the name of the congestion control, where that is another.
func (k kind) controlled(by string) kind {
	k.facts.Control = by
	return k
}

// lossless adds the condition that the network loses nothing.
func (k kind) lossless() kind {
	k.facts.Lossless = true
	return k.needs(Lossless, goBackN)
}

// around makes the transport hold another one, whose conditions it inherits.
func (k kind) around(inner func(cc.Params) (kind string, p cc.Params),
	inside func(written func(key string) (text string, ok bool)) string) kind {
	k.inner, k.inside = inner, inside
	return k
}

// innerOf returns the congestion control inside ccm and its parameters.
func innerOf(p cc.Params) (string, cc.Params) {
	switch c := p.(ccm.Params); {
	case c.DCQCN != nil:
		return "roce", *c.DCQCN
	case c.Swift != nil:
		return "swift", *c.Swift
	default:
		return "pc4", *c.PC4
	}
}

// RatesByController reports whether a controller, which knows the flows of all collectives,
// announces base rates to hosts with these parameters.
func RatesByController(p cc.Params) bool {
	c, ok := p.(interface{ RatesByController() bool })
	return ok && c.RatesByController()
}

// NeedsOf returns the conditions of a transport with the given parameters and recovery. An empty
// recovery is the transport's default.
func NeedsOf(name string, p cc.Params, recovery string) ([]Need, error) {
	sch, err := newScheme(&Spec{Kind: name, CC: p, Recovery: recovery})
	if err != nil {
		return nil, err
	}
	k, err := kindOf(name)
	if err != nil {
		return nil, err
	}
	wants, either, control := k.wants, sch.either, p
	if k.inner != nil {
		kind, q := k.inner(p)
		control = q
		in, err := kindOf(kind)
		if err != nil {
			return nil, err
		}
		bare, err := in.scheme(&Spec{Kind: kind, CC: q})
		if err != nil {
			return nil, err
		}
		wants, either = append(slices.Clone(wants), in.wants...), bare.either
	}
	var all []Need
	for _, n := range wants {
		switch {
		case n.Condition == Lossless && sch.selective, n.Condition == Announced && !RatesByController(control):
			continue
		case n.Condition == Lossless:
			n.Selective = either
		}
		all = append(all, n)
	}
	if !sch.selective {
		all = append(all, Need{InOrder, goBackN, either})
	}
	return all, nil
}
