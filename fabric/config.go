package fabric

import (
	"errors"
	"fmt"

	"weft/units"
)

// NodeID numbers hosts and switches together: host h is h, switch s is Config.Hosts + s.
type NodeID int32

// Config describes a network. It is plain data that can be written as JSON and read back.
type Config struct {
	Seed     uint64         `json:"seed"` // of the random draws of ECN marking
	Hosts    int            `json:"hosts"`
	Ports    []PortConfig   `json:"ports"`
	Switches []SwitchConfig `json:"switches"`
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
	Buffer units.Bytes `json:"buffer,omitempty"`
	ECN    ECNConfig   `json:"ecn"`
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

// SwitchConfig is how a switch chooses output ports.
type SwitchConfig struct {
	Name   string    `json:"name,omitempty"`
	Seed   uint64    `json:"seed"`   // of the ECMP hash; switches of equal seed make equal choices
	Groups [][]int32 `json:"groups"` // sets of equally good output ports, by their index in Config.Ports
	Route  []int32   `json:"route"`  // for each destination host an index into Groups, or -1: unreachable
}

// check returns what is wrong with c, all of it.
func (c *Config) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Hosts < 0 {
		return fmt.Errorf("%d hosts", c.Hosts)
	}
	nics := make([]int, c.Hosts)
	for i := range c.Ports {
		p := &c.Ports[i]
		if err := c.checkPort(p); err != nil {
			bad("port %d (node %d to node %d): %w", i, p.From, p.To, err)
			continue
		}
		if c.isHost(p.From) {
			nics[p.From]++
		}
	}
	for h, n := range nics {
		if n != 1 {
			bad("host %d has %d NICs, not 1", h, n)
		}
	}
	for s := range c.Switches {
		if err := c.checkSwitch(s); err != nil {
			bad("switch %d %s: %w", s, c.Switches[s].Name, err)
		}
	}
	return errors.Join(errs...)
}

func (c *Config) isHost(n NodeID) bool { return int(n) < c.Hosts }

func (c *Config) checkPort(p *PortConfig) error {
	nodes := NodeID(c.Hosts + len(c.Switches))
	switch e := p.ECN; {
	case p.From < 0 || p.From >= nodes || p.To < 0 || p.To >= nodes || p.From == p.To:
		return fmt.Errorf("does not join two of %d nodes", nodes)
	case p.Rate <= 0:
		return fmt.Errorf("rate of %d b/s", p.Rate)
	case p.Delay < 0:
		return fmt.Errorf("delay of %d ps", p.Delay)
	case p.Buffer <= 0 && !c.isHost(p.From):
		return fmt.Errorf("buffer of %d bytes", p.Buffer)
	case e.On && (e.Kmin < 0 || e.Kmax < e.Kmin || !(e.Pmax >= 0 && e.Pmax <= 1)):
		return fmt.Errorf("ECN with Kmin %d, Kmax %d, Pmax %g", e.Kmin, e.Kmax, e.Pmax)
	}
	return nil
}

func (c *Config) checkSwitch(s int) error {
	sw := &c.Switches[s]
	if len(sw.Route) != c.Hosts {
		return fmt.Errorf("routes to %d hosts of %d", len(sw.Route), c.Hosts)
	}
	for g, ports := range sw.Groups {
		if len(ports) == 0 {
			return fmt.Errorf("group %d is empty", g)
		}
		for _, p := range ports {
			if p < 0 || int(p) >= len(c.Ports) || c.Ports[p].From != NodeID(c.Hosts+s) {
				return fmt.Errorf("group %d: port %d is not one of its own", g, p)
			}
		}
	}
	for h, g := range sw.Route {
		if g < -1 || int(g) >= len(sw.Groups) {
			return fmt.Errorf("route to host %d is group %d of %d", h, g, len(sw.Groups))
		}
	}
	return nil
}
