package fabric

import "weft/units"

// NodeID numbers hosts and switches together: host h is h, switch s is Config.Hosts + s.
type NodeID int32

// Config describes a network. It is plain data that can be written as JSON and read back.
type Config struct {
	Seed     uint64         `json:"seed"` // of the random draws of ECN marking
	Hosts    int            `json:"hosts"`
	Ports    []PortConfig   `json:"ports"`
	Switches []SwitchConfig `json:"switches"`

	// CCM is what coordination leaves open, when the switches' Balance is CCM; Port is then the UDP destination port of
	// flows, by which a switch finds the flow that a notification is about.
	CCM  *CCMConfig `json:"ccm,omitempty"`
	Port uint16     `json:"port,omitempty"`

	// Stations is the UDP destination port of the packets that programs on the switches look at: see Network.AttachStations. 0: there are none.
	Stations uint16 `json:"stations,omitempty"`

	// Disturbable says that lines that deliver in order may be changed to ones that do not: see SetDisorder.
	Disturbable bool `json:"disturbable,omitempty"`
}

// PortConfig is one direction of a link: the output queue at From and the way to To. Each host has exactly
// one, its NIC.
type PortConfig struct {
	From  NodeID          `json:"from"`
	To    NodeID          `json:"to"`
	Rate  units.Bandwidth `json:"rate_bps"`
	Delay units.Time      `json:"delay_ps"` // propagation

	// Buffer is the most bytes that wait in a switch's port, both classes together; a packet that would
	// exceed it is dropped. The packet being transmitted is not counted. A host's NIC has no limit.
	//
	// In a switch that accounts for its memory (BufferConfig, PFCConfig) it bounds each class for itself, does
	// not bind packets that PFC protects, and may be 0, no bound, where the switch has a Total.
	Buffer units.Bytes `json:"buffer,omitempty"`
	ECN    ECNConfig   `json:"ecn"`

	// Light is the most bytes of a packet's class that wait in a port that an adaptive switch thinks light.
	// Congested is the most that waits in a port that a switch with CCM does not think congested.
	Light     units.Bytes `json:"light,omitempty"`
	Congested units.Bytes `json:"congested,omitempty"`

	// Aside says that what comes by this port may not be sent aside: see SwitchConfig.Aside.
	Aside bool `json:"aside,omitempty"`

	// PFC is, by class, when the switch at To has this port pause. Nothing pauses where To is a host.
	PFC [Classes]PFCConfig `json:"pfc,omitzero"`

	// Loss is the probability that the line loses a packet, BitErrors the probability that it corrupts a bit, and
	// thereby loses the packet. Both in [0, 1].
	Loss      float64 `json:"loss,omitempty"`
	BitErrors float64 `json:"bit_errors,omitempty"`

	Disorder Disorder `json:"disorder,omitzero"`
}

// Disorder is how a line delivers packets in another order than they were sent, or twice.
type Disorder struct {
	Reorder   float64    `json:"reorder,omitempty"`   // probability that a packet comes late, in [0, 1]
	By        units.Time `json:"by_ps,omitempty"`     // by at most so much, uniformly; above 0 if Reorder is
	Duplicate float64    `json:"duplicate,omitempty"` // probability that a copy comes with a packet, in [0, 1]
	Jitter    units.Time `json:"jitter_ps,omitempty"` // mean of an exponential delay that every packet has besides
}

// ECNConfig is when a port marks packets that are ECN-capable (RED on the instantaneous queue, as DCQCN's
// congestion point: SIGCOMM 2015, section 3.1). q, in bytes, is what waits in the packet's class:
//
//	q <= Kmin         never
//	Kmin < q <= Kmax  with probability Pmax (q - Kmin) / (Kmax - Kmin)
//	q > Kmax          always
type ECNConfig struct {
	Kmin units.Bytes `json:"kmin,omitempty"`
	Kmax units.Bytes `json:"kmax,omitempty"`
	Pmax float64     `json:"pmax,omitempty"` // in [0, 1]
	On   bool        `json:"on,omitempty"`

	// Ingress marks a packet when it joins the queue, by what it finds there; otherwise it is marked when its
	// transmission starts, by what it leaves behind.
	Ingress bool `json:"ingress,omitempty"`
}

// SwitchConfig is how a switch chooses output ports, and its memory.
type SwitchConfig struct {
	Name   string    `json:"name,omitempty"`
	Seed   uint64    `json:"seed"`   // of the ECMP hash; switches of equal seed make equal choices
	Groups [][]int32 `json:"groups"` // sets of equally good output ports, by their index in Config.Ports
	Route  []int32   `json:"route"`  // for each destination host, and with CCM then for each switch, an index into Groups, or -1: unreachable

	// Aside is, for each destination host, a group of ports that lead to switches as far from it as this one, or -1. A switch
	// that chooses by the packet takes one of them when no port of Route's group is light, for packets that did not come by
	// a port with PortConfig.Aside. nil: there are none.
	Aside []int32 `json:"aside,omitempty"`

	Buffer BufferConfig `json:"buffer,omitzero"`

	// Balance is how it chooses among the ports of a group.
	Balance Balance `json:"balance,omitempty"`
}
