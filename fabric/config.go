package fabric

import (
	"slices"

	"weft/units"
)

// NodeID numbers hosts and switches together: host h is h, and switch s is Config.Hosts + s.
type NodeID int32

// Config describes a network. It is plain data that can be written as JSON and read back.
type Config struct {
	Seed     uint64         `json:"seed"`  // of the random draws of marking, errors and balancing
	Hosts    int            `json:"hosts"` // their number
	Ports    []PortConfig   `json:"ports"`
	Switches []SwitchConfig `json:"switches"`

	// CCM is what the draft on coordinated congestion management leaves open. It is set if and only
	// if the switches' Balance is CCM. Port is then the UDP destination port of flows, by which a
	// switch finds the flow that a notification is about.
	CCM  *CCMConfig `json:"ccm,omitempty"`
	Port uint16     `json:"port,omitempty"`

	// Stations is the UDP destination port of the packets that programs on switches inspect: see
	// Network.AttachStations. 0: there are no programs.
	Stations uint16 `json:"stations,omitempty"`

	// Disturbable allows changes to links that deliver packets late or twice (Link.Disturbs). A
	// disturbable network is not split into partitions.
	Disturbable bool `json:"disturbable,omitempty"`
}

// PortConfig is one direction of a link: the output queue at From and the link to To. Each host has
// exactly one port, its NIC.
type PortConfig struct {
	From NodeID `json:"from"`
	To   NodeID `json:"to"`
	Link        // with PFC, one that delivers each packet once and in order

	// Buffer is the largest number of bytes that wait in a switch's port, both classes together. A
	// packet that would exceed it is dropped. The packet being transmitted is not counted. A host's
	// NIC has no limit.
	//
	// In a switch that accounts for its memory (BufferConfig, PFCConfig) it bounds each class by
	// itself and does not bind packets that PFC protects. It may be 0, no bound, if the switch has
	// a Total.
	Buffer units.Bytes `json:"buffer,omitempty"`
	ECN    ECNConfig   `json:"ecn"`

	// Trim is whether a switch's port cuts packets that do not fit to their headers. Buffer then
	// bounds the data that waits, and twice as much the control packets.
	Trim TrimConfig `json:"trim,omitzero"`

	// Light and Congested are queue lengths of a packet's class. A port is light, that is
	// uncongested, for an adaptive switch while at most Light bytes wait, and congested for a
	// switch with CCM while more than Congested bytes wait. The words are those of the CCM draft.
	Light     units.Bytes `json:"light,omitempty"`
	Congested units.Bytes `json:"congested,omitempty"`

	// Aside forbids detours to packets that arrive by this port: see SwitchConfig.Aside.
	Aside bool `json:"aside,omitempty"`

	// PFC is, by class, when the switch at To pauses this port. It is off if To is a host.
	PFC [Classes]PFCConfig `json:"pfc,omitzero"`
}

// Link is the properties of one direction of a link, wherever one is described: in a lab, in the
// network that is built from it, in changes of it and in what is measured. Probabilities are in
// [0, 1].
type Link struct {
	Rate      units.Bandwidth `json:"rate_bps"`                // above 0
	Delay     units.Time      `json:"delay_ps"`                // propagation
	Loss      float64         `json:"loss,omitempty"`          // probability that a packet is lost
	BitErrors float64         `json:"bit_errors,omitempty"`    // that a bit is corrupted; one loses the packet
	Duplicate float64         `json:"duplicate,omitempty"`     // that a copy arrives with a packet
	Reorder   float64         `json:"reorder,omitempty"`       // that a packet is late
	ReorderBy units.Time      `json:"reorder_by_ps,omitempty"` // most by which one is; above 0 if Reorder is
	Jitter    units.Time      `json:"jitter_ps,omitempty"`     // mean of an exponential delay of every packet
}

// Shuffles reports whether packets may overtake each other.
func (l *Link) Shuffles() bool { return l.Jitter > 0 || l.Reorder > 0 }

// Disturbs reports whether packets are delivered late or twice at random.
func (l *Link) Disturbs() bool { return l.Duplicate > 0 || l.Shuffles() }

// Loses reports whether packets are lost at random.
func (l *Link) Loses() bool { return l.Loss > 0 || l.BitErrors > 0 }

// HasLink reports whether a property holds for a link of the network, before or after a change.
func (c *Config) HasLink(changes []Change, property func(*Link) bool) bool {
	for i := range c.Ports {
		if property(&c.Ports[i].Link) {
			return true
		}
	}
	return slices.ContainsFunc(changes, func(k Change) bool { return k.Link != nil && property(k.Link) })
}

// ECNConfig is when a port marks ECN-capable packets: RED on the instantaneous queue, as DCQCN's
// congestion point (SIGCOMM 2015, section 3.1). q is the number of bytes that wait in the packet's
// class:
//
//	q <= Kmin         never
//	Kmin < q <= Kmax  with probability Pmax (q - Kmin) / (Kmax - Kmin)
//	q > Kmax          always
type ECNConfig struct {
	Kmin units.Bytes `json:"kmin,omitempty"`
	Kmax units.Bytes `json:"kmax,omitempty"`
	Pmax float64     `json:"pmax,omitempty"` // in [0, 1]
	On   bool        `json:"on,omitempty"`

	// Ingress marks a packet when it joins the queue, by the bytes that it finds there. Otherwise
	// it is marked when its transmission starts, by the bytes that it leaves behind.
	Ingress bool `json:"ingress,omitempty"`
}

// TrimConfig is packet trimming: see trim.go.
type TrimConfig struct {
	On bool `json:"on,omitempty"`

	// Size is the bytes on the wire that a trimmed packet has. 0: those of its headers,
	// Packet.Keep.
	Size units.Bytes `json:"size,omitempty"`

	// Fair trims, with a probability of one half, the data packet that joined last in place of the
	// one that does not fit, as htsim does (compositequeue.cpp, receivePacket). So senders in step
	// do not decide whose packets are cut.
	Fair bool `json:"fair,omitempty"`
}

// SwitchConfig is the forwarding tables and the memory of a switch.
type SwitchConfig struct {
	Name   string    `json:"name,omitempty"` // for messages
	Seed   uint64    `json:"seed"`           // of the ECMP hash; switches with equal seeds make equal choices
	Groups [][]int32 `json:"groups"`         // sets of equally good output ports, by index in Config.Ports
	// Route is an index into Groups, or -1 if unreachable, for each destination host. With CCM
	// those of the switches follow.
	Route []int32 `json:"route"`

	// Aside is, for each destination host, the group of ports to switches that are as far from the
	// host as this one, or -1. A switch that balances takes a port of it, a detour, when no port of
	// Route's group is light, for packets that did not arrive by a port with PortConfig.Aside. nil:
	// there are no detours.
	Aside []int32 `json:"aside,omitempty"`

	Buffer BufferConfig `json:"buffer,omitzero"`

	// Balance is how the switch chooses among the ports of a group.
	Balance Balance `json:"balance,omitempty"`
}
