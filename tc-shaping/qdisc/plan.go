package qdisc

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"weft/units"
)

// Plan returns the disciplines that shape a device like direction d. The error names everything
// that makes no sense, or else everything that this kernel cannot provide; the latter wraps
// ErrRefused.
func Plan(d Direction, kernel Capabilities) (Tree, error) {
	if err := d.check(); err != nil {
		return Tree{}, err
	}
	if err := d.refuse(kernel); err != nil {
		return Tree{}, err
	}
	t := Tree{Source: d.Source}
	if d.gated(kernel) {
		if t.Gate = d.gate(); t.Gate.RED != nil {
			d.RED = nil
		}
		d.Limit += gateSlack * d.frame()
	}
	t.Near, t.Far = d.near(t.Gate == nil && kernel.Lacks(PartSource) == nil), d.far()
	return t, nil
}

// gateSlack is how many packets a queue below a Gate holds beyond its limit, so that only the Gate
// drops, which counts. Our own value: packets that processors add at the same instant.
const gateSlack = 64

// needs returns the kernel parts that the direction requires.
func (d Direction) needs(kernel Capabilities) []Part {
	var parts []Part
	if d.Rate > 0 {
		parts = append(parts, PartHTB, PartFIFO)
	}
	gated := d.gated(kernel)
	if d.RED != nil && !d.RED.Drawn {
		parts = append(parts, PartRED)
	}
	if d.NeedsNetem() {
		parts = append(parts, delaying...)
	}
	if d.Source != nil && !gated {
		parts = append(parts, PartSource)
	}
	if gated {
		parts = append(parts, PartBPF)
	}
	return parts
}

// NeedsNetem reports whether the direction needs netem: packets take time, are damaged, or are
// filtered after they leave the queue.
func (d Direction) NeedsNetem() bool {
	return !d.AtEnds && (d.Wire || d.Source != nil || d.Delay > 0 || d.Jitter > 0 || d.Loss > 0 || d.Duplicate > 0 ||
		d.Corrupt > 0 || d.Reorder > 0)
}

// near returns the disciplines for egress, with or without a filter for control packets.
func (d Direction) near(filter bool) []Qdisc {
	if d.Rate == 0 {
		return nil
	}
	var data []Options
	if d.RED != nil {
		for _, s := range stages(*d.RED) {
			data = append(data, s)
		}
	}
	queue := FIFO{Limit: d.Limit}
	row := chain(Root, 1, HTB{Rate: uint64(d.Rate) / 8, Bucket: d.late(), Overhead: uint16(d.Overhead),
		Filter: filter})
	row = append(row, chain(Control, 2, queue)...)
	return append(row, chain(Data, 3, append(data, queue)...)...)
}

// defaultLateness is how late a high-resolution timer of the kernel fires on a machine that is not
// overloaded, which is some tens of microseconds. Our own value; ADR 122 has the measurement.
const defaultLateness = 100 * time.Microsecond

// late returns Lateness or its default.
func (d Direction) late() time.Duration {
	if d.Lateness == 0 {
		return defaultLateness
	}
	return d.Lateness
}

// Burst returns the bytes that pass at once after an idle period: what the rate carries while a
// timer is late, and the packet that overdraws the bucket. More would hide queues.
func (d Direction) Burst() units.Bytes { return d.frame() + amount(d.late(), uint64(d.Rate)/8) }

// amount returns the bytes that pass in time t at a rate in bytes/s, rounded down.
func amount(t time.Duration, rate uint64) units.Bytes {
	hi, lo := bits.Mul64(uint64(t), rate)
	if hi >= uint64(time.Second) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return units.Bytes(min(q, math.MaxInt64/2))
}

// far returns the disciplines for ingress.
func (d Direction) far() []Qdisc {
	if !d.NeedsNetem() {
		return nil
	}
	o := Netem{
		Latency:   d.Delay,
		Loss:      share(d.Loss),
		Duplicate: share(d.Duplicate),
		Corrupt:   share(d.Corrupt),
		Limit:     d.inFlight(),
	}
	o.Jitter, o.Table = d.spread()
	switch {
	case d.Rate == 0:
	case o.Table == nil:
		// The queue releases a packet at the start of its transmission. netem's own rate adds the
		// transmission time packet by packet and spaces packets that left the queue in a burst.
		o.Rate, o.Overhead = uint64(d.Rate)/8, int32(d.Overhead)
	default:
		// netem's rate keeps packets in order, so one packet's jitter would delay all packets
		// behind it.
		o.Latency += span(d.frame()+d.Overhead, uint64(d.Rate)/8)
	}
	return chain(Root, 1, o)
}

// inFlight returns netem's limit: twice the number of minimum-size packets that the link can hold.
// netem silently drops packets beyond its limit.
func (d Direction) inFlight() uint32 {
	const (
		minFrame  = 60
		slack     = 1000 // netem's default, for late timers
		unlimited = 10_000_000
	)
	if d.Rate == 0 {
		return unlimited
	}
	// an exponential exceeds 20 means once in 5e8 draws, and the table ends before
	longest := d.Delay + 20*d.Jitter + d.ReorderBy
	q := uint64(amount(longest, uint64(d.Rate)/8) + d.Burst()) // a burst waits on the link
	return uint32(min(2*(q/minFrame)+slack, math.MaxInt32))    // the kernel compares signed lengths
}

// chain puts each discipline below the one before it, and the first one below parent. Its handle
// has the number first.
func chain(parent Handle, first uint16, row ...Options) []Qdisc {
	out := make([]Qdisc, len(row))
	for i, o := range row {
		number := first + uint16(i)
		out[i] = Qdisc{Parent: parent, Handle: MakeHandle(number, 0), Options: o}
		parent = MakeHandle(number, 1)
	}
	return out
}

// span returns the time that n bytes take at a rate in bytes/s, rounded down to a nanosecond.
func span(n units.Bytes, rate uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(time.Second))
	if hi >= rate {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, rate)
	return time.Duration(min(q, math.MaxInt64))
}

// share converts a probability to netem's form: the event happens if a random 32-bit number does
// not exceed it.
func share(p float64) uint32 { return uint32(math.Round(p * math.MaxUint32)) }

// longestPacket is the longest transmission after which htb waits for its end (sch_htb.c, mbuffer).
const longestPacket = time.Minute

// refuse returns an error that names every setting this kernel cannot provide, for a direction that
// passed check.
func (d Direction) refuse(kernel Capabilities) error {
	if err := kernel.need(d.needs(kernel)); err != nil {
		return err
	}
	refused := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
	}
	rate := uint64(d.Rate) / 8
	switch {
	case d.Rate > 0 && rate == 0:
		return refused("a rate of %v: it keeps rates in bytes per second", d.Rate)
	case d.Rate%8 != 0 && rate < 1_000_000/8:
		return refused("a rate of %d bit/s: it keeps rates in whole bytes per second, and the nearest below is off "+
			"by more than a millionth", int64(d.Rate))
	case d.Lateness > math.MaxUint32*kernel.Psched:
		return refused("timers that come %v late: the largest bucket has %v", d.Lateness, math.MaxUint32*kernel.Psched)
	case d.Rate > 0 && span(d.frame()+d.Overhead, rate) > longestPacket:
		return refused("a rate of %v: a packet of %d bytes takes longer than %v, after which htb sends the next",
			d.Rate, d.frame(), longestPacket)
	case d.RED != nil && !d.RED.ECN:
		return refused("early drops: queues mark ECN-capable packets, and drop at their limit alone")
	case d.AtEnds && (d.Duplicate > 0 || d.Corrupt > 0):
		return refused("duplicated or corrupted packets without netem, which this kernel lacks (%s)",
			strings.Join(kernel.LacksDelays(), ", "))
	case d.Jitter > 0 && d.Reorder > 0:
		return refused("jitter together with reorder: netem has one distribution of delays; leave one out, or take " +
			"datapath fabric")
	case d.Jitter > longestUnit/means:
		return refused("jitter of %v: netem's ends at %v", d.Jitter, longestUnit/means)
	case d.ReorderBy > longestUnit:
		return refused("packets that come up to %v late: netem's jitter ends at %v", d.ReorderBy, longestUnit)
	case d.Reorder > 0 && d.Reorder*TableSize < 1:
		return refused("a share of %g that comes late: netem's tables end at one in %d", d.Reorder, TableSize)
	case (d.Rate > 0 || d.NeedsNetem()) && kernel.Tick > 50*time.Microsecond:
		return refused("a rate or delay: the kernel's timers have a resolution of %v (no high-resolution timers)",
			kernel.Tick)
	}
	for _, s := range []struct {
		name  string
		share float64
	}{{"loss", d.Loss}, {"duplicate", d.Duplicate}, {"corrupt", d.Corrupt}} {
		if s.share > 0 && share(s.share) == 0 {
			return refused("%s of %g: netem's shares end at 2^-32", s.name, s.share)
		}
	}
	return nil
}
