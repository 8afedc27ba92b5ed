package fabric

// A step is what happens to a packet at the far end of its link: a kind and, for joins, the port that
// it joins there. It is one word, so that what a hop reads of a packet fits in a cache line.
type step uint32

// The kinds of steps.
const (
	undecided  step = iota // the routing tables have not been asked yet
	joins                  // it joins an output port of the switch
	arrives                // the far end is its destination host
	terminates             // the far end is its destination switch
	balanced               // the switch chooses a port when the packet is there: see Balance
	unroutable             // the far end cannot forward it
	corrupted              // the link corrupts it, and the far end discards it
	disordered             // the link may deliver it late, or twice

	stepBits = 3
)

// noPort stands for a port where there is none.
const noPort int32 = -1

// join is the step onto a port of the switch at the far end; unroutable when there is none.
func join(port int32) step {
	if port == noPort {
		return unroutable
	}
	return step(port)<<stepBits | joins
}

func (s step) kind() step { return s & (1<<stepBits - 1) }

// port is the port that the packet joins.
func (s step) port() int32 { return int32(s >> stepBits) }
