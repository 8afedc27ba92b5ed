package fabric

import (
	"fmt"

	"weft/units"
)

// Coordinated congestion management (CCM): draft-lyu-rtgwg-coordinated-cm-00, sections 6.1 to 6.3.
// Here is what switches do; what hosts do is in package transport.
//
// A data packet carries a coordination tag. If its flow is known to cause incast (CC), switches
// leave it on its path and mark it. Otherwise they look for a path that is light, which is the
// draft's word for uncongested: here or, by a notification, at the upstream switch that the tag
// names. Only if there is none do they mark the packet. The switch before the destination marks
// every packet while its port is congested, and tells sources which of their flows cause incast,
// and when that is over.
//
// The draft leaves thresholds, timers and encodings open. They are in PortConfig.Light and
// Congested, CCMConfig, and package wire.

// CCM is adaptive routing that is coordinated with congestion control. Either all switches of a
// network do it or none.
const CCM Balance = "ccm"

// CCMConfig has the choices that the draft leaves open. Times are above 0.
type CCMConfig struct {
	// RTT is the base round trip. A port must have been light for one RTT before its flows are
	// released; a flow avoids the ports about which a downstream switch has complained for one RTT;
	// and a switch asks an upstream switch about a flow at most once per RTT.
	RTT units.Time `json:"rtt_ps"`

	// Every is the minimum time between two notifications of type 1 about a flow. Refresh is the
	// interval at which a source is reminded of a flow that is not released; it is less than the
	// time after which sources assume that the release was lost.
	Every   units.Time `json:"every_ps"`
	Refresh units.Time `json:"refresh_ps"`

	// Spray chooses a port for each packet, at random among the light ones, where otherwise a flow
	// stays on its port. CC traffic stays on the port of the flow's last packet before.
	Spray bool `json:"spray,omitempty"`

	// Strict sends no notification of type 1 to the source of a flow for which no path is light, as
	// section 6.3.4 of the draft has it, although by its section 6.4 the source then ignores the
	// mark.
	Strict bool `json:"strict,omitempty"`

	// Loss is the share of notifications that are lost, in [0, 1]: a test of how the protocol
	// recovers.
	Loss float64 `json:"loss,omitempty"`
}

// Tag is the coordination tag of a data packet (section 6.1).
type Tag struct {
	On   bool   // the packet has a tag
	CC   bool   // its flow causes incast
	AR   uint16 // where upstream its path can be chosen: ARNone, ARSource, or the number of a switch plus 1
	mark bool   // the port in which it waits may mark it
}

// AR indicators other than switches.
const (
	ARNone   uint16 = 0      // nowhere
	ARSource uint16 = 0xffff // the source host
)

// NoteType is a type of notification (section 6.2).
type NoteType uint8

// Types of notification.
const (
	NeedsCC   NoteType = 1 // to the source: the flow causes incast
	Released  NoteType = 2 // to the source: it no longer does
	NeedsPath NoteType = 3 // to the AR point upstream: no path of the flow is light here
)

// Note is a notification: a packet from a switch to a host or to another switch.
type Note struct {
	Type    NoteType
	Last    bool // type 1: not for incast, but because no path is light anywhere (section 6.3.4, second case)
	Src     HostID
	Dst     HostID     // Src and Dst are the hosts of the flow
	SrcPort uint16     // the UDP source port of the flow
	Switch  NodeID     // the switch that sent it
	At      units.Time // when it was sent; of two about a flow from one switch, the later is valid
}

// NoteSize is the size of a notification on the wire: a header of 40 bytes after UDP, IP and
// Ethernet.
const NoteSize = 46 + 40

// Step is an action of CCM, for Observers.Follow.
type Step struct {
	At     units.Time
	Switch NodeID
	What   StepKind
	Src    HostID
	Dst    HostID
	Port   int32  // Moved, Took, TookOnly: the new port of the flow; HeardPath: the port it leaves
	To     NodeID // the receiver of a notification
}

// StepKind is the kind of a Step.
type StepKind uint8

// Kinds of steps.
const (
	ToldCC       StepKind = iota // a notification of type 1 was sent
	ToldReleased                 // a notification of type 2 was sent
	ToldPath                     // a notification of type 3 was sent
	HeardPath                    // a notification of type 3 was received and followed
	Moved                        // a flow takes another port than before; never with CCMConfig.Spray
	LastResort                   // no path is light here or upstream: type 1 sent, not for incast
	Took                         // a flow that is new here takes a port, one of several that are light
	TookOnly                     // as Took, but at most one port is light: the AR indicator stays
)

// CCMCounters counts the actions of all switches.
type CCMCounters struct {
	// Notes is the notifications sent, by type. Notes[0] is how many of all of them CCMConfig.Loss
	// lost.
	Notes      [4]int64
	Ignored    int64 // notifications that a switch could not use
	BadTags    int64 // packets whose AR indicator named no switch
	LastResort int64 // packets marked because no path was light
	Forgotten  int64 // incast flows that were replaced in a full table before they expired
	MostFlows  int64 `state:"-"` // largest number of incast flows that a switch has tracked at a port
}

// maxIncast is the largest number of incast flows that a switch tracks at one port.
const maxIncast = 1024

// ccmSwitch is the state of a switch for CCM, besides its flow table.
type ccmSwitch struct {
	random uint64        // state of the draws of losses
	avoid  avoidance     // CCMConfig.Spray: ports that notifications keep flows off
	open   []int32       // scratch of spray
	inward int32         // a port that leads to the switch, or noPort
	ports  []int32       // its ports to hosts that have incast flows
	incast []*incast     // by element of ports
	port   map[int32]int // by port: its index in ports
}

// incast is the incast flows of a port to a host.
type incast struct {
	flows      []incastFlow
	at         map[uint64]int // by flow key: its index in flows
	lightSince units.Time     // since when the port has been light, or units.Never
}

// incastFlow is a flow whose source was notified of incast.
type incastFlow struct {
	key     uint64 // see flowKey
	src     HostID
	dst     HostID
	srcPort uint16
	told    units.Time // when its source was last notified
	seen    units.Time // when its last packet arrived
}

func (c *Config) checkCCM() error {
	for s := range c.Switches {
		if on := c.Switches[s].Balance == CCM; on != (c.CCM != nil) {
			return fmt.Errorf("switch %d has CCM: %t; the network: %t; expected all or none", s, on, c.CCM != nil)
		}
	}
	if k := c.CCM; k != nil {
		if k.RTT <= 0 || k.Every <= 0 || k.Refresh <= 0 || !(k.Loss >= 0 && k.Loss <= 1) {
			return fmt.Errorf("CCM with an RTT of %d ps, notifications every %d ps, reminders after %d ps, "+
				"%g of them lost; expected times above 0 and a share in [0, 1]", k.RTT, k.Every, k.Refresh, k.Loss)
		}
		if len(c.Switches) >= int(ARSource) {
			return fmt.Errorf("%d switches; an AR indicator can name fewer than %d", len(c.Switches), ARSource)
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
