package fabric

import (
	"fmt"

	"weft/units"
)

// Coordinated congestion management: draft-lyu-rtgwg-coordinated-cm-00, sections 6.1 to 6.3, what switches do. What
// hosts do is transport's.
//
// A data packet carries a coordination tag. Where its flow is known to cause incast (CC), switches leave it on its
// path and mark it. Otherwise they look for a path that is light, here or, by a notification, at the switch
// upstream that the tag names; only where there is none do they mark. The switch before the destination
// tells sources which of their flows cause incast, and when that is over.
//
// The draft leaves thresholds, timers and encodings open. They are PortConfig.Light and Congested, CCMConfig, and wire's.

// CCM is adaptive routing that is coordinated with congestion control. Switches of one network all do it or none.
const CCM Balance = "ccm"

// CCMConfig is what the draft leaves open.
type CCMConfig struct {
	// RTT is the base round trip: so long a port must have been light before its flows are released, and so long a flow
	// is kept off the port that a switch downstream complained of; a switch asks another one about a flow once in it.
	RTT units.Time `json:"rtt_ps"`

	// Every is the least time between two notifications of type 1 about a flow; Refresh how often a source is reminded of
	// a flow that is not released: less than what sources wait before they think the release was lost.
	Every   units.Time `json:"every_ps"`
	Refresh units.Time `json:"refresh_ps"`

	// Strict leaves the source of a flow for which no path is light without a type 1, as the draft's section 6.3.4 has
	// it, though by its section 6.4 the source then ignores the mark.
	Strict bool `json:"strict,omitempty"`

	// Loss is the share of notifications that are lost: to see how the rest heals it. In [0, 1].
	Loss float64 `json:"loss,omitempty"`
}

// Tag is the coordination tag of a data packet (section 6.1).
type Tag struct {
	On   bool   // the packet has one
	CC   bool   // its flow causes incast
	AR   uint16 // where its path can be chosen upstream: ARNone, ARSource, or a switch's number plus one
	mark bool   // the port it waits in may mark it
}

// AR indicators that are not switches.
const (
	ARNone   uint16 = 0
	ARSource uint16 = 0xffff // the source host
)

// NoteType is a type of notification (section 6.2).
type NoteType uint8

// Types of notification.
const (
	NeedsCC   NoteType = 1 // to the source: the flow causes incast
	Released  NoteType = 2 // to the source: it does not any more
	NeedsPath NoteType = 3 // to the AR point upstream: no path of the flow is light here
)

// Note is a notification: a packet from a switch's address to a host's or another switch's.
type Note struct {
	Type    NoteType
	Last    bool // type 1: not for incast, but since there is no light path anywhere (section 6.3.4, second case)
	Src     HostID
	Dst     HostID
	SrcPort uint16     // of the flow from Src to Dst
	Switch  NodeID     // that sent it
	At      units.Time // when; of two about a flow from one switch, the later counts
}

// NoteSize is the size of a notification on the wire: a header of 40 bytes behind UDP, IP and Ethernet.
const NoteSize = 46 + 40

// Step is something that CCM did, for who wants to follow it.
type Step struct {
	At     units.Time
	Switch NodeID
	What   StepKind
	Src    HostID
	Dst    HostID
	Port   int32  // Moved, Took, TookOnly: where the flow goes; HeardPath: where it went
	To     NodeID // told: whom
}

// StepKind is what a Step is.
type StepKind uint8

// Kinds of steps.
const (
	ToldCC       StepKind = iota // type 1 sent
	ToldReleased                 // type 2 sent
	ToldPath                     // type 3 sent
	HeardPath                    // type 3 received and followed
	Moved                        // a flow takes another port than before
	LastResort                   // no path is light here or upstream: type 1 sent, not for incast
	Took                         // a flow that is new here takes a port, one of several that are light
	TookOnly                     // the same where at most one is: the AR indicator stays
)

// CCMCounters are totals of what switches did.
type CCMCounters struct {
	Notes      [4]int64 // sent, by type; [0]: of all, those that were lost by CCMConfig.Loss
	Ignored    int64    // notifications that a switch had no use for
	BadTags    int64    // packets whose AR indicator named nobody
	LastResort int64    // packets
	Forgotten  int64    // flows that had to make room in a table before they expired
	MostFlows  int64    // most flows that a switch kept track of for incast
}

// mostIncast bounds the flows that a switch keeps track of at one port for incast.
const mostIncast = 1024

// ccmSwitch is what a switch knows for CCM, beside its flows.
type ccmSwitch struct {
	random uint64        // of the losses
	inward int32         // a port that leads to it
	ports  []int32       // to hosts, with flows that were told to be incast
	incast []*incast     // of these
	port   map[int32]int // where in these a port is
}

// incast is what a switch knows of a port to a host.
type incast struct {
	flows      []incastFlow
	at         map[uint64]int // where in these a flow is, by its key
	lightSince units.Time     // or units.Never while it is not light
}

// incastFlow is a flow whose source was told.
type incastFlow struct {
	key     uint64
	src     HostID
	dst     HostID
	srcPort uint16
	told    units.Time
	seen    units.Time
}

func (c *Config) checkCCM() error {
	for s := range c.Switches {
		if on := c.Switches[s].Balance == CCM; on != (c.CCM != nil) {
			return fmt.Errorf("switch %d does CCM: %t; the network: %t", s, on, c.CCM != nil)
		}
	}
	if k := c.CCM; k != nil {
		if k.RTT <= 0 || k.Every <= 0 || k.Refresh <= 0 || !(k.Loss >= 0 && k.Loss <= 1) {
			return fmt.Errorf("CCM with an RTT of %d ps, notifications every %d, again after %d ps, %g of them lost",
				k.RTT, k.Every, k.Refresh, k.Loss)
		}
		if len(c.Switches) >= int(ARSource) {
			return fmt.Errorf("%d switches; an AR indicator names fewer than %d", len(c.Switches), ARSource)
		}
		for s := range c.Switches {
			if len(c.Switches[s].Route) != c.Hosts+len(c.Switches) {
				return fmt.Errorf("switch %d has no routes to other switches", s)
			}
		}
	}
	return nil
}

func (c *CCMCounters) add(k *CCMCounters) {
	for i := range c.Notes {
		c.Notes[i] += k.Notes[i]
	}
	c.Ignored += k.Ignored
	c.BadTags += k.BadTags
	c.LastResort += k.LastResort
	c.Forgotten += k.Forgotten
	c.MostFlows = max(c.MostFlows, k.MostFlows)
}
