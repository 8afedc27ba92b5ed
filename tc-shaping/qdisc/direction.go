package qdisc

import (
	"errors"
	"fmt"
	"math"
	"time"

	"weft/units"
)

// Direction describes one direction of a link in real time. The zero value shapes nothing.
type Direction struct {
	// Rate of the link, counted over packets with their Ethernet header and Overhead. Zero means as
	// fast as the devices are.
	Rate units.Bandwidth
	// Overhead is the size of each packet on the link beyond what the kernel counts: frame check
	// sequence, preamble, gap, or headers that exist only on the modelled wire. 0 to 65,535 bytes.
	// It counts towards the rate, never towards a queue.
	Overhead units.Bytes
	// Limit of the queue in bytes, required with a rate. A packet that does not fit is dropped on
	// arrival.
	Limit units.Bytes
	// RED marks packets on arrival at the queue; nil marks nothing. It requires a rate, because
	// nothing queues without one.
	RED *RED
	// Lateness is how late the machine's timers may fire before the link loses rate. 0 means 100
	// us, which machines with spare processor time keep. After an idle period, as many bytes as the
	// link carries in this time pass without queueing.
	Lateness time.Duration

	// Wire makes packets arrive at the end of their transmission even if the link has no other
	// property beyond the queue. The link's properties can then change while packets are queued.
	// Without Wire, a rate alone needs no netem, and packets arrive at the start of their
	// transmission.
	Wire bool
	// Gated asks for a Gate whatever else the direction needs.
	Gated bool
	// AtEnds says that receivers hold packets back for the time that they take on their links,
	// which the kernel's stamp of their arrival includes. The direction itself delays nothing. It
	// needs a Gate (Gate.Line) and no netem, but cannot have jitter, reordering or duplicates.
	AtEnds bool
	// Delay is the propagation delay: from the last bit sent to the last bit received.
	Delay time.Duration
	// Jitter is the mean of an additional, exponentially distributed delay per packet. Packets
	// overtake each other.
	Jitter time.Duration
	// Loss, Duplicate and Corrupt are the shares of packets that are lost, arrive twice, or arrive
	// with one bit flipped; 0 to 1. A copy is lost independently of its original. In the modelled
	// fabric, lost packets are not copied.
	Loss, Duplicate, Corrupt float64
	// Reorder is the share of packets that are delayed by up to ReorderBy, uniformly distributed.
	Reorder   float64
	ReorderBy time.Duration

	// Source is the only node whose frames the direction carries; nil carries everybody's.
	Source *Source

	// MTU is the largest packet without its Ethernet header, in bytes; 0 means 1,500.
	MTU units.Bytes
}

// RED marks by the queue length at the instant a packet arrives, or leaves: no packet up to Min
// bytes, a share that rises linearly to Pmax at Max, and every packet above Max. It never drops
// packets that are not ECN-capable; they queue until the limit. The modelled fabric does the same.
type RED struct {
	Min, Max units.Bytes
	Pmax     float64 // 0 to 1
	ECN      bool    // false would drop instead of mark and is rejected: no lab can ask for it, and only Limit drops
	// Leaving marks packets when they leave the queue, by the bytes that they leave behind. sch_red
	// cannot.
	Leaving bool
	// Drawn marks with a Gate, which draws for each packet. It is required by Leaving.
	Drawn bool
}

// Ethernet is the size of the header that the kernel counts for every packet in a device's queue,
// in bytes (ETH_HLEN).
const Ethernet units.Bytes = 14

// frame returns the size of the largest packet as a queue counts it.
func (d Direction) frame() units.Bytes {
	if d.MTU == 0 {
		return 1500 + Ethernet
	}
	return d.MTU + Ethernet
}

// ErrRefused is wrapped by errors about settings that the kernel's disciplines cannot provide, as
// opposed to settings that make no sense.
var ErrRefused = errors.New("the kernel's queueing disciplines cannot honour it")

// Bounds of the kernel's fields.
const (
	maxQueue   = units.Bytes(1<<31 - 1) // red.h: a threshold has fewer than 32 bits with Wlog added; qopt.limit has 32
	maxWait    = 24 * time.Hour         // our own: far below netem's 275 s x 2^32, far above any lab
	maxPayload = units.Bytes(65535)
)

// check returns an error if the direction makes no sense on any kernel.
func (d Direction) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if d.Rate < 0 {
		bad("a rate of %v", d.Rate)
	}
	if d.Overhead < 0 || d.Overhead > math.MaxUint16 {
		bad("an overhead of %d bytes: 0 to 65535", d.Overhead)
	}
	if d.MTU < 0 || d.MTU > maxPayload {
		bad("an MTU of %d bytes: at most %d", d.MTU, maxPayload)
	}
	for _, t := range []struct {
		name string
		time.Duration
	}{{"delay", d.Delay}, {"jitter", d.Jitter}, {"reorder_by", d.ReorderBy}, {"lateness", d.Lateness}} {
		if t.Duration < 0 || t.Duration > maxWait {
			bad("%s of %v: 0 to %v", t.name, t.Duration, maxWait)
		}
	}
	for _, s := range []struct {
		name  string
		share float64
	}{{"loss", d.Loss}, {"duplicate", d.Duplicate}, {"corrupt", d.Corrupt}, {"reorder", d.Reorder}} {
		if !(s.share >= 0 && s.share <= 1) {
			bad("%s of %g: a share is 0 to 1", s.name, s.share)
		}
	}
	if s := d.Source; s != nil && !s.Addr.Is4() {
		bad("frames only of the address %v: it is not IPv4", s.Addr)
	}
	if (d.Reorder > 0) != (d.ReorderBy > 0) {
		bad("reorder of %g by up to %v: one needs the other", d.Reorder, d.ReorderBy)
	}
	return errors.Join(append(errs, d.checkQueue()...)...)
}

func (d Direction) checkQueue() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case d.Rate == 0 && (d.Limit != 0 || d.RED != nil):
		bad("a queue without a rate: nothing ever waits in it")
	case d.Rate > 0 && d.Limit < d.frame():
		bad("a queue of %d bytes: a packet of the MTU takes %d", d.Limit, d.frame())
	case d.Limit > maxQueue:
		bad("a queue of %d bytes: the kernel's field ends at %d", d.Limit, maxQueue)
	}
	if r := d.RED; r != nil {
		if r.Min < 0 || r.Max < r.Min || r.Max > maxQueue {
			bad("marking from %d to %d bytes: 0 <= min <= max <= %d", r.Min, r.Max, maxQueue)
		}
		if r.Leaving && !r.Drawn {
			bad("marks on departure by sch_red, which marks on arrival")
		}
		if !(r.Pmax >= 0 && r.Pmax <= 1) {
			bad("marking with probability %g at max: 0 to 1", r.Pmax)
		}
	}
	return errs
}
