package qdisc

import (
	"fmt"
	"strings"
	"time"

	"weft/units"
)

// Handle names a discipline on its device: the major number, before the colon, is its own; the
// minor number selects a class of it.
type Handle uint32

// Root is the parent of the discipline directly below a device.
const Root Handle = 0xffffffff

// MakeHandle returns the handle that tc writes as major:minor in hexadecimal.
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

// Options are the settings of one kind of discipline: HTB, FIFO, REDStage or Netem. A discipline
// read back may also be Foreign.
type Options interface {
	Kind() string   // the kernel's name of the discipline
	String() string // every setting, for people
	// differs returns the differences between the receiver, as requested, and got, as read back.
	differs(got Options) []field
}

// Tree is one direction of a link in the kernel. The zero value shapes nothing.
type Tree struct {
	// Near lists the disciplines of the device that packets leave through, parents first.
	Near []Qdisc
	// Far lists the disciplines of the ifb at the other end, parents first. It is empty if no ifb
	// is needed.
	Far []Qdisc
	// Gate is the direction's BPF programs; nil: it has none.
	Gate *Gate
	// Source is the only permitted sender; nil permits everybody.
	Source *Source
}

// String prints the tree with one discipline per line.
func (t Tree) String() string {
	var b strings.Builder
	for _, q := range t.Near {
		fmt.Fprintf(&b, "near %v\n", q)
	}
	if t.Gate != nil {
		fmt.Fprintf(&b, "both bpf %v\n", t.Gate)
	}
	if t.Source != nil {
		fmt.Fprintf(&b, "far %v\n", t.Source)
	}
	for _, q := range t.Far {
		fmt.Fprintf(&b, "far %v\n", q)
	}
	return b.String()
}

// HTB enforces the rate, and sends control packets before data. A packet leaves when the bucket is
// not overdrawn, and then takes its tokens from it: like a link, HTB is busy after it has begun to
// send a packet (sch_htb.c, htb_dequeue). A packet that waits stays in the queue below and is
// counted there.
//
// It has three classes: Link has the rate, and Control and Data below it borrow all of theirs from
// it. The direction's Gate puts each packet into its class, or else a filter. Without either, all
// are data.
type HTB struct {
	Rate     uint64        // bytes/s
	Bucket   time.Duration // its size, as time at Rate
	Overhead uint16        // bytes added to each packet for its transmission time
	Filter   bool          // puts IPv4 packets with a TOS of at least wire.TOSControl into Control
}

// Handles of an HTB and its classes.
const (
	HTBHandle Handle = 1 << 16
	Link             = HTBHandle + 1
	Control          = HTBHandle + 2
	Data             = HTBHandle + 3
)

// Kind returns "htb".
func (HTB) Kind() string { return "htb" }

func (o HTB) String() string {
	s := fmt.Sprintf("rate %d B/s bucket %v overhead %d, class %v before %v", o.Rate, o.Bucket, o.Overhead, Control,
		Data)
	if o.Filter {
		s += ", by a filter"
	}
	return s
}

// FIFO is a queue with a limit in bytes (sch_fifo.c, bfifo).
type FIFO struct{ Limit units.Bytes }

// Kind returns "bfifo".
func (FIFO) Kind() string { return "bfifo" }

func (o FIFO) String() string { return fmt.Sprintf("limit %d", o.Limit) }

// REDStage is one sch_red without averaging (Wlog 0), which marks and never drops by length. Its
// limit is zero, which leaves the queue to the discipline below, so that a change keeps queued
// packets.
type REDStage struct {
	Min, Max units.Bytes
	MaxP     uint32 // probability at Max in the kernel's formula, in units of 2^-32
}

// Kind returns "red".
func (REDStage) Kind() string { return "red" }

func (o REDStage) String() string {
	return fmt.Sprintf("min %d max %d maxp %.4f wlog 0 ecn nodrop", o.Min, o.Max, float64(o.MaxP)/(1<<32))
}

// Netem models the link itself: delay and errors (sch_netem.c). Shares are in units of 1/(2^32-1).
type Netem struct {
	Latency, Jitter          time.Duration // Jitter is the unit of Table
	Loss, Duplicate, Corrupt uint32
	Limit                    uint32 // packets
	Rate                     uint64 // bytes/s; 0 means none. With a rate, packets keep their order.
	Overhead                 int32
	// Table holds the factors of Jitter in units of 1/8192; each packet draws one entry. The kernel
	// does not report it.
	Table []int16
}

// Kind returns "netem".
func (Netem) Kind() string { return "netem" }

func (o Netem) String() string {
	return fmt.Sprintf("delay %v jitter %v (%d steps) loss %d duplicate %d corrupt %d (of 2^32-1) limit %d packets "+
		"rate %d B/s overhead %d",
		o.Latency, o.Jitter, len(o.Table), o.Loss, o.Duplicate, o.Corrupt, o.Limit, o.Rate, o.Overhead)
}

// Foreign is a discipline found on a device that no plan uses: of another kind, or with unknown
// settings.
type Foreign struct{ Name, Why string }

// Kind returns the kernel's name of the discipline.
func (o Foreign) Kind() string { return o.Name }

func (o Foreign) String() string { return o.Why }
