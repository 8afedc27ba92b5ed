package fabric

import "weft/eventqueue"

// role is what an entity of the event queue is armed for.
type role int

// The roles, in the order of their entities' numbers.
const (
	lineEnd     role = iota // of a port: the next arrival at the far end of its line
	nicFree                 // of a host: the end of a transmission of its NIC
	portFree                // of a port of a switch that accounts for its memory: the end of a transmission
	frameEnd                // of a port, where switches account for their memory: the first pause or resume on its way to it
	attendance              // of a switch, with CCM: what it does by itself
	stationTurn             // of a switch, with stations: what its station does by itself
	lateArrival             // the next packet that a line delivers late
	roles
)

// entities numbers what the network arms in its event queue.
type entities struct {
	first eventqueue.ID    // PortEntity(0): the lines' come first
	begin [roles + 1]int32 // by role: the number of its first entity, less first
}

// newEntities returns the entities that a network of cfg needs.
func newEntities(cfg *Config, flow, stations bool) (e entities) {
	var count [roles]int
	count[lineEnd], count[nicFree] = len(cfg.Ports), cfg.Hosts
	if flow {
		count[portFree], count[frameEnd] = len(cfg.Ports), len(cfg.Ports)
	}
	if cfg.CCM != nil {
		count[attendance] = len(cfg.Switches)
	}
	if stations {
		count[stationTurn] = len(cfg.Switches)
	}
	if cfg.disorderly() {
		count[lateArrival] = 1
	}
	for r, n := range count {
		e.begin[r+1] = e.begin[r] + int32(n)
	}
	return e
}

// number is how many there are.
func (e *entities) number() int { return int(e.begin[roles]) }

// of returns the entity of a port, host or switch in a role.
func (e *entities) of(r role, i int) eventqueue.ID {
	return e.first + eventqueue.ID(e.begin[r]) + eventqueue.ID(i)
}

// what returns the role of the entity that is n after the first, and whose it is.
func (e *entities) what(n int32) (role, int32) {
	r := lineEnd
	for n >= e.begin[r+1] {
		r++
	}
	return r, n - e.begin[r]
}

// Owns tells whether an entity of the event queue is the network's: whether Fire takes it.
func (n *Network) Owns(id eventqueue.ID) bool {
	return id >= n.entities.first && int(id-n.entities.first) < n.entities.number()
}

// PortEntity returns the entity of the event queue that is armed for the next arrival at the far end of a port's
// line, by the port's index in Config.Ports. A driver that has only to be on time for deliveries looks at
// those of the ports that lead to hosts.
func (n *Network) PortEntity(port int) eventqueue.ID { return n.entities.first + eventqueue.ID(port) }

// LateEntity returns the entity that is armed for the next packet that a line delivers late. ok is false when none
// of the network's lines does.
func (n *Network) LateEntity() (id eventqueue.ID, ok bool) {
	return n.entities.of(lateArrival, 0), n.late != nil
}

// PauseEntity returns the entity that is armed for the next pause or resume on its way to a port. ok is false when
// nobody in the network pauses anybody.
func (n *Network) PauseEntity(port int) (id eventqueue.ID, ok bool) {
	return n.entities.of(frameEnd, port), n.pfc != nil
}
