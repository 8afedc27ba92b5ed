package topology

import (
	"fmt"
	"net/netip"
)

// A Subnet is the address plan of a lab. The zero value is that of a lab by itself, 10.0.0.0/8, and
// holds MaxHosts hosts. Subnet n, from 1 to MaxSubnets, is 10.n.0.0/16, for labs side by side on
// one machine, and holds SubnetHosts.
type Subnet int

// MaxSubnets is the number of subnets of 10/8 besides 10.0/16, where the addresses of a lab by
// itself begin.
const MaxSubnets = 255

// SubnetHosts is the number of hosts that subnet 1 and on hold. As many switches have addresses in
// the upper half.
const SubnetHosts = 128 * hostsPerByte

// Prefix returns the subnet that all hosts share.
func (s Subnet) Prefix() netip.Prefix {
	if s == 0 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10}), PrefixLen)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, s.octet()}), 16)
}

// HostAddr returns the address of host h: 10.n.0.1 for h0 of subnet n. It panics unless h is in the
// subnet.
func (s Subnet) HostAddr(h NodeID) netip.Addr { return s.within(HostAddr(h), int(h), 0) }

// SwitchAddr returns the address of switch i, counted from 0: 10.n.128.1 and on in subnet n. It
// panics unless i is in the subnet.
func (s Subnet) SwitchAddr(i int) netip.Addr {
	if s == 0 {
		return SwitchAddr(i)
	}
	return s.within(HostAddr(NodeID(i)), i, 128)
}

// within moves an address of 10/8 into the subnet.
func (s Subnet) within(a netip.Addr, i int, third byte) netip.Addr {
	if s == 0 {
		return a
	}
	if i >= SubnetHosts {
		panic(fmt.Sprintf("topology: node %d has no address in %v: they end at %d", i, s.Prefix(), SubnetHosts-1))
	}
	b := a.As4()
	return netip.AddrFrom4([4]byte{10, s.octet(), b[2] + third, b[3]})
}

func (s Subnet) octet() byte {
	if s < 0 || s > MaxSubnets {
		panic(fmt.Sprintf("topology: there is no subnet %d: they end at %d", int(s), MaxSubnets))
	}
	return byte(s)
}

// Number gives the hosts of a graph their addresses in a subnet. The builder of the graph calls it
// before sharing the graph.
func (g *Graph) Number(s Subnet) {
	for h := range NodeID(g.Hosts) {
		g.Nodes[h].Addr = s.HostAddr(h).String()
	}
}
