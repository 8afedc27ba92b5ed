package fabric

import (
	"slices"

	"weft/internal/splitmix"
	"weft/units"
)

// Balancing: switches that choose an output port for each packet when it arrives, instead of one
// for each flow (ECMP).
//
// Only data (class 1) is spread. Acknowledgements and notifications take the port of their flow's
// hash: overtaking each other would gain nothing.

// Balance is how a switch chooses among equally good ports.
type Balance string

// Values of Balance. CCM is in ccm.go.
const (
	ECMP Balance = "" // by the hash of the flow: all its packets take the same port

	// Spray takes a port at random for each packet.
	Spray Balance = "spray"

	// Adaptive keeps a flow on its port while that port is light (PortConfig.Light), and otherwise
	// moves the flow to the light port with the shortest queue. If no port is light, the flow moves
	// to the shortest queue of all. A switch that has not seen a flow for FlowExpiry starts with
	// the port of its hash. Draft-lyu-rtgwg-coordinated-cm, section 4: avoid path switching that is
	// not necessary.
	Adaptive Balance = "adaptive"
)

// PerPacket reports whether switches choose a port for each packet.
func (b Balance) PerPacket() bool { return b != ECMP }

// Random reports whether switches choose a port at random.
func (b Balance) Random() bool { return b == Spray }

// ByLight reports whether switches use PortConfig.Light.
func (b Balance) ByLight() bool { return b == Adaptive }

// Coordinated reports whether switches tag and notify: see CCM.
func (b Balance) Coordinated() bool { return b == CCM }

// FlowExpiry is how long a switch remembers a flow without packets. The value is our own choice:
// the draft has none.
const FlowExpiry = 10 * units.Millisecond

// decide returns the port for e, which has arrived by port from at switch s. The switch balances.
func (b *balancing) decide(n *Network, now units.Time, s int, from int32, e *Packet) int32 {
	k := n.routing.group(s, e.Dst)
	ports := n.routing.members[k.first : k.first+k.size()]
	usual := choose(e.flow, n.routing.seeds[s], int32(len(ports)))
	w := &b.switches[s]
	var aside []int32
	if b.asides != nil && e.Class != 0 {
		aside = b.asides.of(n, s, from, e.Dst)
	}
	switch {
	case e.Class == 0 || ports[0] == noPort:
		return ports[usual]
	case w.kind == CCM && e.Tag.On:
		return n.ccm.choose(n, now, s, from, choices{ports, aside, usual}, e)
	case w.kind == CCM || len(ports)+len(aside) == 1:
		return ports[usual]
	case w.kind == Spray:
		return ports[choose(uint32(splitmix.Step(&w.random)), 0, int32(len(ports)))]
	}
	f := w.flows.find(now, flowKey(e))
	if f.port == noPort {
		f.port = ports[usual]
	} else if !slices.Contains(ports, f.port) && !slices.Contains(aside, f.port) {
		f.port = ports[usual] // the link of that port is down
		n.total.PathSwitches++
	}
	if b.light(n, now, f.port, e.Class) {
		return f.port
	}
	best := b.shortest(n, now, ports, usual, e.Class)
	if len(aside) > 0 && !b.light(n, now, best, e.Class) {
		if other := b.shortest(n, now, aside, usual%int32(len(aside)), e.Class); b.light(n, now, other, e.Class) {
			best = other
		}
	}
	if best != f.port {
		f.port = best
		n.total.PathSwitches++
	}
	return f.port
}

// choices are the ports by which a packet may leave a switch.
type choices struct {
	ports []int32 // equally good
	aside []int32 // detours, see SwitchConfig.Aside
	usual int32   // index in ports, by the flow's hash
}

// balancing chooses ports for each packet, in the switches that balance.
type balancing struct {
	switches  []balancer    // by switch
	threshold []units.Bytes // by port: PortConfig.Light
	asides    *asides       `state:"-"` // nil: no switch has detours
}

// asides is the detours of switches: SwitchConfig.Aside and PortConfig.Aside.
type asides struct {
	rows     [][]int32   // by switch: SwitchConfig.Aside
	groups   [][][]int32 // by switch: SwitchConfig.Groups
	noDetour []bool      // by port: PortConfig.Aside
}

func newAsides(cfg *Config) *asides {
	a := &asides{noDetour: make([]bool, len(cfg.Ports))}
	any := false
	for s := range cfg.Switches {
		a.rows = append(a.rows, cfg.Switches[s].Aside)
		a.groups = append(a.groups, cfg.Switches[s].Groups)
		any = any || cfg.Switches[s].Aside != nil
	}
	for i := range cfg.Ports {
		a.noDetour[i] = cfg.Ports[i].Aside
	}
	if !any {
		return nil
	}
	return a
}

// of returns the ports by which a packet that arrived by port from may take a detour to dst. It is
// empty if there is none or if one of them is down.
func (a *asides) of(n *Network, s int, from int32, dst HostID) []int32 {
	if a.rows[s] == nil || int(dst) >= len(a.rows[s]) || from >= 0 && a.noDetour[from] {
		return nil
	}
	g := a.rows[s][dst]
	if g < 0 {
		return nil
	}
	for _, p := range a.groups[s][g] {
		if !n.Links().Up(int(p)) {
			return nil // routes are computed again after a failure, detours are not
		}
	}
	return a.groups[s][g]
}

// shortest returns the port with the shortest queue of a class. Ties go to the first from
// ports[first] on.
func (b *balancing) shortest(n *Network, now units.Time, ports []int32, first int32, class uint8) int32 {
	_, best := b.lightest(n, now, ports, first, noPort, class)
	return best
}

// lightest returns the number of light ports other than away, and the port with the shortest queue
// among the others; away if there is no other.
func (b *balancing) lightest(
	n *Network, now units.Time, ports []int32, first, away int32, class uint8,
) (light int, best int32) {
	best, least := away, units.Bytes(1<<62)
	for i := range ports {
		port := ports[(int(first)+i)%len(ports)]
		if port == away {
			continue
		}
		q := n.ports[port].depth(n, now, class)
		if q <= b.threshold[port] {
			light++
		}
		if q < least {
			best, least = port, q
		}
	}
	return light, best
}

// depth returns the bytes of a class that wait in the port. A port whose class is paused counts as
// longer than any other.
func (o *port) depth(n *Network, now units.Time, class uint8) units.Bytes {
	if o.paused(class) {
		return 1 << 61
	}
	return o.queue(n, now, class)
}

// queue returns the bytes of a class that wait in the port, paused or not.
func (o *port) queue(n *Network, now units.Time, class uint8) units.Bytes {
	if o.waiting > 0 && !o.is(accounted) {
		o.advance(n, now)
	}
	return o.classes[class].bytes
}

// light reports whether a port is light: good for one more packet.
func (b *balancing) light(n *Network, now units.Time, port int32, class uint8) bool {
	return n.ports[port].depth(n, now, class) <= b.threshold[port]
}

// balancer is the state of a switch that balances.
type balancer struct {
	kind   Balance
	random uint64 // state of the draws of Spray
	flows  flowTable
}

// flowKey identifies a flow by the bits that ECMP hashes and its destination.
func flowKey(e *Packet) uint64 { return uint64(e.flow)<<32 | uint64(uint32(e.Dst)) }

// flowEntry is a switch's state of a flow.
type flowEntry struct {
	key   uint64
	seen  units.Time // when its last packet arrived
	port  int32      // its port, or noPort if it has none yet
	used  bool       // the entry is occupied
	away  int32      // CCM: the port that the flow avoids, or noPort
	until units.Time // CCM: when it stops avoiding that port
	stuck units.Time // CCM: since when no path is light here or upstream, or units.Never
	told  units.Time // CCM: when its source may be notified of that again
	again units.Time // CCMConfig.Spray: when another path may be asked for again
}

// noFlow returns an entry that is not occupied.
func noFlow() flowEntry {
	return flowEntry{port: noPort, away: noPort,
		seen: units.LongAgo, until: units.LongAgo, stuck: units.Never, told: units.LongAgo, again: units.LongAgo}
}

// flowTable is a bounded table of flows, in sets of eight. A new flow replaces the one of its set
// that was seen longest ago. While that one has not expired, the table doubles instead, up to
// maxFlows.
type flowTable struct {
	entries []flowEntry
	evicted int64 // flows that were replaced before they expired
}

// Sizes of a flowTable. An entry has 64 bytes, so maxFlows entries have 1 MiB.
const (
	maxFlows = 1 << 14
	minFlows = 64
	slots    = 8
)

// find returns the entry of a flow, and makes one if there is none. An expired flow has no port.
func (t *flowTable) find(now units.Time, key uint64) *flowEntry {
	if t.entries == nil {
		t.entries = slices.Repeat([]flowEntry{noFlow()}, minFlows)
	}
	for {
		set := t.set(key)
		oldest := &set[0]
		for i := range set {
			f := &set[i]
			switch {
			case f.used && f.key == key:
				if now-f.seen > FlowExpiry {
					f.port, f.away, f.stuck, f.told, f.again = noPort, noPort, units.Never, units.LongAgo, units.LongAgo
				}
				f.seen = now
				return f
			case !f.used || oldest.used && f.seen < oldest.seen:
				oldest = f
			}
		}
		if oldest.used && now-oldest.seen <= FlowExpiry {
			if len(t.entries) < maxFlows {
				t.grow()
				continue
			}
			t.evicted++
		}
		*oldest = noFlow()
		oldest.key, oldest.seen, oldest.used = key, now, true
		return oldest
	}
}

// know returns the entry of a flow, or nil if it is unknown or has expired.
func (t *flowTable) know(now units.Time, key uint64) *flowEntry {
	if t.entries == nil {
		return nil
	}
	set := t.set(key)
	for i := range set {
		if f := &set[i]; f.used && f.key == key && now-f.seen <= FlowExpiry {
			return f
		}
	}
	return nil
}

func (t *flowTable) set(key uint64) []flowEntry {
	sets := uint64(len(t.entries) / slots)
	first := splitmix.Mix(key) % sets * slots
	return t.entries[first : first+slots]
}

// grow doubles the table. Entries that no longer fit into their set are forgotten.
func (t *flowTable) grow() {
	old := t.entries
	t.entries = slices.Repeat([]flowEntry{noFlow()}, 2*len(old))
	for _, f := range old {
		set := t.set(f.key)
		for i := range set {
			if f.used && !set[i].used {
				set[i] = f
				break
			}
		}
	}
}

// newBalancing returns nil if no switch balances.
func newBalancing(cfg *Config) *balancing {
	any := false
	b := &balancing{
		switches:  make([]balancer, len(cfg.Switches)),
		threshold: make([]units.Bytes, len(cfg.Ports)),
		asides:    newAsides(cfg),
	}
	for s := range cfg.Switches {
		random := splitmix.Mix(cfg.Seed ^ splitmix.Mix(cfg.Switches[s].Seed+1))
		b.switches[s] = balancer{kind: cfg.Switches[s].Balance, random: random}
		any = any || cfg.Switches[s].Balance.PerPacket()
	}
	if !any {
		return nil
	}
	for i := range cfg.Ports {
		b.threshold[i] = cfg.Ports[i].Light
	}
	return b
}
