package fabric

import "weft/eventqueue"

// role is the purpose of an entity of the event queue: what happens when it fires.
type role int

// Roles, in the order of their entities' numbers. The comment names what has an entity of that
// role.
const (
	linkEnd      role = iota // port: the next arrival at the far end of its link
	nicFree                  // host: its NIC's transmission ends
	portFree                 // port of a switch that accounts for its memory: its transmission ends
	frameEnd                 // port, if switches account for their memory: the next pause or resume reaches it
	ccmTimer                 // switch, with CCM: it looks after incast flows
	stationTimer             // switch, with stations: the deadline of its station
	lateArrival              // network: the next packet that a link delivers late
	roles
)

// entities numbers the network's entities in its event queue.
type entities struct {
	first eventqueue.ID    // PortEntity(0): those of the ports come first
	begin [roles + 1]int32 // by role: the number of its first entity, counted from first
	// by number, in a network in partitions: the entity in its partition's queue. nil: one queue
	// has all
	local []eventqueue.ID
}

// newEntities returns the entities that a network of cfg needs.
func newEntities(cfg *Config, flow, stations bool) (e entities) {
	var count [roles]int
	count[linkEnd], count[nicFree] = len(cfg.Ports), cfg.Hosts
	if flow {
		count[portFree], count[frameEnd] = len(cfg.Ports), len(cfg.Ports)
	}
	if cfg.CCM != nil {
		count[ccmTimer] = len(cfg.Switches)
	}
	if stations {
		count[stationTimer] = len(cfg.Switches)
	}
	if cfg.disorderly() {
		count[lateArrival] = 1
	}
	for r, n := range count {
		e.begin[r+1] = e.begin[r] + int32(n)
	}
	return e
}

// number returns the number of entities.
func (e *entities) number() int { return int(e.begin[roles]) }

// of returns the entity of a port, host or switch in a role.
func (e *entities) of(r role, i int) eventqueue.ID {
	return e.at(e.begin[r] + int32(i))
}

// at returns the entity of a number.
func (e *entities) at(number int32) eventqueue.ID {
	if e.local != nil {
		return e.local[number]
	}
	return e.first + eventqueue.ID(number)
}

// divide gives each partition the entities that fire in it.
func (e *entities) divide(p *Partitions, hosts int, ports []port) (keys [][]int32) {
	keys = make([][]int32, len(p.all))
	e.local = make([]eventqueue.ID, e.number())
	for k := range e.local {
		owner := int32(0)
		switch r, i := e.what(int32(k)); r {
		case linkEnd:
			owner = p.partition[ports[i].to]
		case nicFree:
			owner = p.partition[i]
		case portFree, frameEnd:
			owner = p.owner[i]
		case ccmTimer, stationTimer:
			owner = p.partition[hosts+int(i)]
		}
		e.local[k] = eventqueue.ID(len(keys[owner]))
		keys[owner] = append(keys[owner], int32(k))
	}
	return keys
}

// what returns the role of entity n, counted from first, and the index of the port, host or switch
// that it belongs to.
func (e *entities) what(n int32) (role, int32) {
	r := linkEnd
	for n >= e.begin[r+1] {
		r++
	}
	return r, n - e.begin[r]
}

// Owns reports whether an entity of the event queue belongs to the network, so that Fire takes it.
func (n *Network) Owns(id eventqueue.ID) bool {
	k := n.events.Key(id) - int32(n.entities.first)
	return k >= 0 && int(k) < n.entities.number()
}

// PortEntity returns the entity that is armed for the next arrival at the far end of a port's link,
// by the port's index in Config.Ports. A driver that has to be on time only for deliveries looks at
// the entities of the ports that lead to hosts.
func (n *Network) PortEntity(port int) eventqueue.ID { return n.entities.at(int32(port)) }

// LateEntity returns the entity that is armed for the next packet that a link delivers late. ok is
// false if no link of the network delivers packets late.
func (n *Network) LateEntity() (id eventqueue.ID, ok bool) {
	return n.entities.of(lateArrival, 0), n.late != nil
}

// PauseEntity returns the entity that is armed for the next pause or resume on its way to a port.
// ok is false if nothing in the network sends pauses.
func (n *Network) PauseEntity(port int) (id eventqueue.ID, ok bool) {
	return n.entities.of(frameEnd, port), n.pfc != nil
}
