package fabric

import (
	"fmt"

	"weft/units"
)

// Stations are the programs that run on the switches beside forwarding, such as the peer delay mechanism of PTP: machines that
// are told the time and handed packets. The network asks for what they send, and when they want to be asked, after every call
// but Pass. Switches count from 0, and so do the links of each (Config.SwitchLinks). In a network in parts the calls
// for different switches come at the same time.
type Stations interface {
	// Receive takes a packet for this switch, which came by one of its links. The network keeps it.
	Receive(now units.Time, s, link int, p *Packet)
	// Pass looks at a packet to the port of stations (Config.Stations) that came by a link of switch s and is to be
	// forwarded. It may change bytes of the header. False: it ends here.
	Pass(now units.Time, s, link int, p *Packet) bool
	// Transmit fills in Size, Class, Port and Header of the packet that switch s sends now, and returns the link; false: there is
	// none. It goes to whoever is at the other end, queues as any packet does, and says in Queued for how long it did.
	Transmit(now units.Time, s int, p *Packet) (link int, ok bool)
	// Deadline returns when switch s wants Advance, not before now; false: when nothing comes, never.
	Deadline(s int) (units.Time, bool)
	Advance(now units.Time, s int)
}

// SwitchLink is a link of a switch: the ports, by their index in Config.Ports, by which it sends and hears on it.
type SwitchLink struct{ Out, In int }

// SwitchLinks returns the links of every switch, in the order of the ports by which they send. Of several links to one
// neighbour the first port out belongs to the first port in, and so on; a port without one for the other direction is no link.
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

// stations is the stations of a network, and what it has to know of them.
type stations struct {
	programs Stations
	port     uint16 // see Config.Stations
	links    [][]SwitchLink
	link     []int32 // by port into a switch: which of its links that is, or -1
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

// AttachStations starts programs on the switches of this partition and arms their first deadlines. It
// panics unless the network was made for it (Config.Stations).
func (n *Network) AttachStations(now units.Time, programs Stations) {
	if n.stations == nil {
		panic("fabric: stations for a network that has none")
	}
	w := *n.stations // parts have one each
	w.programs = programs
	n.stations = &w
	for s := range w.links {
		if n.exchange.owns(n.switchID(s)) {
			n.stations.serve(n, now, s)
		}
	}
}

// attended hands a packet that came by port from, and is of interest to stations, to that of the switch there. It is false when
// the packet ends there.
func (w *stations) attended(n *Network, now units.Time, from int32, e *Packet) bool {
	s, link := n.switchAt(n.ports[from].to), int(w.link[from])
	if w.programs == nil || link < 0 {
		if e.flags&local != 0 {
			n.reached(e)
		}
		return e.flags&local == 0
	}
	if e.flags&local == 0 {
		if w.programs.Pass(now, s, link, e) {
			return true
		}
		n.reached(e)
		return false
	}
	w.programs.Receive(now, s, link, e)
	n.reached(e)
	w.serve(n, now, s)
	return false
}

// reached counts e as delivered to a switch and returns its packet to the pool.
func (l *ledger) reached(e *Packet) {
	l.total.Delivered++
	l.total.DeliveredBytes += e.Size
	l.Put(e)
}

// serve sends what the station of a switch has to send, and arms its entity.
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
			panic(fmt.Sprintf("fabric: the station of switch %d wants to act at %d ps, before %d ps", s, at, now))
		}
		n.events.Set(n.entities.of(stationTurn, s), at)
		return
	}
	n.events.Clear(n.entities.of(stationTurn, s))
}

// send puts a packet of a switch's own into the port of a link.
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
		p.flags = local
	}
	p.next = join(int32(l.Out))
	if n.cold[l.Out].down {
		n.cut(int32(l.Out), p)
		return
	}
	n.join(now, int32(l.In), p)
}
