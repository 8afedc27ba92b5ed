package topology

import (
	"fmt"
	"net/netip"
)

// MaxHosts is the maximum number of hosts of a graph, that of a fat-tree with k=64. Ours: it keeps
// every host in 10.0/15 and leaves the rest of 10/8 for what else may need an address.
const MaxHosts = 65536

// PrefixLen is the length of the one subnet that all hosts share, 10.0.0.0/8. Every host reaches
// every other directly, without a gateway, whatever switches are between them.
const PrefixLen = 8

// hostsPerByte is the number of values of an address's last byte: 1 to 254. Addresses that end in 0
// or 255 are legal in a /8, but some programs take them for a network or a broadcast address.
const hostsPerByte = 254

// HostAddr returns the address of host h: 10.0.0.1 for h0, 10.0.0.254 for h253, 10.0.1.1 for h254,
// up to 10.1.2.4 for h65535. It panics unless h is in [0, MaxHosts).
func HostAddr(h NodeID) netip.Addr {
	if h < 0 || h >= MaxHosts {
		panic(fmt.Sprintf("topology: host %d has no address: hosts end at %d", h, MaxHosts-1))
	}
	n := int(h) / hostsPerByte
	return netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), byte(int(h)%hostsPerByte + 1)})
}

// SwitchAddr returns the address that switch s, counted from 0, sends notifications from:
// 10.128.0.1 and on, in the order of hosts. It panics unless s is in [0, MaxHosts).
func SwitchAddr(s int) netip.Addr {
	a := HostAddr(NodeID(s)).As4()
	a[1] += 128
	return netip.AddrFrom4(a)
}
