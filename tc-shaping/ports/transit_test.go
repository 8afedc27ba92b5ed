package ports

import (
	"testing"

	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// chain returns a network of switches in a row, with a host at each, and links of 1 us and 8 Gb/s.
// extra are further links between switches, with their delays.
func chain(switches int, extra ...[3]int) *fabric.Config {
	c := &fabric.Config{Hosts: switches}
	link := func(a, b int, delay units.Time) {
		for _, e := range [][2]int{{a, b}, {b, a}} {
			c.Ports = append(c.Ports, fabric.PortConfig{From: fabric.NodeID(e[0]), To: fabric.NodeID(e[1]),
				Link: fabric.Link{Rate: 8 * units.Gbps, Delay: delay}})
		}
	}
	for s := range switches {
		link(s, switches+s, units.Microsecond)
	}
	for s := range switches - 1 {
		link(switches+s, switches+s+1, units.Microsecond)
	}
	for _, e := range extra {
		link(switches+e[0], switches+e[1], units.Time(e[2])*units.Microsecond)
	}
	for s := range switches {
		sw := fabric.SwitchConfig{Route: make([]int32, switches)}
		for h := range switches {
			var group []int32
			for i := range c.Ports {
				p := &c.Ports[i]
				next := int(p.To) - switches
				if int(p.From) != switches+s {
					continue
				}
				if s == h && int(p.To) == h || s < next && next <= h || h <= next && next < s {
					group = append(group, int32(i))
				}
			}
			sw.Route[h], sw.Groups = int32(len(sw.Groups)), append(sw.Groups, group)
		}
		c.Switches = append(c.Switches, sw)
	}
	return c
}

// The longest transit has all links of a path. Packets that meet have as many links behind them as
// the distances of their hosts.
func TestTransit(t *testing.T) {
	const mtu = 972 // 990 bytes on the wire
	size := units.Bytes(mtu) + wire.Overhead - 28
	each := units.Microsecond + units.Time(size)*units.Nanosecond // 8 Gb/s
	// at the port to the middle host nothing differs, at those to the others one link
	if got := TransitOf(chain(3), nil, mtu); got.Longest != 4*each || got.Apart != each {
		t.Errorf("%+v, want %v and %v", got, 4*each, each)
	}
	// equal paths of unequal delays
	if got := TransitOf(chain(2, [3]int{0, 1, 2}), nil, mtu); got.Longest != 3*(each+units.Microsecond) || got.Apart != units.Microsecond {
		t.Errorf("%+v", got)
	}
	cfg := chain(3)
	longer := cfg.Ports[4].Link
	longer.Delay *= 3
	if got := TransitOf(cfg, []fabric.Change{{Ports: []int{4}, Link: &longer}}, mtu); got.Longest != 4*(each+2*units.Microsecond) {
		t.Errorf("with a slower link: %+v", got)
	}
	detour := cfg.Switches
	if got := TransitOf(cfg, []fabric.Change{{Tables: detour}}, mtu); got.Longest != 4*each {
		t.Errorf("with other routes: %+v", got)
	}
}
