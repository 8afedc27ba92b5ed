package qdisc

import (
	"fmt"
	"time"

	"weft/units"
)

// Gate is a pair of BPF programs that do what a direction needs and the kernel's disciplines cannot
// do. One counts the bytes that enter the queue at the near end, the other those that have left it
// at the far end, so that both know the queue's length at each packet.
type Gate struct {
	// Limit of the queue in bytes. A packet that does not fit is dropped before it enters.
	Limit units.Bytes
	// RED marks packets, each by a random draw of its own; nil marks nothing. With RED.Leaving they
	// are marked at the far end.
	RED *RED
	// Loss is the share of packets that are lost at the far end, in units of 1/(2^32-1).
	Loss uint32
	// Line is how long packets take behind the queue; nil: something else delays them.
	Line *Line
}

// Line is the time that packets take on a link. Nothing holds them back for it: each packet
// collects the times of its links, and the kernel's stamp of its arrival at a node says when it is
// due there.
type Line struct {
	Delay    time.Duration   // propagation
	Rate     units.Bandwidth // of transmissions, which follow each other; 0: they take no time
	Overhead units.Bytes     // of each packet on the link beyond what the kernel counts
	// Each packet takes Spread times an entry of Table / TableOne longer, drawn for it, and may be
	// overtaken. Without Spread none does. Table has TableSize entries, none below 0.
	Spread time.Duration
	Table  []int16
}

func (g *Gate) String() string {
	if g == nil {
		return "none"
	}
	s := fmt.Sprintf("limit %d loss %d of 2^32-1", g.Limit, g.Loss)
	if l := g.Line; l != nil {
		s += fmt.Sprintf(" delay %v rate %v overhead %d spread %v", l.Delay, l.Rate, l.Overhead, l.Spread)
	}
	if r := g.RED; r != nil {
		where := "entering"
		if r.Leaving {
			where = "leaving"
		}
		s += fmt.Sprintf(" marks min %d max %d pmax %.4f, %s", r.Min, r.Max, r.Pmax, where)
	}
	return s
}

// MaxBalanced is the largest number of equal paths among which the programs choose by their queues.
// Our own choice: what they report of a packet, with each of those queues, stands on a program's
// stack, which has 512 bytes.
const MaxBalanced = 16

// GateNames returns the names by which tc shows the two programs of a port.
func GateNames(port int) (enter, leave string) {
	return fmt.Sprintf("weft enter port %d", port), fmt.Sprintf("weft leave port %d", port)
}

// gated reports whether the direction needs a Gate on this kernel.
func (d Direction) gated(kernel Capabilities) bool {
	return d.Gated || d.AtEnds || d.RED != nil && d.RED.Drawn ||
		d.Source != nil && kernel.Lacks(PartSource) != nil
}

// gate returns the Gate of a direction that needs one.
func (d Direction) gate() *Gate {
	g := &Gate{Limit: d.Limit}
	if d.RED != nil && d.RED.Drawn {
		g.RED = d.RED
	}
	if d.AtEnds { // netem loses packets otherwise
		g.Loss, g.Line = share(d.Loss), &Line{Delay: d.Delay, Rate: d.Rate, Overhead: d.Overhead}
		g.Line.Spread, g.Line.Table = d.spread()
	}
	return g
}
