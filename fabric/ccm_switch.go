package fabric

import (
	"slices"

	"weft/internal/splitmix"
	"weft/units"
)

// choose is balancing.decide for a switch with CCM (section 6.3): it returns the port for a tagged
// data packet.
func (c *coordination) choose(n *Network, now units.Time, s int, from int32, w choices, e *Packet) int32 {
	ports, usual := w.ports, w.usual
	t := &e.Tag
	c.checkTag(n, from, t)
	f := n.balancing.switches[s].flows.find(now, flowKey(e))
	t.mark = t.CC
	if n.isHost(n.ports[ports[0]].to) {
		// Congestion here is incast (section 6.3.1, lines 342-345 of the text), and the switch
		// performs congestion control on it (section 6.3.4, line 372): mark decides, when the
		// packet leaves, whether or not it carries the CC indicator yet. A source without the
		// indicator ignores the mark (section 6.4, lines 429-430), but the notification arrives
		// before the mark.
		t.mark = true
		c.lastHop(n, now, s, from, ports[0], e)
		return ports[0]
	}
	fresh := f.port == noPort
	if fresh || !slices.Contains(ports, f.port) && !slices.Contains(w.aside, f.port) {
		f.port, f.away = ports[usual], noPort
	}
	if t.CC {
		return f.port // another path does not help against incast
	}
	if c.Spray {
		return c.spray(n, now, s, from, w, f, fresh, e)
	}
	if now >= f.until {
		f.away = noPort
	}
	light, best := n.balancing.lightest(n, now, ports, usual, f.away, e.Class)
	if light == 0 && len(w.aside) > 0 {
		light, best = n.balancing.lightest(n, now, w.aside, usual%int32(len(w.aside)), f.away, e.Class)
	}
	if light > 1 {
		t.AR = uint16(s + 1)
	}
	if fresh {
		if light > 0 && !n.balancing.light(n, now, f.port, e.Class) {
			f.port = best
		}
		c.reportTook(n, now, s, f.port, light, e)
	}
	switch {
	case light > 0 && (f.port == f.away || !n.balancing.light(n, now, f.port, e.Class)):
		c.move(n, now, s, f, best, e)
	case light == 0 && n.ports[f.port].depth(n, now, e.Class) > c.congestion[f.port]:
		c.noLightPath(n, now, s, from, f, e)
		return f.port
	}
	f.stuck = units.Never // it has moved, stays on a light port, or stays on one that is not congested
	return f.port
}

// checkTag clears the AR indicator of a tag if it names nothing that can be asked. A host may write
// anything, but at the first switch only the host itself makes sense.
func (c *coordination) checkTag(n *Network, from int32, t *Tag) {
	if t.AR == ARNone || t.AR == ARSource || !n.ports[from].is(nic) && int(t.AR) <= len(n.balancing.switches) {
		return
	}
	t.AR = ARNone
	n.total.CCM.BadTags++
}

// move puts the flow f of e on another port.
func (c *coordination) move(n *Network, now units.Time, s int, f *flowEntry, port int32, e *Packet) {
	if port == f.port {
		return
	}
	f.port = port
	n.total.PathSwitches++
	n.Observers.step(Step{At: now, Switch: n.switchID(s), What: Moved, Src: e.Src, Dst: e.Dst, Port: port})
}

// reportTook reports the port of a flow that is new here.
func (c *coordination) reportTook(n *Network, now units.Time, s int, port int32, light int, e *Packet) {
	if n.Observers.follow == nil {
		return
	}
	what := Took
	if light < 2 {
		what = TookOnly
	}
	n.Observers.follow(Step{At: now, Switch: n.switchID(s), What: what, Src: e.Src, Dst: e.Dst, Port: port})
}

// noLightPath handles a packet for which no path is light here: it asks upstream for another path.
// The packet may be marked in two cases: nothing upstream can be asked and that has been so for a
// round trip; or, although something was asked, the queue has grown to where every packet is marked
// (Kmax), so no path upstream was any better.
func (c *coordination) noLightPath(n *Network, now units.Time, s int, from int32, f *flowEntry, e *Packet) {
	t := &e.Tag
	src := e.Src
	if t.AR != ARNone {
		f.stuck = units.Never
		if c.asks(n, now, f, e.Class) {
			to := NodeID(src)
			if t.AR != ARSource {
				to = n.switchID(int(t.AR) - 1)
			}
			c.notify(n, now, s, from, to, e, Note{Type: NeedsPath})
		}
		if n.ports[f.port].queue(n, now, e.Class) <= n.ports[f.port].ecn.Kmax {
			return
		}
	} else if f.stuck == units.Never {
		f.stuck = now
		return
	} else if now-f.stuck < c.RTT {
		return
	}
	t.mark = true
	n.total.CCM.LastResort++
	if c.Strict || now < f.told {
		return
	}
	f.told = now + c.Every
	c.notify(n, now, s, from, NodeID(src), e, Note{Type: NeedsCC, Last: true})
}

// asks reports whether a switch asks upstream about flow f. With Spray it does so once per round
// trip about each flow: one that leaves spreads over several ports, and comes back.
func (c *coordination) asks(n *Network, now units.Time, f *flowEntry, class uint8) bool {
	if !c.Spray {
		return c.overloaded(n, now, f.port, class)
	}
	if now < f.again {
		return false
	}
	f.again = now + c.RTT
	return true
}

// overload is a port's own requests for other paths.
type overload struct {
	seen  units.Time  // when the port was last congested
	again units.Time  // when it may ask again
	since units.Time  // when its queue was shortest since it may ask again, or units.Never
	least units.Bytes // that shortest queue
}

// overloaded reports whether a congested port asks about a flow. It asks about one flow per round
// trip: it is enough that one flow leaves, and if all left they would meet again. It asks again
// only if, a round trip later, its queue still grows by at least an eighth of what the link
// carries: a queue that stands, left by flows that have gone, is no worse for those that stay.
func (c *coordination) overloaded(n *Network, now units.Time, port int32, class uint8) bool {
	o, w := &n.ports[port], &c.overloads[port]
	fresh := w.again == 0 || now-w.seen > c.RTT
	w.seen = now
	if now < w.again {
		return false
	}
	q := n.ports[port].depth(n, now, class)
	if paused := o.paused(class); !fresh && !paused {
		if w.since == units.Never || q < w.least {
			w.least, w.since = q, now
		}
		if now-w.since < c.RTT/2 {
			return false
		}
		if 8*o.line.Rate().TransmitTime(q-w.least) < now-w.since {
			if now-w.since > c.RTT {
				w.least, w.since = q, now // a minimum of long ago does not count
			}
			return false
		}
	}
	w.again, w.since = now+c.RTT, units.Never
	return true
}

// lastHop handles a packet at the switch before its destination. If the port is congested, that is
// incast (section 6.3.1).
func (c *coordination) lastHop(n *Network, now units.Time, s int, from, port int32, e *Packet) {
	w := &c.switches[s]
	k, known := w.port[port]
	congested := n.ports[port].depth(n, now, e.Class) > c.congestion[port]
	if !known && !congested {
		return
	}
	if !known {
		k = len(w.ports)
		w.ports = append(w.ports, port)
		w.incast = append(w.incast, &incast{lightSince: units.Never, at: map[uint64]int{}})
		w.port[port] = k
		n.events.Set(n.entities.of(ccmTimer, s), now+c.RTT/2)
	}
	in, key := w.incast[k], flowKey(e)
	i, told := in.at[key]
	if told {
		in.flows[i].seen = now
	}
	if !congested || told && now < in.flows[i].told+c.Every {
		return
	}
	if !told {
		i = in.add(n, incastFlow{key: key, src: e.Src, dst: e.Dst, srcPort: e.SrcPort, seen: now})
	}
	in.flows[i].told = now
	c.notify(n, now, s, from, NodeID(in.flows[i].src), e, Note{Type: NeedsCC})
}

// add adds a flow and returns its index. In a full table it replaces the flow that was seen longest
// ago.
func (in *incast) add(n *Network, f incastFlow) int {
	i := len(in.flows)
	if i == maxIncast {
		n.total.CCM.Forgotten++
		i = oldest(in.flows)
		delete(in.at, in.flows[i].key)
		in.flows[i] = f
	} else {
		in.flows = append(in.flows, f)
		n.total.CCM.MostFlows = max(n.total.CCM.MostFlows, int64(len(in.flows)))
	}
	in.at[f.key] = i
	return i
}

// expire forgets flows without packets for FlowExpiry.
func (in *incast) expire(now units.Time) {
	before := len(in.flows)
	in.flows = slices.DeleteFunc(in.flows, func(f incastFlow) bool { return now-f.seen > FlowExpiry })
	if len(in.flows) == before {
		return
	}
	clear(in.at)
	for i := range in.flows {
		in.at[in.flows[i].key] = i
	}
}

// oldest returns the index of the flow that was seen longest ago.
func oldest(flows []incastFlow) int {
	least := 0
	for i := range flows {
		if flows[i].seen < flows[least].seen {
			least = i
		}
	}
	return least
}

// checkIncast looks after the flows that a switch has reported as incast. It runs twice per round
// trip while there are any.
func (c *coordination) checkIncast(n *Network, now units.Time, s int) {
	w := &c.switches[s]
	for k := 0; k < len(w.ports); {
		port, in := w.ports[k], w.incast[k]
		switch q := n.ports[port].depth(n, now, dataClass); {
		case q > n.balancing.threshold[port]:
			in.lightSince = units.Never
		case in.lightSince == units.Never:
			in.lightSince = now
		}
		over := in.lightSince != units.Never && now-in.lightSince >= c.RTT
		in.expire(now)
		for i := range in.flows {
			f := &in.flows[i]
			switch {
			case over:
				c.notifyFlow(n, now, s, f, Released)
			case now-f.told >= c.Refresh:
				f.told = now
				c.notifyFlow(n, now, s, f, NeedsCC)
			}
		}
		if over || len(in.flows) == 0 {
			w.forget(k)
			continue
		}
		k++
	}
	if len(w.ports) > 0 {
		n.events.Set(n.entities.of(ccmTimer, s), now+c.RTT/2)
	}
}

// forget removes a port that has no incast flows any more.
func (w *ccmSwitch) forget(k int) {
	delete(w.port, w.ports[k])
	w.ports, w.incast = slices.Delete(w.ports, k, k+1), slices.Delete(w.incast, k, k+1)
	for i := k; i < len(w.ports); i++ {
		w.port[w.ports[i]] = i
	}
}

// notifyFlow sends a notification about an incast flow to its source.
func (c *coordination) notifyFlow(n *Network, now units.Time, s int, f *incastFlow, what NoteType) {
	c.send(n, now, s, c.switches[s].inward, NodeID(f.src), Note{Type: what, Src: f.src, Dst: f.dst, SrcPort: f.srcPort})
}

// notify sends a notification about the flow of e.
func (c *coordination) notify(n *Network, now units.Time, s int, from int32, to NodeID, e *Packet, note Note) {
	note.Src, note.Dst, note.SrcPort = e.Src, e.Dst, e.SrcPort
	c.send(n, now, s, from, to, note)
}

// send sends a notification: a packet of class 0 that starts in the switch at the far end of port
// from.
func (c *coordination) send(n *Network, now units.Time, s int, from int32, to NodeID, note Note) {
	note.Switch, note.At = n.switchID(s), now
	n.total.CCM.Notes[note.Type]++
	what := StepKind(note.Type - 1)
	if note.Last {
		what = LastResort
	}
	n.Observers.step(Step{At: now, Switch: note.Switch, What: what, Src: note.Src, Dst: note.Dst, To: to})
	if c.Loss > 0 && draw(&c.switches[s].random) < c.Loss {
		n.total.CCM.Notes[0]++
		return
	}
	if c.outside != nil {
		c.outside(to, note)
		return
	}
	p := n.Get()
	p.Src, p.Dst, p.Size, p.Class = HostID(note.Switch), HostID(to), NoteSize, 0
	p.FlowHash = FlowHash(p.Src, p.Dst, note.SrcPort, uint16(note.Type))
	n.total.Injected++
	n.total.InjectedBytes += p.Size
	*n.pool.note(p.number) = note
	n.enter(p)
	p.next = n.routing.next(note.Switch, p)
	if p.next == balanced {
		p.next = join(n.balancing.decide(n, now, s, from, p))
	}
	if p.next.kind() != joins {
		n.cut(from, p)
		return
	}
	n.join(now, from, p)
}

// receive takes a notification that has reached its switch.
func (c *coordination) receive(n *Network, now units.Time, s int, e *Packet) {
	note := *n.pool.note(e.number)
	n.total.Delivered++
	n.total.DeliveredBytes += e.Size
	n.Put(e)
	c.hear(n, now, s, note)
}

// hear handles a notification: the flow avoids its port for a round trip. It returns the flow, or
// nil if the switch cannot use the notification.
func (c *coordination) hear(n *Network, now units.Time, s int, note Note) *flowEntry {
	hash := FlowHash(note.Src, note.Dst, note.SrcPort, c.dstPort)
	f := n.balancing.switches[s].flows.know(now, uint64(uint32(splitmix.Mix(hash)))<<32|uint64(uint32(note.Dst)))
	if note.Type != NeedsPath || f == nil || f.port == noPort {
		n.total.CCM.Ignored++
		return nil
	}
	if c.Spray {
		c.keepOff(n, now, s, f.key, note)
		return f
	}
	f.away, f.until = f.port, now+c.RTT
	n.Observers.step(Step{At: now, Switch: n.switchID(s), What: HeardPath, Src: note.Src, Dst: note.Dst, Port: f.port})
	return f
}

// NoteOf returns the notification that p is. ok is false if p is none: its sender is not a switch.
func (n *Network) NoteOf(p *Packet) (Note, bool) {
	if n.ccm == nil || int(p.Src) < n.hosts() || p.Port != 0 { // notifications have no UDP port of their own
		return Note{}, false
	}
	return *n.pool.note(p.number), true
}

// TagOf returns the coordination tag of p as the last switch left it.
func (n *Network) TagOf(p *Packet) Tag {
	if n.ccm == nil {
		return Tag{}
	}
	return p.Tag
}

func (n *Network) hosts() int { return len(n.NICs.of) }

func (n *Network) isHost(id NodeID) bool { return int(id) < n.hosts() }

// switchID and switchAt convert between the number of a switch and its NodeID.
func (n *Network) switchID(s int) NodeID    { return NodeID(n.hosts() + s) }
func (n *Network) switchAt(node NodeID) int { return int(node) - n.hosts() }

// coordination is the state of CCM in the switches of a network.
type coordination struct {
	CCMConfig
	switches   []ccmSwitch
	congestion []units.Bytes // by port: PortConfig.Congested
	overloads  []overload    // by port
	dstPort    uint16        // UDP destination port of the transport
	// what takes the notifications that switches send; nil: the network
	outside func(to NodeID, note Note)
}

// newCoordination returns nil for a network without CCM.
func newCoordination(cfg *Config) *coordination {
	if cfg.CCM == nil {
		return nil
	}
	c := &coordination{
		CCMConfig:  *cfg.CCM,
		switches:   make([]ccmSwitch, len(cfg.Switches)),
		congestion: make([]units.Bytes, len(cfg.Ports)),
		overloads:  make([]overload, len(cfg.Ports)),
		dstPort:    cfg.Port,
	}
	for s := range c.switches {
		random := splitmix.Mix(cfg.Seed ^ splitmix.Mix(cfg.Switches[s].Seed+2))
		c.switches[s] = ccmSwitch{random: random, inward: noPort, port: map[int32]int{}, avoid: avoidance{}}
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		c.congestion[i] = p.Congested
		if s := int(p.To) - cfg.Hosts; s >= 0 && c.switches[s].inward == noPort {
			c.switches[s].inward = int32(i)
		}
	}
	return c
}
