package qdisc

import (
	"fmt"
	"strings"
	"time"

	"weft/units"
)

// Handle names a discipline on its device: the number before the colon is its own, that behind it one of its places
// for a child.
type Handle uint32

// Root is the parent of the discipline directly below a device.
const Root Handle = 0xffffffff

// MakeHandle returns the handle that tc writes as major:minor in hexadecimal digits.
func MakeHandle(major, minor uint16) Handle { return Handle(major)<<16 | Handle(minor) }

func (h Handle) String() string {
	if h == Root {
		return "root"
	}
	if minor := h & 0xffff; minor != 0 {
		return fmt.Sprintf("%x:%x", uint32(h>>16), uint32(minor))
	}
	return fmt.Sprintf("%x:", uint32(h>>16))
}

// Qdisc is one discipline of a device.
type Qdisc struct {
	Parent, Handle Handle
	Options        Options
}

func (q Qdisc) String() string {
	parent := q.Parent.String()
	if q.Parent != Root {
		parent = "parent " + parent
	}
	return fmt.Sprintf("%s %s handle %s %v", parent, q.Options.Kind(), q.Handle, q.Options)
}

// Options are the settings of one kind of discipline: TBF, FIFO, REDStage or Netem; Foreign when read back.
type Options interface {
	Kind() string   // as the kernel names it
	String() string // for people; every setting is in it
	// differs lists where what was read back is not what was asked.
	differs(got Options) []field
}

// Tree is what one direction of a link is in the kernel. The zero value shapes nothing.
type Tree struct {
	// Near are the disciplines of the device that the direction leaves by, parents first.
	Near []Qdisc
	// Far are those of the ifb that packets go through when they arrive at the other end, parents first; empty when no
	// ifb is needed.
	Far []Qdisc
	// Source is whose frames arrive there; nil: anybody's.
	Source *Source
}

// String prints the tree a discipline to a line.
func (t Tree) String() string {
	var b strings.Builder
	for _, q := range t.Near {
		fmt.Fprintf(&b, "near %v\n", q)
	}
	if t.Source != nil {
		fmt.Fprintf(&b, "far %v\n", t.Source)
	}
	for _, q := range t.Far {
		fmt.Fprintf(&b, "far %v\n", q)
	}
	return b.String()
}

// TBF lets a line's rate pass: a packet leaves when the bucket has tokens for it. Unlike HTB it has no classes, of which a link
// needs none, and never lends: it sends nothing without tokens (sch_tbf.c, tbf_dequeue). A packet that
// waits for tokens stays where it is and is counted there.
type TBF struct {
	Rate     uint64        // bytes/s
	Burst    units.Bytes   // size of the bucket
	Bucket   time.Duration // the same as time at Rate, which is what the kernel keeps
	Limit    units.Bytes   // of a fifo directly below; the kernel hands it down on every change
	Overhead uint16        // bytes added to each packet when its time is computed
}

// Kind is "tbf".
func (TBF) Kind() string { return "tbf" }

func (o TBF) String() string {
	return fmt.Sprintf("rate %d B/s burst %d limit %d overhead %d", o.Rate, o.Burst, o.Limit, o.Overhead)
}

// FIFO is a queue with a limit in bytes (sch_fifo.c, bfifo).
type FIFO struct{ Limit units.Bytes }

// Kind is "bfifo".
func (FIFO) Kind() string { return "bfifo" }

func (o FIFO) String() string { return fmt.Sprintf("limit %d", o.Limit) }

// REDStage is one sch_red with the average of the queue switched off (Wlog 0), marking and never dropping by length. Its
// limit is zero, which leaves its queue to the discipline below, so that a change keeps what waits.
type REDStage struct {
	Min, Max units.Bytes
	MaxP     uint32 // probability at Max of the kernel's formula, in 2^-32
}

// Kind is "red".
func (REDStage) Kind() string { return "red" }

func (o REDStage) String() string {
	return fmt.Sprintf("min %d max %d maxp %.4f wlog 0 ecn nodrop", o.Min, o.Max, float64(o.MaxP)/(1<<32))
}

// Netem is the line: delay and errors (sch_netem.c). Shares are of 2^32-1.
type Netem struct {
	Latency, Jitter          time.Duration // Jitter is the unit of Table
	Loss, Duplicate, Corrupt uint32
	Limit                    uint32 // packets
	Rate                     uint64 // bytes/s; 0: none. Packets then keep their order.
	Overhead                 int32
	// Table has what Jitter is multiplied with, in 1/8192: a packet draws one of its entries. The kernel does not show it.
	Table []int16
}

// Kind is "netem".
func (Netem) Kind() string { return "netem" }

func (o Netem) String() string {
	return fmt.Sprintf("delay %v jitter %v (%d steps) loss %d duplicate %d corrupt %d (of 2^32-1) limit %d packets rate %d B/s overhead %d",
		o.Latency, o.Jitter, len(o.Table), o.Loss, o.Duplicate, o.Corrupt, o.Limit, o.Rate, o.Overhead)
}

// Foreign is a discipline found on a device that no plan asks for: of another kind, or with settings that none has.
type Foreign struct{ Name, Why string }

// Kind is what the kernel calls it.
func (o Foreign) Kind() string { return o.Name }

func (o Foreign) String() string { return o.Why }
