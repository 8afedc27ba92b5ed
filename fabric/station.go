package fabric

import (
	"fmt"

	"weft/units"
)

// Stations are programs that run on switches beside forwarding, such as the peer delay mechanism of
// PTP: machines that are given the time and packets. After every call but Pass, the network calls
// Transmit until it has nothing to send, and then Deadline. Switches count from 0, and so do the
// links of each (Config.SwitchLinks). In a network in partitions, calls for different switches are
// concurrent.
type Stations interface {
	// Receive handles a packet for this switch that arrived by one of its links. The network keeps
	// the packet.
	Receive(now units.Time, s, link int, p *Packet)
	// Pass inspects a packet that arrived by a link of switch s, is to be forwarded, and has the
	// UDP port of stations (Config.Stations). It may change bytes of the header. If it returns
	// false the packet ends here.
	Pass(now units.Time, s, link int, p *Packet) bool
	// Transmit fills in Size, Class, Port and Header of the packet that switch s sends now, and
	// returns the link. ok is false if there is none. The packet goes to the node at the other end,
	// queues as any packet does, and Packet.Queued says for how long.
	Transmit(now units.Time, s int, p *Packet) (link int, ok bool)
	// Deadline returns the instant at which switch s wants Advance, not before now. ok is false if
	// it waits only for packets.
	Deadline(s int) (units.Time, bool)
	// Advance handles the deadline of switch s.
	Advance(now units.Time, s int)
}

// SwitchLink is a link of a switch: the ports, by index in Config.Ports, by which it sends (Out)
// and receives (In).
type SwitchLink struct{ Out, In int }

// SwitchLinks returns the links of every switch, in the order of the ports by which they send. Of
// several links to the same neighbour, the first port out belongs to the first port in, and so on.
// A port without a counterpart in the other direction is not a link.
func (c *Config) SwitchLinks() [][]SwitchLink {
	type ends struct{ from, to NodeID }
	in := map[ends][]int{}
	for i := range c.Ports {
		p := &c.Ports[i]
		in[ends{p.From, p.To}] = append(in[ends{p.From, p.To}], i)
	}
	links := make([][]SwitchLink, len(c.Switches))
	for i := range c.Ports {
		p := &c.Ports[i]
		back := ends{p.To, p.From}
		if !c.isHost(p.From) && len(in[back]) > 0 {
			s := int(p.From) - c.Hosts
			links[s] = append(links[s], SwitchLink{Out: i, In: in[back][0]})
			in[back] = in[back][1:]
		}
	}
	return links
}

// SwitchDegrees returns the number of links of every switch.
func (c *Config) SwitchDegrees() []int {
	degrees := make([]int, len(c.Switches))
	for s, links := range c.SwitchLinks() {
		degrees[s] = len(links)
	}
	return degrees
}

// stations holds the programs on switches and the links that they see.
type stations struct {
	programs Stations // nil until AttachStations
	port     uint16   // see Config.Stations
	links    [][]SwitchLink
	link     []int32 // by port into a switch: the number of that link at the switch, or -1
}

func newStations(cfg *Config) *stations {
	if cfg.Stations == 0 {
		return nil
	}
	w := &stations{port: cfg.Stations, links: cfg.SwitchLinks(), link: make([]int32, len(cfg.Ports))}
	for i := range w.link {
		w.link[i] = -1
	}
	for _, links := range w.links {
		for k, l := range links {
			w.link[l.In] = int32(k)
		}
	}
	return w
}

// AttachStations starts programs on the switches of this partition and arms their first deadlines.
// It panics unless the network was built for stations (Config.Stations).
func (n *Network) AttachStations(now units.Time, programs Stations) {
	if n.stations == nil {
		panic("fabric: AttachStations on a network that was built without Config.Stations")
	}
	w := *n.stations // each partition has its own
	w.programs = programs
	n.stations = &w
	for s := range w.links {
		if n.exchange.owns(n.switchID(s)) {
			n.stations.serve(n, now, s)
		}
	}
}

// admit shows a packet that arrived by port from, and concerns stations, to the program of the
// switch there. It reports whether the switch forwards the packet; otherwise the packet ends there.
func (w *stations) admit(n *Network, now units.Time, from int32, e *Packet) bool {
	s, link := n.switchAt(n.ports[from].to), int(w.link[from])
	attached, own := w.programs != nil && link >= 0, e.flags&local != 0
	if !own && (!attached || w.programs.Pass(now, s, link, e)) {
		return true
	}
	if own && attached {
		w.programs.Receive(now, s, link, e)
	}
	n.reached(e)
	if own && attached {
		w.serve(n, now, s) // it may have an answer
	}
	return false
}

// reached counts e as delivered to a switch and returns its packet to the pool.
func (l *ledger) reached(e *Packet) {
	l.total.Delivered++
	l.total.DeliveredBytes += e.Size
	l.Put(e)
}

// serve sends all packets that the station of a switch has to send, and arms its deadline.
func (w *stations) serve(n *Network, now units.Time, s int) {
	for {
		p := n.Get()
		k, ok := w.programs.Transmit(now, s, p)
		if !ok {
			n.Put(p)
			break
		}
		w.send(n, now, s, w.links[s][k], p)
	}
	if at, ok := w.programs.Deadline(s); ok {
		if at < now {
			panic(fmt.Sprintf("fabric: station of switch %d: deadline at %d ps, before now, %d ps", s, at, now))
		}
		n.events.Set(n.entities.of(stationTimer, s), at)
		return
	}
	n.events.Clear(n.entities.of(stationTimer, s))
}

// send puts a packet that a switch sends itself into the port of a link.
func (w *stations) send(n *Network, now units.Time, s int, l SwitchLink, p *Packet) {
	to := n.ports[l.Out].to
	p.Src = HostID(n.switchID(s))
	n.total.Injected++
	n.total.InjectedBytes += p.Size
	if n.isHost(to) {
		p.Dst = HostID(to)
	}
	n.enter(p)
	p.flags = 0
	if !n.isHost(to) {
		p.flags = local // for the program of the next switch, which does not forward it
	}
	p.next = join(int32(l.Out))
	if n.cold[l.Out].down {
		n.cut(int32(l.Out), p)
		return
	}
	n.join(now, int32(l.In), p)
}
