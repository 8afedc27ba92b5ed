package fabric

// A step is what happens to a packet at the far end of its link: a kind and, for joins, the output
// port that it joins there. It is one word, so that all a hop reads of a packet fits in a cache
// line.
type step uint32

// Kinds of steps.
const (
	undecided  step = iota // the routing tables have not been asked yet
	joins                  // joins an output port of the switch
	arrives                // the far end is its destination host
	terminates             // the far end is its destination switch
	balanced               // the switch chooses a port when the packet arrives; see Balance
	unroutable             // the far end cannot forward it
	corrupted              // corrupted on the link; the far end discards it
	disordered             // the link may deliver it late, or twice

	stepBits = 3
)

// noPort stands for the absence of a port.
const noPort int32 = -1

// join returns the step onto a port of the switch at the far end; unroutable for noPort.
func join(port int32) step {
	if port == noPort {
		return unroutable
	}
	return step(port)<<stepBits | joins
}

func (s step) kind() step { return s & (1<<stepBits - 1) }

// port returns the port that the packet joins. The kind must be joins.
func (s step) port() int32 { return int32(s >> stepBits) }
