package fabric

import (
	"maps"

	"weft/internal/splitmix"
	"weft/units"
)

// CCM over packet spraying (CCMConfig.Spray). The draft says that its scheme applies to spraying
// too (section 4), and no more. Hosts, incast and marks are as they are without it. A switch sprays
// over those ports that section 6.3.5 has it choose among, and a notification of type 3 keeps a
// flow off all ports that lead to the switch that sent it. The rest is our own choice (ADR 235).

// avoidance is until when flows are kept off ports.
type avoidance map[avoided]units.Time

type avoided struct {
	flow uint64 // see flowKey
	port int32
}

// spray is choose for a packet that is not CC traffic.
func (c *coordination) spray(
	n *Network, now units.Time, s int, from int32, w choices, f *flowEntry, fresh bool, e *Packet,
) int32 {
	k := &c.switches[s]
	k.open = k.open[:0]
	open, light := k.openPorts(n, now, w.ports, f.key, e.Class)
	if light == 0 && len(w.aside) > 0 {
		if detours, some := k.openPorts(n, now, w.aside, f.key, e.Class); some > 0 {
			open, light = detours, some
		}
	}
	none := len(open) == 0
	if none {
		open = w.ports
	}
	f.port = open[choose(uint32(splitmix.Step(&n.balancing.switches[s].random)), 0, int32(len(open)))]
	if light > 1 {
		e.Tag.AR = uint16(s + 1)
	}
	if fresh {
		c.reportTook(n, now, s, f.port, light, e)
	}
	if none || light == 0 && n.ports[f.port].depth(n, now, e.Class) > c.congestion[f.port] {
		c.noLightPath(n, now, s, from, f, e)
	} else {
		f.stuck = units.Never
	}
	return f.port
}

// openPorts returns the light ports that a flow is not kept off, and their number. If there are
// none, it returns all ports that the flow is not kept off. They are the end of k.open.
func (k *ccmSwitch) openPorts(
	n *Network, now units.Time, ports []int32, flow uint64, class uint8,
) (open []int32, light int) {
	first := len(k.open)
	for _, port := range ports {
		if len(k.avoid) > 0 && now < k.avoid[avoided{flow, port}] {
			continue
		}
		k.open = append(k.open, port)
		open = k.open[first:]
		if n.balancing.light(n, now, port, class) {
			last := len(open) - 1
			open[light], open[last] = open[last], open[light]
			light++
		}
	}
	if light > 0 {
		open = open[:light]
	}
	return open, light
}

// keepOff keeps a flow off the ports that lead to the switch of a notification, for a round trip.
func (c *coordination) keepOff(n *Network, now units.Time, s int, flow uint64, note Note) {
	avoid := c.switches[s].avoid
	if len(avoid) >= maxFlows {
		maps.DeleteFunc(avoid, func(_ avoided, until units.Time) bool { return until <= now })
	}
	g := n.routing.group(s, HostID(note.Switch))
	heard := Step{At: now, Switch: n.switchID(s), What: HeardPath, Src: note.Src, Dst: note.Dst}
	for _, port := range n.routing.members[g.first : g.first+g.size()] {
		if port != noPort {
			avoid[avoided{flow, port}] = now + c.RTT
			heard.Port = port
			n.Observers.step(heard)
		}
	}
}
