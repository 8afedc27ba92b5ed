package qdisc

import (
	"errors"
	"fmt"
	"math"
	"time"

	"weft/units"
)

// Direction is one direction of a link, in real time. The zero value shapes nothing.
type Direction struct {
	// Rate of the line, counted over packets with their Ethernet header and Overhead. Zero: as fast as the devices are.
	Rate units.Bandwidth
	// Overhead is what a packet occupies on the line beyond what the kernel counts: frame check, preamble and gap, or
	// headers that only the modelled wire has. 0 to 65,535 bytes. It counts for the rate, never for a queue.
	Overhead units.Bytes
	// Limit of what waits, in bytes; needed where there is a rate. A packet that does not fit is dropped on arrival.
	Limit units.Bytes
	// RED marks what arrives at the queue; nil marks nothing. It needs a rate: without, nothing waits.
	RED *RED
	// Lateness is how late the machine's timers may come before rate is lost for good; 0 means 100 us, which machines with
	// time to spare keep. As much as the line carries in it passes the queue without waiting after a pause.
	Lateness time.Duration

	// Wire has packets arrive when their transmission ends even where nothing else befalls them behind the queue. What the line does
	// can then be changed while packets wait. Without it a rate alone needs no netem, and packets arrive as their transmission begins.
	Wire bool
	// Delay is propagation: from the last bit sent to the last bit received.
	Delay time.Duration
	// Jitter is the mean of an exponential delay that every packet has besides. Packets overtake each other.
	Jitter time.Duration
	// Loss, Duplicate and Corrupt are the shares of packets that vanish, come twice, or come with one bit turned; 0 to 1.
	// A copy of a packet is lost or kept by itself, unlike in the modelled fabric, which copies no lost packets.
	Loss, Duplicate, Corrupt float64
	// Reorder is the share of packets that come late, by up to ReorderBy, uniformly.
	Reorder   float64
	ReorderBy time.Duration

	// Source is the one node whose frames the direction carries; nil: anybody's.
	Source *Source

	// MTU is the largest packet without its Ethernet header, in bytes; 0 means 1,500.
	MTU units.Bytes
}

// RED marks by the length of the queue at the instant a packet arrives: no packet while at most Min bytes wait, a share that
// rises in a line to Pmax at Max, and every packet from there on. Packets that cannot be marked (not ECN-capable) are
// never dropped by it: they wait until the limit. That is what the modelled fabric does, too.
type RED struct {
	Min, Max units.Bytes
	Pmax     float64 // 0 to 1
	ECN      bool    // false would drop instead, which is refused: no lab can ask for it, and drops are the limit's business
}

// Ethernet is the header that the kernel counts with every packet in a queue of a device, in bytes (ETH_HLEN).
const Ethernet units.Bytes = 14

// frame is the largest packet as a queue counts it.
func (d Direction) frame() units.Bytes {
	if d.MTU == 0 {
		return 1500 + Ethernet
	}
	return d.MTU + Ethernet
}

// ErrRefused is in every error that says what the kernel's disciplines cannot honour, as opposed to input that makes no sense.
var ErrRefused = errors.New("the kernel's queueing disciplines cannot honour it")

// Bounds of the kernel's fields.
const (
	maxQueue   = units.Bytes(1<<31 - 1) // red.h: a threshold has fewer than 32 bits with Wlog added; qopt.limit has 32
	maxWait    = 24 * time.Hour         // ours: far below the 275 s x 2^32 of netem, far above any lab
	maxPayload = units.Bytes(65535)
)

// check returns what makes no sense of the direction in itself.
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
		if !(r.Pmax >= 0 && r.Pmax <= 1) {
			bad("marking with probability %g at max: 0 to 1", r.Pmax)
		}
	}
	return errs
}
