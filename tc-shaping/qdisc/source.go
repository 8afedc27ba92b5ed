package qdisc

import (
	"fmt"
	"net/netip"
)

// Source is the only node whose frames a direction carries: IPv4 packets and ARP messages with its
// MAC and IPv4 address as the sender. All other frames are dropped on arrival, before netem, and
// counted.
type Source struct {
	MAC  [6]byte
	Addr netip.Addr // IPv4

	Foreign string // when read back: describes filters that no plan uses
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
