package node

import (
	"fmt"

	"weft/clocksync"
)

// Ports are the UDP ports that messages of a kind of synchronization come to.
func Ports(s Sync) []uint16 {
	switch s {
	case PTP:
		return []uint16{clocksync.EventPort, clocksync.GeneralPort}
	case Huygens:
		return []uint16{clocksync.ProbePort}
	}
	return nil
}

// Params are the parameters of the protocols; those of the one that runs count.
type Params struct{}

// protocol returns the node's side of what keeps its clock; nil where nothing does.
func (c *Config) protocol() (clocksync.Protocol, error) {
	switch c.Sync {
	case Perfect, None, "":
		return nil, nil
	}
	return nil, fmt.Errorf("no protocol is called %q", c.Sync)
}
