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

// How far a direction may be from what was asked: the specification of the kernel's datapath. Where marks begin: a packet.
const (
	rateBound   = 0.02
	delayBound  = 0.03
	delaySlack  = 50 * time.Microsecond
	shareSigmas = 3
	markPoints  = 0.05 // of the share of marks between the thresholds
)

// What a direction is examined with. Ours: as little as tells it from what it may not be.
const (
	rateTime   = 100 * time.Millisecond        // of a train at the full rate, at least
	ratePacket = 24                            // packets of one, at least
	mostPacket = 600                           // and at most
	idlePacket = 8                             // packets on an idle line
	lossPacket = 400                           // packets at least, where some are lost by order
	lossMost   = 4000                          // and at most
	lossPower  = 4 * shareSigmas * shareSigmas // as many as have three standard deviations be half of the loss: this, by the loss
	probeSlack = 250 * time.Millisecond        // for the last packets of a train
)

// Finding is one property of a direction, as asked and as measured.
type Finding struct {
	What, Asked, Measured string
	OK                    bool // within its bound
}

// Properties that more is known of than their findings say.
const (
	rateProperty    = "rate"
	lossProperty    = "loss"
	betweenProperty = "marked between"
)

// Found is what a direction is really like.
type Found struct {
	Findings   []Finding
	Rate       units.Bandwidth // 0: not measured, as where packets overtake each other
	Delay      time.Duration   // of a full packet on the idle line, its transmission included
	Asked      time.Duration   // the same, as it should be
	Lost, Sent int             // packets of the trains that loss is told from
	// Late is by how much one timer in ten of the machine came too late meanwhile, or later: see Stall.
	Late time.Duration

	shares []share
}

// OK reports whether everything is as asked.
func (f *Found) OK() bool {
	for _, p := range f.Findings {
		if !p.OK {
			return false
		}
	}
	return true
}

// Keep takes of each property what an earlier examination of the same direction found as asked: other programs of a machine make a
// measurement worse, never better. Chance does not: shares of packets are of all that both examinations sent. Of Late the lesser stays.
func (f *Found) Keep(before *Found) {
	f.Late = min(f.Late, before.Late)
	for _, p := range before.Findings {
		if i := f.find(p.What); i < 0 {
			f.Findings = append(f.Findings, p)
		} else if p.OK {
			switch f.Findings[i] = p; p.What {
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

// find returns where a property is among the findings; -1: nowhere.
func (f *Found) find(what string) int {
	return slices.IndexFunc(f.Findings, func(p Finding) bool { return p.What == what })
}

// Examine measures a direction and holds it against what was asked for. Nothing else may be on the link, and the queue is empty
// before. It takes the time of some ten to some hundred packets of the MTU, and of a queue of RED.Max bytes where there are marks.
// An error says that nothing could be measured.
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

// exam is a direction that is being measured.
type exam struct {
	d     qdisc.Direction
	s     *Sender
	r     *Receiver
	size  units.Bytes // of the packets
	found Found
}

func (x *exam) add(what, asked, got string, ok bool) {
	x.found.Findings = append(x.found.Findings, Finding{what, asked, got, ok})
}

func (x *exam) addShare(s share) {
	x.found.shares = append(x.found.shares, s)
	x.found.Findings = append(x.found.Findings, s.finding())
}

// packet is what one packet takes of a queue.
func (x *exam) packet() units.Bytes { return x.size + qdisc.Ethernet }

// each is how long one takes on the line.
func (x *exam) each() time.Duration { return x.takes(x.packet()) }

// takes is how long so much of a queue takes at the rate.
func (x *exam) takes(queued units.Bytes) time.Duration {
	if x.d.Rate == 0 {
		return 0
	}
	return time.Duration(float64(queued+x.d.Overhead) * 8e9 / float64(x.d.Rate))
}

// transit is from the beginning of the transmission of so much of a queue to its arrival.
func (x *exam) transit(queued units.Bytes) time.Duration {
	if !x.d.Line() {
		return x.d.Delay
	}
	return x.d.Delay + x.takes(queued)
}

// late is how much later than the delay packets may come, by order.
func (x *exam) late() time.Duration { return 20*x.d.Jitter + x.d.ReorderBy }

// disorder says that packets overtake each other, so that the times between arrivals say nothing of the rate.
func (x *exam) disorder() bool { return x.d.Jitter > 0 || x.d.Reorder > 0 }

// idle measures the delay of packets that find nobody waiting: the least of them, as what is more is the machine's.
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
	x.add("delay and one packet", asked.Round(time.Microsecond).String(), got.Round(time.Microsecond).String(), ok)
	return nil
}

// busy measures the rate, and where a queue begins to mark.
func (x *exam) busy(ctx context.Context) error {
	if x.d.Rate == 0 {
		return nil
	}
	count := min(mostPacket, max(ratePacket, int(rateTime/max(1, x.each()))))
	room := int(x.d.Limit/x.packet()) - 1
	burst := min(count, room)
	bucket := x.d.Bucket()   // passes at once, and waits on the line instead
	fills := units.Bytes(-1) // the queue, for marks; -1: nothing can be told of them
	if red := x.d.RED; red != nil && !x.disorder() {
		const beyond = 16 // packets: to tell a queue that marks all from one that marks most
		upTo := red.Max
		if n := int((upTo+bucket)/x.packet()) + beyond; n <= min(room, mostPacket) {
			burst = n
		} else {
			burst = min(room, mostPacket)
			upTo = units.Bytes(burst-beyond)*x.packet() - bucket
		}
		count = max(count, burst)
		if fills = upTo; upTo < red.Min {
			fills = -1
			x.add("marks", fmt.Sprintf("from %v", red.Min), fmt.Sprintf("not measured: no more than %d packets are sent at once", burst), true)
		}
	}
	t := Train{Count: count, Size: x.size, Burst: max(1, burst), Gap: x.each(), Wait: x.d.Delay + x.late() + time.Duration(count)*x.each() + probeSlack}
	packets, err := Run(ctx, x.s, x.r, t)
	if err != nil {
		return err
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
		if x.d.Loss > 0 { // behind the queue, which what is lost waited in
			waited(packets)
		}
		x.marks(Queues(packets, x.transit(bucket), x.packet()), fills)
	}
	return nil
}

// losses measures the share of packets that a line loses by order.
func (x *exam) losses(ctx context.Context) error {
	if x.d.Loss == 0 || x.d.Loss == 1 {
		return nil
	}
	const small = 64
	count := int(min(lossMost, max(lossPacket, lossPower/x.d.Loss)))
	gap := max(time.Millisecond/4, x.takes(small+qdisc.Ethernet)) // so that none waits
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
