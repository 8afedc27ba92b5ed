package ports

import (
	"errors"
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
				Rate: 8 * units.Gbps, Delay: delay})
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

// A transit has all links of a path. Packets that meet have as many links behind them as the
// distances of their hosts.
func TestTransits(t *testing.T) {
	const mtu = 972 // 990 bytes on the wire
	size := units.Bytes(mtu) + wire.Overhead - 28
	all, _, err := TransitsOf(chain(3), mtu)
	if err != nil {
		t.Fatal(err)
	}
	each := units.Microsecond + units.Time(size)*units.Nanosecond // 8 Gb/s
	for to := range 3 {
		for from := range 3 {
			links := max(to-from, from-to) + 2
			if to == from {
				links = 0
			}
			if got := all.To[to][from].Delay(size); got != units.Time(links)*each {
				t.Errorf("from %d to %d: %v, want %d links of %v", from, to, got, links, each)
			}
		}
	}
	if all.Apart != each { // at the port to the middle host nothing differs, at those to the others one link
		t.Errorf("apart %v, want %v", all.Apart, each)
	}
}

// Equal paths must take equal times, at the start and after each change.
func TestTransitsOfUnequalPaths(t *testing.T) {
	if _, _, err := TransitsOf(chain(2, [3]int{0, 1, 1}), 1000); err != nil {
		t.Error(err)
	}
	if _, port, err := TransitsOf(chain(2, [3]int{0, 1, 2}), 1000); !errors.Is(err, errUnequal) || port < 4 {
		t.Errorf("port %d: %v", port, err)
	}
	cfg := chain(2, [3]int{0, 1, 1})
	slow := LinkOf(&cfg.Ports[4])
	longer := slow
	longer.Delay *= 2
	detour := chain(2, [3]int{0, 1, 1}).Switches
	detour[0].Groups[1] = detour[0].Groups[1][:1]
	lossy := slow
	lossy.Loss = 1
	for what, c := range map[string]struct {
		change fabric.Change
		ok     bool
	}{
		"delay": {fabric.Change{Ports: []int{4}, Link: &longer}, false}, "loss": {fabric.Change{Ports: []int{4}, Link: &lossy}, true},
		"routes": {fabric.Change{Tables: detour}, true},
	} {
		if _, err := checkTransits(cfg, []fabric.Change{c.change}, 1000); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}
