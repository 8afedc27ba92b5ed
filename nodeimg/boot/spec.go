package boot

import (
	"fmt"
	"net"
	"net/netip"

	"weft/internal/mac"
	"weft/nodeimg/tcp"
	"weft/units"
)

// Kinds of control messages: see the package comment.
const (
	KindBoot  = "boot"
	KindLink  = "link"
	KindLinks = "links"
	KindUp    = "up"
)

// Interface is the name of a node's network interface.
const Interface = "eth0"

// NodeSpec is the specification of a host of the lab.
type NodeSpec struct {
	Name string `json:"name"` // in the lab, and in every message about it
	// IPv4; the prefix is the on-link subnet of all hosts
	Addr  netip.Prefix `json:"addr"`
	MAC   MAC          `json:"mac"`
	MTU   units.Bytes  `json:"mtu"`   // largest IP packet; 68 to 65521
	Peers []Peer       `json:"peers"` // permanent neighbours, which need no ARP

	// Hosts are the names in the node's /etc/hosts, besides localhost. None: the node has the
	// machine's file.
	Hosts []HostName `json:"hosts,omitempty"`
	// Hidden are directories of the machine that are empty in the node, if it sees them at all.
	Hidden []string `json:"hidden,omitempty"`
	// User is the user ID of the node's programs, named by its /etc/passwd; 0: none.
	User int `json:"user,omitempty"`

	// TCP has settings of the node's routes.
	TCP tcp.Settings `json:"tcp,omitzero"`

	// Nice is the nice value to ask for, from -20 (highest priority) to 19; 0 leaves it alone.
	Nice int `json:"nice"`
	// Sockets are opened, in this order, while the process may still exceed the system's limit on
	// buffers.
	Sockets []Socket `json:"sockets"`
	// Veth makes the cable a veth pair even if TAP devices are available.
	Veth bool `json:"veth"`

	// Wired says that the orchestrator makes the cable, to a switch that is a node. Gateway is that
	// switch's address, for all destinations that are not peers. Addr then is a prefix of one
	// address.
	Wired   bool     `json:"wired,omitempty"`
	Gateway *Gateway `json:"gateway,omitempty"`
	// Switch says that the node is a switch: the orchestrator configures its network, and it runs
	// nothing. It has no Addr, MAC and MTU of its own.
	Switch bool `json:"switch,omitempty"`
	// Agents says that the process is neither host nor switch: it drives hosts that lend it their
	// sockets, and has no network of its own.
	Agents bool `json:"agents,omitempty"`
}

// Peer is another host of the lab.
type Peer struct {
	Addr netip.Addr `json:"addr"`
	MAC  MAC        `json:"mac"`
}

// HostName is the name and the address of a host.
type HostName struct {
	Name string     `json:"name"`
	Addr netip.Addr `json:"addr"`
}

// Socket is an IPv4 UDP socket bound to the node's address. A buffer of 0 keeps the system's size.
type Socket struct {
	Port       uint16      `json:"port"` // 0: any
	ReadBuffer units.Bytes `json:"read_buffer"`
}

// FabricSpec is the specification of the fabric process.
type FabricSpec struct {
	Links int `json:"links"` // number of cables that will be handed over
}

// LinkKind is the kind of descriptor at the fabric's end of a cable.
type LinkKind string

// The kinds of cable. Both carry Ethernet frames without FCS, one per read or write, and do not
// block.
const (
	TAP LinkKind = "tap" // TAP is a TAP device: read and write
	// Packet is an AF_PACKET socket at the far end of a veth pair: recv and send
	Packet LinkKind = "packet"
)

// Link is the fabric's end of a node's cable. FD is a descriptor of the receiving process.
type Link struct {
	Index int      `json:"index"` // of the node in the lab, from 0
	Node  string   `json:"node"`  // its name
	Kind  LinkKind `json:"kind"`
	Why   string   `json:"why,omitempty"` // why it is not a TAP device
	FD    int      `json:"-"`
}

// Report is the result of a process's boot.
type Report struct {
	// what the machine did not grant, in words, with its cost
	Notes []string `json:"notes,omitempty"`
	// what programs in the node lack for that reason, in words; of no account without programs
	Lacks []string `json:"lacks,omitempty"`
	UID   int      `json:"uid"` // the user it runs as, in its own user namespace
}

// NodeEnv is the environment of a booted host.
type NodeEnv struct {
	// descriptors of NodeSpec.Sockets, in order, not blocking, closed on exec
	Sockets []int
	Switch  bool // it runs nothing: see Hold
}

// MAC is an Ethernet address. Its text is 02:00:00:00:00:01.
type MAC [6]byte

func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// MarshalText returns the usual text of the address.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads six octets in any form of net.ParseMAC.
func (m *MAC) UnmarshalText(text []byte) error {
	a, err := net.ParseMAC(string(text))
	if err != nil {
		return err
	}
	if len(a) != len(m) {
		return fmt.Errorf("%s: an Ethernet address has %d octets, not %d", text, len(m), len(a))
	}
	copy(m[:], a)
	return nil
}

// MACOf returns the address that Weft gives the node with this IPv4 address.
func MACOf(a netip.Addr) MAC { return mac.Of(a) }
