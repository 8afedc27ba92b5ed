package fabric

import "weft/timeline"

// PortEntity returns the entity of the timeline that is armed for the next arrival at the far end of a port's
// line, by the port's index in Config.Ports. A driver that has only to be on time for deliveries looks at
// those of the ports that lead to hosts.
func (n *Network) PortEntity(port int) timeline.ID { return n.first + timeline.ID(port) }

// LateEntity returns the entity that is armed for the next packet that a line delivers late. ok is false when none
// of the network's lines does.
func (n *Network) LateEntity() (id timeline.ID, ok bool) {
	if n.late == nil {
		return 0, false
	}
	return n.late.entity, true
}

// PauseEntity returns the entity that is armed for the next pause or resume on its way to a port. ok is false when
// nobody in the network pauses anybody.
func (n *Network) PauseEntity(port int) (id timeline.ID, ok bool) {
	if n.flow == nil {
		return 0, false
	}
	return n.frameEntity(int32(port)), true
}
