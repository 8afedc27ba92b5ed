package transport

import (
	"slices"

	"weft/transport/cc"
	"weft/transport/cc/ccm"
)

// Condition is something that a transport takes for granted of the network or of its hosts.
type Condition uint8

// Conditions.
const (
	// Lossless networks drop nothing: they have PFC. It is a condition of go-back-N.
	Lossless Condition = iota + 1
	// Marks are what switches put on packets when queues are long (ECN).
	Marks
	// SyncedClocks are clocks of hosts that agree, so that one-way delays can be measured.
	SyncedClocks
	// InOrder networks deliver the packets of a connection in the order in which they were sent.
	InOrder
)

// Need is a condition under which a transport does what its authors describe. Outside of it the transport works, and says
// little about itself.
type Need struct {
	Condition Condition
	Why       string // what of the transport rests on the condition, as a clause
	Selective bool   // the transport does without if it recovers by selective repeat
}

// goBackN says why go-back-N takes a condition for granted.
const goBackN = "it recovers by go-back-N, which sends a window again for a packet that is lost or late"

// needs adds a condition of a transport.
func (k kind) needs(c Condition, why string) kind {
	k.wants = append(slices.Clone(k.wants), Need{Condition: c, Why: why})
	return k
}

// lossless says that the transport is meant for a network that loses nothing.
func (k kind) lossless() kind {
	k.facts.Lossless = true
	return k.needs(Lossless, goBackN)
}

// around says that the transport holds another one, whose conditions it has.
func (k kind) around(inner func(cc.Params) (kind string, p cc.Params), inside func(written func(key string) (text string, ok bool)) string) kind {
	k.inner, k.inside = inner, inside
	return k
}

// innerOf is the congestion control inside ccm.
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

// NeedsOf returns the conditions of a transport with its parameters and recovery, which is empty for the transport's own.
func NeedsOf(name string, p cc.Params, recovery string) ([]Need, error) {
	sch, err := newScheme(&Spec{Kind: name, CC: p, Recovery: recovery})
	if err != nil {
		return nil, err
	}
	k, err := kindOf(name)
	if err != nil {
		return nil, err
	}
	wants, either := k.wants, sch.either
	if k.inner != nil {
		kind, q := k.inner(p)
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
		if n.Condition == Lossless {
			if sch.selective {
				continue
			}
			n.Selective = either
		}
		all = append(all, n)
	}
	if !sch.selective {
		all = append(all, Need{InOrder, goBackN, either})
	}
	return all, nil
}
