package boot

import (
	"fmt"
	"net"
	"net/netip"

	"weft/internal/mac"
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

// NodeSpec is what a host of the lab is to become.
type NodeSpec struct {
	Name     string       `json:"name"`     // in the lab, and in every message about it
	Hostname string       `json:"hostname"` // empty: Name
	Addr     netip.Prefix `json:"addr"`     // IPv4; the prefix is the on-link subnet with all other hosts
	MAC      MAC          `json:"mac"`
	MTU      units.Bytes  `json:"mtu"`   // largest IP packet; 68 to 65521
	Peers    []Peer       `json:"peers"` // neighbours that are known for good, so that no ARP is needed

	// Hosts are the names by which the node's programs know hosts of the lab: its /etc/hosts, besides localhost. None:
	// the node has the machine's.
	Hosts []HostName `json:"hosts,omitempty"`
	// Hidden are directories of the machine that are empty in the node, should it see them at all.
	Hidden []string `json:"hidden,omitempty"`
	// User is that of the node's programs, as its /etc/passwd names it; 0: none.
	User int `json:"user,omitempty"`

	// Queue is how many frames the interface holds for the fabric before it drops; 0 means 10,000.
	Queue int `json:"queue"`
	// Nice is the scheduling priority to ask for, -20 (first) to 19; 0 leaves it alone.
	Nice int `json:"nice"`
	// Sockets are opened while the process may still exceed the system's limit on buffers, in this order.
	Sockets []Socket `json:"sockets"`
	// Veth makes the cable a veth pair even where a TAP device could be had.
	Veth bool `json:"veth"`

	// Wired says that the orchestrator makes the cable, to a switch that is a node, and Gateway is that switch's address,
	// to which goes all that is for none of the peers. Addr then is a prefix of one address.
	Wired   bool     `json:"wired,omitempty"`
	Gateway *Gateway `json:"gateway,omitempty"`
	// Switch says that it is no host but a switch: it holds a network, which the orchestrator configures, and runs nothing.
	// It has no Addr, MAC and MTU of its own.
	Switch bool `json:"switch,omitempty"`
	// Agents says that it is neither: it drives hosts whose sockets it is given, and has no network of its own.
	Agents bool `json:"agents,omitempty"`
}

// Peer is another host of the lab.
type Peer struct {
	Addr netip.Addr `json:"addr"`
	MAC  MAC        `json:"mac"`
}

// HostName is a host's address by its name.
type HostName struct {
	Name string     `json:"name"`
	Addr netip.Addr `json:"addr"`
}

// Socket is an IPv4 UDP socket bound to the node's address. Buffers of 0 are left as the system makes them.
type Socket struct {
	Port        uint16      `json:"port"` // 0: any
	ReadBuffer  units.Bytes `json:"read_buffer"`
	WriteBuffer units.Bytes `json:"write_buffer"`
}

// FabricSpec is what the fabric process is to become.
type FabricSpec struct {
	Links int `json:"links"` // how many cables will be handed over
	Nice  int `json:"nice"`  // as NodeSpec.Nice
}

// LinkKind tells what the descriptor at the fabric's end of a cable is.
type LinkKind string

// The kinds of cable. Both carry Ethernet frames without FCS, one per read or write, and do not block.
const (
	TAP    LinkKind = "tap"    // a TAP device: read and write
	Packet LinkKind = "packet" // an AF_PACKET socket on the far end of a veth pair: recv and send
)

// Link is the fabric's end of a node's cable. FD is a descriptor of the receiving process.
type Link struct {
	Index int      `json:"index"` // of the node in the lab, from 0
	Node  string   `json:"node"`  // its name
	Kind  LinkKind `json:"kind"`
	Why   string   `json:"why,omitempty"` // why it is not a TAP device
	FD    int      `json:"-"`
}

// Report is what became of a process at the end of its boot.
type Report struct {
	Notes []string `json:"notes,omitempty"` // what the machine did not grant, in words, with its cost
	UID   int      `json:"uid"`             // the user it runs as, in its own user namespace
	Nice  int      `json:"nice"`            // as granted
}

// NodeEnv is a booted host, seen from inside.
type NodeEnv struct {
	Name    string
	Link    LinkKind
	Sockets []int // descriptors of NodeSpec.Sockets, in order, not blocking, closed on exec
	Switch  bool  // nothing runs in it: see Hold
	Report  Report
}

// FabricEnv is the booted fabric process, seen from inside.
type FabricEnv struct {
	Links  []Link // one for each node, by Link.Index
	Report Report
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

// check reports the first thing wrong with s.
func (s *NodeSpec) check() error {
	switch {
	case s.Name == "":
		return fmt.Errorf("a node without a name")
	case s.Switch || s.Agents:
		return nil
	case !s.Addr.IsValid() || !s.Addr.Addr().Is4():
		return fmt.Errorf("address %v is not an IPv4 prefix", s.Addr)
	case s.MAC[0]&1 != 0 || s.MAC == MAC{}:
		return fmt.Errorf("%v is not a unicast address", s.MAC)
	case s.MTU < 68 || s.MTU > 65521: // RFC 791; MAX_MTU of drivers/net/tun.c
		return fmt.Errorf("MTU %d is outside 68 to 65521", s.MTU)
	}
	return nil
}
