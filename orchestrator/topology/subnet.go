package topology

import (
	"fmt"
	"net/netip"
)

// A Subnet is the address plan of a lab. The zero value is that of a lab by itself, 10.0.0.0/8, and holds MaxHosts hosts.
// Subnet n, from 1 to MaxSubnets, is 10.n.0.0/16, one of a machine's side by side, and holds SubnetHosts.
type Subnet int

// MaxSubnets is how many subnets of 10/8 there are beside 10.0/16, from which labs by themselves take addresses.
const MaxSubnets = 255

// SubnetHosts is how many hosts subnet 1 and on hold; as many switches have addresses in its upper half.
const SubnetHosts = 128 * hostsPerByte

// Prefix is the one subnet that all hosts share.
func (s Subnet) Prefix() netip.Prefix {
	if s == 0 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10}), PrefixLen)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, s.octet()}), 16)
}

// HostAddr is the address of host h: 10.n.0.1 for h0 of subnet n. See topology.HostAddr. h must be in the subnet.
func (s Subnet) HostAddr(h NodeID) netip.Addr { return s.within(HostAddr(h), int(h), 0) }

// SwitchAddr is the address of switch i, counted from 0: 10.n.128.1 and on. See topology.SwitchAddr.
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

// Number gives the hosts of a graph their addresses in a subnet. Whoever built the graph calls it, before anybody else
// has it.
func (g *Graph) Number(s Subnet) {
	for h := range NodeID(g.Hosts) {
		g.Nodes[h].Addr = s.HostAddr(h).String()
	}
}
