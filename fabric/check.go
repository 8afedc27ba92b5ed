package fabric

import (
	"errors"
	"fmt"

	"weft/units"
)

// The checks of a Config. Labs are checked where they are read, with positions; these find mistakes
// of the code that makes a Config, and make every later index and division safe.

// check returns an error that lists everything that is wrong with c, or nil.
func (c *Config) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Hosts < 0 {
		return fmt.Errorf("%d hosts", c.Hosts)
	}
	nics := make([]int, c.Hosts)
	reserved := make([]units.Bytes, len(c.Switches)) // reserves and headrooms, by switch
	for i := range c.Ports {
		p := &c.Ports[i]
		if err := c.checkPort(p); err != nil {
			bad("port %d (node %d to node %d): %w", i, p.From, p.To, err)
			continue
		}
		if c.isHost(p.From) {
			nics[p.From]++
		}
		for _, f := range p.PFC {
			if f.On {
				reserved[int(p.To)-c.Hosts] += f.Reserve + f.Headroom
			}
		}
	}
	for h, n := range nics {
		if n != 1 {
			bad("host %d has %d NICs, not 1", h, n)
		}
	}
	for s := range c.Switches {
		sw := &c.Switches[s]
		if err := c.checkSwitch(sw, reserved[s]); err != nil {
			bad("switch %d %s: %w", s, sw.Name, err)
		}
		if err := checkTables(sw, c.Hosts, c.owner(s)); err != nil {
			bad("switch %d %s: %w", s, sw.Name, err)
		}
	}
	if err := c.checkCCM(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isHost reports whether a node is a host: those have the numbers below Hosts, switches follow.
func (c *Config) isHost(n NodeID) bool { return int(n) < c.Hosts }

// accounting returns for each switch whether it accounts for its memory: because its ports share
// one, or because PFC is on for a port that leads to it.
func (c *Config) accounting() []bool {
	accounted := make([]bool, len(c.Switches))
	for s := range c.Switches {
		accounted[s] = c.Switches[s].Buffer.Total > 0
	}
	for i := range c.Ports {
		for _, f := range c.Ports[i].PFC {
			if f.On {
				accounted[int(c.Ports[i].To)-c.Hosts] = true
			}
		}
	}
	return accounted
}

// checkPort returns the first thing wrong with a port. A switch port needs a buffer, its own or the
// shared one. A host port has no buffer: the fabric pulls packets from the host.
func (c *Config) checkPort(p *PortConfig) error {
	nodes := NodeID(c.Hosts + len(c.Switches))
	switch e := p.ECN; {
	case p.From < 0 || p.From >= nodes || p.To < 0 || p.To >= nodes || p.From == p.To:
		return fmt.Errorf("does not join two of %d nodes", nodes)
	case p.Buffer < 0 || p.Buffer == 0 && !c.isHost(p.From) && c.Switches[int(p.From)-c.Hosts].Buffer.Total == 0:
		return fmt.Errorf("buffer of %d bytes", p.Buffer)
	case e.On && (e.Kmin < 0 || e.Kmax < e.Kmin || !(e.Pmax >= 0 && e.Pmax <= 1)):
		return fmt.Errorf("ECN with Kmin %d, Kmax %d, Pmax %g", e.Kmin, e.Kmax, e.Pmax)
	}
	if err := p.Link.Check(); err != nil {
		return err
	}
	if err := c.checkTrim(p); err != nil {
		return err
	}
	for class, f := range p.PFC {
		if err := c.checkPFC(p, f); err != nil {
			return fmt.Errorf("PFC of class %d: %w", class, err)
		}
	}
	if p.PFC != ([Classes]PFCConfig{}) && p.Disturbs() {
		return errors.New("PFC on a link that delivers packets late or twice: headroom does not allow for that")
	}
	return nil
}

// checkTrim returns an error unless a port can trim: it needs a buffer of its own, since the room
// of control packets is twice that.
func (c *Config) checkTrim(p *PortConfig) error {
	switch t := p.Trim; {
	case t == TrimConfig{}:
		return nil
	case !t.On:
		return errors.New("trimming has settings, but is not on")
	case c.isHost(p.From):
		return nil // it has no limit
	case t.Size < 0 || t.Size > p.Buffer:
		return fmt.Errorf("trimmed packets of %d bytes, with a buffer of %d bytes", t.Size, p.Buffer)
	case c.accounting()[int(p.From)-c.Hosts]:
		return errors.New("trimming in a switch that accounts for its memory; expected a buffer per port")
	}
	return nil
}

// checkPFC returns an error unless the settings of a class are off, or thresholds of one kind. They
// belong to the switch at the far end, which accounts for what arrives by the port and pauses it.
func (c *Config) checkPFC(p *PortConfig, f PFCConfig) error {
	switch {
	case f == PFCConfig{}:
		return nil
	case !f.On:
		return errors.New("has settings, but is not on")
	case c.isHost(p.To):
		return fmt.Errorf("node %d is a host, and hosts do not pause ports", p.To)
	case f.Reserve < 0 || f.Headroom < 0 || f.Response < 0:
		return fmt.Errorf("reserve of %d bytes, headroom of %d bytes, response time of %d ps; expected at least 0",
			f.Reserve, f.Headroom, f.Response)
	case f.Alpha == 0 && (f.Xoff <= 0 || f.Xon < 0 || f.Xon > f.Xoff || f.Offset != 0):
		return fmt.Errorf("static threshold xoff %d, xon %d, offset %d", f.Xoff, f.Xon, f.Offset)
	case f.Alpha != 0 && (!(f.Alpha > 0) || f.Offset < 0 || f.Xoff != 0 || f.Xon != 0):
		return fmt.Errorf("dynamic threshold alpha %g, offset %d, xoff %d, xon %d", f.Alpha, f.Offset, f.Xoff, f.Xon)
	case f.Alpha != 0 && c.Switches[int(p.To)-c.Hosts].Buffer.Total == 0:
		return fmt.Errorf("dynamic threshold alpha %g, but the switch's buffer has no total", f.Alpha)
	}
	return nil
}

// checkSwitch returns an error unless the memory of a switch is valid. reserved is the bytes of it
// that are reserved for ports.
func (c *Config) checkSwitch(sw *SwitchConfig, reserved units.Bytes) error {
	b := sw.Buffer
	switch {
	case sw.Balance != ECMP && sw.Balance != Spray && sw.Balance != Adaptive && sw.Balance != CCM:
		return fmt.Errorf("balance %q", sw.Balance)
	case b.Total < 0 || !(b.Alpha >= 0) || b.Alpha > 0 && b.Total == 0:
		return fmt.Errorf("buffer of %d bytes with alpha %g", b.Total, b.Alpha)
	case b.Total > 0 && reserved >= b.Total:
		return fmt.Errorf("reserves and headrooms of %d bytes leave nothing of a buffer of %d bytes", reserved, b.Total)
	}
	return nil
}

// owner returns a function that reports whether a port starts at switch s.
func (c *Config) owner(s int) func(port int32) bool {
	return func(p int32) bool {
		return p >= 0 && int(p) < len(c.Ports) && c.Ports[p].From == NodeID(c.Hosts+s)
	}
}

// checkTables returns an error unless the groups and routes of a switch are valid: each group has
// ports of this switch, and each route leads to a group; -1 is no route.
func checkTables(sw *SwitchConfig, hosts int, owns func(port int32) bool) error {
	if len(sw.Route) != hosts && sw.Balance != CCM {
		return fmt.Errorf("routes to %d hosts of %d", len(sw.Route), hosts)
	}
	if sw.Aside != nil && len(sw.Aside) < hosts {
		return fmt.Errorf("detours to %d hosts of %d", len(sw.Aside), hosts)
	}
	for d, g := range sw.Aside {
		if g < -1 || int(g) >= len(sw.Groups) {
			return fmt.Errorf("detours to host %d by group %d of %d", d, g, len(sw.Groups))
		}
	}
	for g, ports := range sw.Groups {
		if len(ports) == 0 {
			return fmt.Errorf("group %d is empty", g)
		}
		for _, p := range ports {
			if !owns(p) {
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
