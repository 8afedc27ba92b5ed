// Package mac derives the MAC addresses of a lab's nodes from their IPv4 addresses.
package mac

import "net/netip"

// Of returns the locally administered unicast address of the node with this IPv4 address: 02:00
// followed by its four octets.
func Of(a netip.Addr) [6]byte {
	v4 := a.As4()
	return [6]byte{2, 0, v4[0], v4[1], v4[2], v4[3]}
}
