package qdisc

import (
	"fmt"
	"net/netip"
)

// Source is the one node whose frames a direction carries: IPv4 packets and ARP messages that have its MAC address and its IPv4
// address as their sender's. All others are dropped as they arrive, before the line, and counted.
type Source struct {
	MAC  [6]byte
	Addr netip.Addr // IPv4

	Foreign string // of one read back: filters that no plan asks for
}

func (s *Source) String() string {
	switch {
	case s == nil:
		return "from anybody"
	case s.Foreign != "":
		return s.Foreign
	}
	m := s.MAC
	return fmt.Sprintf("only from %02x:%02x:%02x:%02x:%02x:%02x %v", m[0], m[1], m[2], m[3], m[4], m[5], s.Addr)
}
