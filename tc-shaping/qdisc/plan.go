package qdisc

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"weft/units"
)

// Plan returns the disciplines that make a device a direction of a link, or an error that names everything that makes no
// sense (first) or that this kernel cannot honour (ErrRefused is in it then).
func Plan(d Direction, kernel Capabilities) (Tree, error) {
	if err := d.check(); err != nil {
		return Tree{}, err
	}
	if err := d.refuse(kernel); err != nil {
		return Tree{}, err
	}
	return Tree{Near: d.near(), Far: d.far(), Source: d.Source}, nil
}

// needs lists the parts of the kernel that the direction is made of.
func (d Direction) needs() []Part {
	var parts []Part
	if d.Rate > 0 {
		parts = append(parts, PartTBF, PartFIFO)
	}
	if d.RED != nil {
		parts = append(parts, PartRED)
	}
	if d.Line() {
		parts = append(parts, PartNetem, PartIFB, PartRedirect)
	}
	if d.Source != nil {
		parts = append(parts, PartSource)
	}
	return parts
}

// Line reports whether packets take time, come to harm, or are looked at, after they have left the queue.
func (d Direction) Line() bool {
	return d.Wire || d.Source != nil || d.Delay > 0 || d.Jitter > 0 || d.Loss > 0 || d.Duplicate > 0 || d.Corrupt > 0 || d.Reorder > 0
}

// near is what leaving packets pass.
func (d Direction) near() []Qdisc {
	if d.Rate == 0 {
		return nil
	}
	rate := uint64(d.Rate) / 8
	burst := d.Bucket()
	row := []Options{TBF{Rate: rate, Burst: burst, Bucket: span(burst+d.Overhead, rate), Limit: d.Limit, Overhead: uint16(d.Overhead)}}
	if d.RED != nil {
		for _, s := range stages(*d.RED) {
			row = append(row, s)
		}
	}
	return chain(append(row, FIFO{Limit: d.Limit})...)
}

// usualLateness is how late a high-resolution timer of the kernel may come on a machine that is not overloaded: some
// tens of microseconds. Ours; docs/adr/0110 has the measurement.
const usualLateness = 100 * time.Microsecond

// Bucket is the size of the bucket that a rate has: a packet, or else nothing could ever leave (tbf drops what is longer than its bucket),
// and what passes in the time that timers may be late. A larger one would hide queues:
// as much as it holds goes on to the line at once after a pause.
func (d Direction) Bucket() units.Bytes {
	late := d.Lateness
	if late == 0 {
		late = usualLateness
	}
	return d.frame() + amount(late, uint64(d.Rate)/8)
}

// amount is how many bytes pass in a time at a rate in bytes/s, rounded down.
func amount(t time.Duration, rate uint64) units.Bytes {
	hi, lo := bits.Mul64(uint64(t), rate)
	if hi >= uint64(time.Second) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return units.Bytes(min(q, math.MaxInt64/2))
}

// far is what arriving packets pass.
func (d Direction) far() []Qdisc {
	if !d.Line() {
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
		// The queue lets a packet go when its transmission begins. netem's own rate adds the time of it, packet by packet,
		// and spaces what left the queue in a burst.
		o.Rate, o.Overhead = uint64(d.Rate)/8, int32(d.Overhead)
	default:
		// Its rate would keep packets in order and so make the jitter of one that of all behind it.
		o.Latency += span(d.frame()+d.Overhead, uint64(d.Rate)/8)
	}
	return chain(o)
}

// inFlight is the most packets that the line holds, of the least size, twice: netem drops what is beyond its limit, silently.
func (d Direction) inFlight() uint32 {
	const (
		leastFrame = 60
		slack      = 1000 // netem's own default: for late timers
		unlimited  = 10_000_000
	)
	if d.Rate == 0 {
		return unlimited
	}
	longest := d.Delay + 20*d.Jitter + d.ReorderBy              // an exponential beyond 20 means is one in 5e8; the table ends before
	q := uint64(amount(longest, uint64(d.Rate)/8) + d.Bucket()) // what the bucket lets pass at once waits on the line
	return uint32(min(2*(q/leastFrame)+slack, math.MaxInt32))   // the kernel compares signed lengths
}

// chain puts each discipline below the one before it.
func chain(row ...Options) []Qdisc {
	out := make([]Qdisc, len(row))
	for i, o := range row {
		out[i] = Qdisc{Parent: Root, Handle: MakeHandle(uint16(i+1), 0), Options: o}
		if i > 0 {
			out[i].Parent = MakeHandle(uint16(i), 1)
		}
	}
	return out
}

// span is how long n bytes take at a rate in bytes/s, to the nanosecond below.
func span(n units.Bytes, rate uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(time.Second))
	if hi >= rate {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, rate)
	return time.Duration(min(q, math.MaxInt64))
}

// share is a probability as netem has it: the event happens when a random 32-bit number is not above it.
func share(p float64) uint32 { return uint32(math.Round(p * math.MaxUint32)) }

// refuse names what the kernel cannot honour of a direction that makes sense.
func (d Direction) refuse(kernel Capabilities) error {
	if err := kernel.need(d.needs()); err != nil {
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
		return refused("a rate of %d bit/s: it keeps rates in whole bytes per second, and the nearest below is off by more than a millionth", int64(d.Rate))
	case d.Bucket() > math.MaxUint32:
		return refused("a bucket of %d bytes, for a rate of %v and timers that come %v late: its field has 32 bits", d.Bucket(), d.Rate, d.Lateness)
	case d.Rate > 0 && span(d.Bucket()+d.Overhead, rate) > math.MaxUint32*kernel.Psched:
		return refused("a rate of %v: a packet of %d bytes takes longer than %v, the longest that tbf can express", d.Rate, d.frame(), math.MaxUint32*kernel.Psched)
	case d.RED != nil && !d.RED.ECN:
		return refused("early drops: queues mark ECN-capable packets, and drop at their limit alone")
	case d.Jitter > 0 && d.Reorder > 0:
		return refused("jitter together with reorder: netem has one distribution of delays; leave one out, or take datapath fabric")
	case d.Jitter > longestUnit/means:
		return refused("jitter of %v: netem's ends at %v", d.Jitter, longestUnit/means)
	case d.ReorderBy > longestUnit:
		return refused("packets that come up to %v late: netem's jitter ends at %v", d.ReorderBy, longestUnit)
	case d.Reorder > 0 && d.Reorder*tableSize < 1:
		return refused("a share of %g that comes late: netem's tables end at one in %d", d.Reorder, tableSize)
	case (d.Rate > 0 || d.Line()) && kernel.Tick > 50*time.Microsecond:
		return refused("a rate or delay: the kernel's timers have a resolution of %v (no high-resolution timers)", kernel.Tick)
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
