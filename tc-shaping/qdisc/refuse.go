package qdisc

import (
	"errors"
	"fmt"
)

// Wish is something that a lab may ask of switches and links, and that decides whether the kernel can be its datapath.
type Wish string

// What the kernel's disciplines cannot do, under names that people know it by.
const (
	EgressMarking    Wish = "marking on departure"
	PFC              Wish = "priority flow control"
	INT              Wish = "in-band telemetry"
	CCM              Wish = "coordinated congestion management in switches"
	AdaptiveRouting  Wish = "adaptive routing"
	PacketSpraying   Wish = "spraying of packets by switches"
	PriorityQueues   Wish = "a queue for each priority"
	SharedBuffer     Wish = "memory shared by the ports of a switch"
	DynamicThreshold Wish = "dynamic thresholds"
	BitErrors        Wish = "bit errors by length of packet"
	CutThrough       Wish = "cut-through switching"
	Trimming         Wish = "trimming of packets"
)

// reason says why the kernel cannot grant a wish, and what to do instead; "" for what it can.
func (w Wish) reason() string {
	const fabric = "; take datapath fabric"
	switch w {
	case EgressMarking:
		return "sch_red marks packets as they arrive at a queue; say ingress, or take datapath fabric"
	case PFC:
		return "bridges and veth pairs neither send nor heed PAUSE frames, so queues drop; leave it out, or take datapath fabric"
	case INT:
		return "no discipline writes into packets what it measures" + fabric
	case CCM:
		return "no discipline does what its switches do" + fabric
	case AdaptiveRouting:
		return "routes choose by hash, and know no queue" + fabric
	case PacketSpraying:
		return "routes choose by the hash of a flow" + fabric
	case PriorityQueues:
		return "one queue is made for a link" + fabric
	case SharedBuffer, DynamicThreshold:
		return "each discipline has a limit of its own; say how much a port has, or take datapath fabric"
	case BitErrors:
		return "netem corrupts or loses packets of any length alike; say loss, or take datapath fabric"
	case CutThrough:
		return "a packet is in memory before it is forwarded" + fabric
	case Trimming:
		return "disciplines drop packets whole" + fabric
	}
	return ""
}

// Refusal is one wish that cannot be granted.
type Refusal struct {
	Wish Wish
	Why  string // with a way out
}

func (r *Refusal) Error() string { return fmt.Sprintf("datapath kernel has no %s: %s", r.Wish, r.Why) }

// Unwrap makes a refusal an ErrRefused.
func (r *Refusal) Unwrap() error { return ErrRefused }

// Refuse returns nil when the kernel can grant all wishes, and else a *Refusal for each that it cannot, joined.
func Refuse(wishes ...Wish) error {
	var errs []error
	for _, w := range wishes {
		if why := w.reason(); why != "" {
			errs = append(errs, &Refusal{Wish: w, Why: why})
		}
	}
	return errors.Join(errs...)
}
