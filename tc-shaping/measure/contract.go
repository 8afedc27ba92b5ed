package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

// The largest accepted differences between a direction's measured and requested properties: the
// specification of the kernel datapath. Marks must start within one packet of the threshold.
const (
	rateBound   = 0.02
	delayBound  = 0.03
	delaySlack  = 50 * time.Microsecond
	shareSigmas = 3
	markPoints  = 0.05 // of the share of marks between the thresholds
)

// The size of an examination. Our own values: the smallest that tell a good direction from a bad
// one.
const (
	rateTime   = 100 * time.Millisecond // minimum duration of a train at the full rate
	ratePacket = 24                     // minimum number of packets of such a train
	maxPackets = 600                    // maximum number of packets of such a train
	idlePacket = 8                      // packets on an idle link
	lossPacket = 400                    // minimum number of packets to measure loss
	lossMost   = 4000                   // maximum number of packets to measure loss
	// lossPower, divided by the loss, is the number of packets for which three standard deviations
	// are half the loss.
	lossPower  = 4 * shareSigmas * shareSigmas
	probeSlack = 250 * time.Millisecond // wait for the last packets of a train
)

// Finding is one property of a direction, as requested and as measured.
type Finding struct {
	What, Asked, Measured string
	OK                    bool // within its bound
}

// Properties with values beyond their Finding.
const (
	delayProperty   = "delay and one packet"
	rateProperty    = "rate"
	lossProperty    = "loss"
	betweenProperty = "marked between"
)

// Found is the result of examining a direction.
type Found struct {
	Findings   []Finding
	Rate       units.Bandwidth // 0 if not measured, for example because packets overtake each other
	Delay      time.Duration   // one-way delay of a full packet on the idle link, including its transmission
	Asked      time.Duration   // requested value of Delay
	Lost, Sent int             // packets of the trains that measured loss
	// Late is the 90th percentile of the lateness of the machine's timers during the examination.
	// See Stall.
	Late time.Duration

	shares []share
}

// OK reports whether all properties are within their bounds.
func (f *Found) OK() bool {
	for _, p := range f.Findings {
		if !p.OK {
			return false
		}
	}
	return true
}

// LossTold reports whether loss was requested and measured with enough packets to tell it from
// none.
func (f *Found) LossTold() bool {
	return slices.ContainsFunc(f.shares, func(s share) bool {
		low, _ := s.bounds()
		return s.what == lossProperty && low > 0
	})
}

// Keep adopts each property that an earlier examination of the same direction found within its
// bound: other programs on the machine make a measurement worse, never better. This does not hold
// for random events, so shares of packets are pooled over both examinations. Late becomes the
// smaller of the two.
func (f *Found) Keep(before *Found) {
	f.Late = min(f.Late, before.Late)
	for _, p := range before.Findings {
		if i := f.find(p.What); i < 0 {
			f.Findings = append(f.Findings, p)
		} else if p.OK {
			switch f.Findings[i] = p; p.What {
			case delayProperty:
				f.Delay = before.Delay
			case rateProperty:
				f.Rate = before.Rate
			case lossProperty:
				f.Lost, f.Sent = before.Lost, before.Sent
			}
		}
	}
	for _, s := range before.shares {
		i := slices.IndexFunc(f.shares, func(o share) bool { return o.what == s.what })
		if i < 0 {
			f.shares = append(f.shares, s)
			continue
		}
		o := &f.shares[i]
		o.pool(s)
		f.Findings[f.find(s.what)] = o.finding()
		if s.what == lossProperty {
			f.Lost, f.Sent = o.hits, o.of
		}
	}
}

// find returns the index of a property's finding, or -1.
func (f *Found) find(what string) int {
	return slices.IndexFunc(f.Findings, func(p Finding) bool { return p.What == what })
}

// Examine measures a direction and compares it with the requested settings d. The link must carry
// nothing else, and its queue must be empty. It takes the time of ten to a few hundred packets of
// MTU size, and of a queue of RED.Max bytes if d marks. An error means that nothing could be
// measured.
func Examine(ctx context.Context, s *Sender, r *Receiver, d qdisc.Direction) (*Found, error) {
	x := exam{d: d, s: s, r: r, size: d.MTU}
	if x.size == 0 {
		x.size = 1500
	}
	late := watch()
	var err error
	for _, test := range []func(context.Context) error{x.idle, x.busy, x.losses} {
		if err == nil {
			err = test(ctx)
		}
	}
	if x.found.Late = late(); err != nil {
		return nil, err
	}
	return &x.found, nil
}

// exam is an examination in progress.
type exam struct {
	d     qdisc.Direction
	s     *Sender
	r     *Receiver
	size  units.Bytes // of a packet
	found Found
}

func (x *exam) add(what, asked, got string, ok bool) {
	x.found.Findings = append(x.found.Findings, Finding{what, asked, got, ok})
}

func (x *exam) addShare(s share) {
	x.found.shares = append(x.found.shares, s)
	x.found.Findings = append(x.found.Findings, s.finding())
}

// packet returns the size of a packet in a queue.
func (x *exam) packet() units.Bytes { return x.size + qdisc.Ethernet }

// each returns the transmission time of a packet.
func (x *exam) each() time.Duration { return x.takes(x.packet()) }

// takes returns the transmission time of queued bytes.
func (x *exam) takes(queued units.Bytes) time.Duration {
	if x.d.Rate == 0 {
		return 0
	}
	return time.Duration(float64(queued+x.d.Overhead) * 8e9 / float64(x.d.Rate))
}

// transit returns the time from the start of the transmission of queued bytes to their arrival.
func (x *exam) transit(queued units.Bytes) time.Duration {
	if !x.d.NeedsNetem() && !x.d.AtEnds {
		return x.d.Delay
	}
	return x.d.Delay + x.takes(queued)
}

// late returns the largest requested extra delay of a packet.
func (x *exam) late() time.Duration { return 20*x.d.Jitter + x.d.ReorderBy }

// disorder reports whether packets overtake each other, so that the gaps between arrivals do not
// show the rate.
func (x *exam) disorder() bool { return x.d.Jitter > 0 || x.d.Reorder > 0 }

// idle measures the delay of packets that find an empty queue. It takes the minimum, because the
// rest is caused by the machine.
func (x *exam) idle(ctx context.Context) error {
	t := Train{Count: idlePacket, Size: x.size, Gap: x.each() + x.each()/2, Wait: x.d.Delay + x.late() + probeSlack}
	packets, err := Run(ctx, x.s, x.r, t)
	if err != nil {
		return err
	}
	got, asked := Delay(packets, 0), x.transit(x.packet())
	x.found.Delay, x.found.Asked = got, asked
	bound := delaySlack + time.Duration(delayBound*float64(asked))
	if x.disorder() {
		bound += x.late() + x.each()
	}
	ok := got > 0 && got >= asked-bound && got <= asked+bound
	x.add(delayProperty, asked.Round(time.Microsecond).String(), got.Round(time.Microsecond).String(), ok)
	return nil
}

// busy measures the rate, and the queue length at which marks start.
func (x *exam) busy(ctx context.Context) error {
	if x.d.Rate == 0 {
		return nil
	}
	count := min(maxPackets, max(ratePacket, int(rateTime/max(1, x.each()))))
	room := int(x.d.Limit/x.packet()) - 1
	burst := min(count, room)
	bucket := x.d.Burst()    // passes the queue and waits on the link
	fills := units.Bytes(-1) // queue length that the train builds up, for marks; -1: too short to judge marks
	if red := x.d.RED; red != nil && !x.disorder() {
		const beyond = 16 // packets that tell a queue that marks all from one that marks most
		upTo := red.Max
		if n := int((upTo+bucket)/x.packet()) + beyond; n <= min(room, maxPackets) {
			burst = n
		} else {
			burst = min(room, maxPackets)
			upTo = units.Bytes(burst-beyond)*x.packet() - bucket
		}
		count = max(count, burst)
		if fills = upTo; upTo < red.Min {
			fills = -1
			x.add("marks", fmt.Sprintf("from %v", red.Min), fmt.Sprintf("not measured: no more than %d packets are "+
				"sent at once", burst), true)
		}
	}
	t := Train{Count: count, Size: x.size, Burst: max(1, burst), Gap: x.each(), Wait: x.d.Delay + x.late() +
		time.Duration(count)*x.each() + probeSlack}
	packets, err := Run(ctx, x.s, x.r, t)
	if err != nil {
		return err
	}
	if x.d.Loss > 0 { // loss happens behind the queue: lost packets queued too
		waited(packets)
	}
	if !x.disorder() {
		rate := Rate(packets, int(bucket/x.packet()), x.packet()+x.d.Overhead)
		x.found.Rate = rate
		off := math.Abs(float64(rate)-float64(x.d.Rate)) / float64(x.d.Rate)
		x.add(rateProperty, x.d.Rate.String(), rate.String(), off <= rateBound)
	}
	if lost := Lost(packets); x.d.Loss == 0 {
		x.found.Lost, x.found.Sent = lost, len(packets)
		x.add(lossProperty, "0", fmt.Sprintf("%d of %d", lost, len(packets)), lost == 0)
	}
	if fills >= 0 {
		estimate := Queues
		if x.d.RED.Leaving {
			estimate = Left
		}
		x.marks(estimate(packets, x.transit(bucket), x.packet()), fills)
	}
	return nil
}

// losses measures the share of packets that the link loses as requested.
func (x *exam) losses(ctx context.Context) error {
	if x.d.Loss == 0 || x.d.Loss == 1 {
		return nil
	}
	const small = 64
	count := int(min(lossMost, max(lossPacket, lossPower/x.d.Loss)))
	gap := max(time.Millisecond/4, x.takes(small+qdisc.Ethernet)) // so that no packet queues
	t := Train{Count: count, Size: small, Gap: gap, Wait: x.d.Delay + x.late() + probeSlack}
	packets, err := Run(ctx, x.s, x.r, t)
	if err != nil {
		return err
	}
	s := share{what: lossProperty}
	for _, p := range packets {
		s.add(p.Arrived == 0, x.d.Loss, x.d.Loss, x.d.Loss)
	}
	x.found.Lost, x.found.Sent = s.hits, s.of
	x.addShare(s)
	return nil
}
