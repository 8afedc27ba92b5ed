package fabric

import (
	"errors"
	"fmt"
	"slices"

	"weft/units"
)

// Links changes the links of a network during a run: for a fault, or for a user. now is the instant
// of a change. It must not lie before the last event that was fired nor after the next one. Events
// that are due at that same instant and have not fired yet come after the change.
type Links struct{ net *Network }

// Links returns the links of the network, those of all partitions.
func (n *Network) Links() Links { return Links{n} }

// SetUp takes ports down or up; a link goes down when both of its directions do. Packets on the
// link of a port that goes down, and those that wait for it, are cut off and counted, and pauses of
// the port end.
//
// A switch takes its own ports out of and into its groups at once; what it knows of other switches
// does not change (see Reroute). A packet that finds no port left at a switch is cut off as well,
// and counted at the port by which it arrived. A NIC that is down is not free, and packets injected
// into it are cut off.
func (l Links) SetUp(now units.Time, up bool, ports ...int) {
	n := l.net
	var changed []*port
	for _, i := range ports {
		if t := &n.cold[i]; t.down == up {
			o := &n.ports[i]
			o.catchUp(n.of(o.index), now)
			if t.down = !up; t.down {
				t.cutBy = append(t.cutBy, 0)
				*n.downs = append(*n.downs, int32(i))
			} else {
				*n.downs = slices.DeleteFunc(*n.downs, func(p int32) bool { return p == int32(i) })
			}
			changed = append(changed, o)
		}
	}
	l.reconsider()
	for _, o := range changed {
		if up {
			o.goUp(n.of(o.index), now)
		} else {
			o.goDown(n.of(o.index), now)
		}
	}
}

// goDown cuts off the packets on the link of o and in its queues, and ends its pauses.
func (o *port) goDown(n *Network, now units.Time) {
	o.freeAt = now
	flight, far := o.inFlight(n)
	far.events.Clear(n.PortEntity(int(o.index)))
	later := n.exchange.later(n, o, flight)
	for !flight.empty() {
		n.cut(o.index, flight.pop())
	}
	if *flight = later; !later.empty() {
		far.events.Set(n.PortEntity(int(o.index)), later.first.at)
	}
	if o.farEnd != within {
		n.exchange.unpost(n, o)
	}
	if far.late != nil {
		far.late.cut(far, o.index)
	}
	if o.is(nic) {
		h := o.host(n)
		n.events.Clear(n.entities.of(nicFree, int(h)))
		n.NICs.busy[h] = isDown
	}
	if n.pfc != nil {
		n.events.Clear(n.entities.of(portFree, int(o.index)))
		n.events.Clear(n.entities.of(frameEnd, int(o.index)))
		n.pfc.frames[o.index].clear()
	}
	t := &n.cold[o.index]
	for c := range o.classes {
		if o.paused(uint8(c)) {
			t.paused[c] += now - t.since[c]
			n.Observers.paused(n, now, o, uint8(c), false)
		}
		k := &o.classes[c]
		for !k.empty() {
			e := k.pop()
			k.bytes -= e.Size
			o.waiting--
			if o.is(accounted) {
				n.pfc.release(n, now, e)
			}
			n.cut(o.index, e)
		}
	}
	o.held = 0
}

// goUp starts with the pauses that the switch at the far end has in force.
func (o *port) goUp(n *Network, now units.Time) {
	if o.is(nic) {
		n.NICs.busy[o.host(n)] &^= isDown
	}
	for class := range uint8(Classes) {
		if n.pfc != nil && n.pfc.account(o.index, class).paused {
			n.pfc.hold(n, now, o.index, class, true)
		}
	}
	if o.is(nic) {
		o.restart(n, now)
	}
}

// Set changes the properties of a port's link for packets that start from now on; those that are
// late already stay late. Packets do not overtake because of a shorter delay: the port sends
// nothing until a packet would arrive after those on the link. It returns an error if a property is
// outside its range, or if packets are to be late or duplicated in a network that was not built for
// it (Config.Disturbable).
func (l Links) Set(now units.Time, port int, to Link) error {
	n := l.net
	if err := to.Check(); err != nil {
		return fmt.Errorf("fabric: port %d: %w", port, err)
	}
	if to.Disturbs() && n.late == nil {
		return fmt.Errorf("fabric: port %d: links of this network deliver every packet once and in order; "+
			"set Config.Disturbable to change that", port)
	}
	o := &n.ports[port]
	n = n.of(o.index)
	o.catchUp(n, now)
	o.changeErrors(to)
	o.setLine(units.NewLine(to.Rate))
	o.delay = to.Delay
	arrival, ok := o.lastArrival(n)
	if !ok {
		return nil
	}
	o.freeAt = max(o.freeAt, arrival-to.Delay)
	if o.is(nic) && o.freeAt > now {
		h := o.host(n)
		n.NICs.busy[h] |= linkBusy
		n.events.Set(n.entities.of(nicFree, int(h)), o.freeAt)
	}
	o.armTransmitter(n)
	return nil
}

// SetQueue changes the room and the marking thresholds of a port, for packets that join or leave
// its queue from now on. Packets that wait stay. It does nothing to a NIC, or to a port of a switch
// that accounts for its memory.
func (l Links) SetQueue(now units.Time, port int, q Queue) {
	o := &l.net.ports[port]
	if o.is(nic | accounted) {
		return
	}
	o.catchUp(l.net.of(o.index), now)
	o.buffer, o.ecn.Kmin, o.ecn.Kmax = max(q.Buffer, o.queued()), q.Kmin, q.Kmax
}

// changeErrors changes the errors of the port's link. Draws go on where they were.
func (o *port) changeErrors(to Link) {
	old := o.errors
	if old == nil {
		o.setErrors(newLinkErrors(to, o.random))
		return
	}
	o.setErrors(newLinkErrors(to, old.random))
	if o.errors != nil && old.link.Disturbs() {
		o.errors.shuffle = old.shuffle
	}
}

// Reroute replaces the seeds, groups and routes of all switches, for packets that reach them from
// now on. Ports that are down stay out of the groups. If it returns an error, nothing has changed.
func (l Links) Reroute(switches []SwitchConfig) error {
	n := l.net
	if len(switches) != len(n.names) {
		return fmt.Errorf("fabric: tables of %d switches, the network has %d", len(switches), len(n.names))
	}
	var errs []error
	for s := range switches {
		owns := func(p int32) bool {
			return p >= 0 && int(p) < len(n.ports) && n.cold[p].from == NodeID(n.hosts()+s)
		}
		if err := checkTables(&switches[s], n.hosts(), owns); err != nil {
			errs = append(errs, fmt.Errorf("fabric: switch %d %s: %w", s, n.names[s], err))
		}
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	*n.routing = newRouting(n.hosts(), switches)
	l.reconsider()
	return nil
}

// reconsider updates the network after a change of ports or tables: it takes ports that are down
// out of the groups, and looks up the next step of the packets on links again.
func (l Links) reconsider() {
	n := l.net
	for s := range n.names {
		n.routing.exclude(s, func(port int32) bool { return n.cold[port].down })
	}
	for i := range n.ports {
		o := &n.ports[i]
		flight, _ := o.inFlight(n)
		for e := flight.first; e != nil; e = e.behind {
			if e.next != corrupted && e.next != disordered {
				e.next = n.routing.next(o.to, e)
			}
		}
	}
}

// Up reports whether a port is up.
func (l Links) Up(port int) bool { return !l.net.cold[port].down }

// State returns the current properties of a port's link.
func (l Links) State(port int) (is Link) {
	o := &l.net.ports[port]
	if o.errors != nil {
		is = o.errors.link
	}
	is.Rate, is.Delay = o.line.Rate(), o.delay
	return is
}
