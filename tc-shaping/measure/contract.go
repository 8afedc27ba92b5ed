package measure

import (
	"context"
	"fmt"
	"math"
	"time"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

// How far a direction may be from what was asked: the specification of the kernel's datapath. Marks: a packet.
const (
	rateBound  = 0.02
	delayBound = 0.03
	delaySlack = 50 * time.Microsecond
	lossSigmas = 3
)

// What a direction is examined with. Ours: as little as tells it from what it may not be.
const (
	rateTime   = 100 * time.Millisecond // of a train at the full rate, at least
	ratePacket = 24                     // packets of one, at least
	mostPacket = 600                    // and at most
	idlePacket = 8                      // packets on an idle line
	lossPacket = 400
	probeSlack = 250 * time.Millisecond // for the last packets of a train
)

// Finding is one property of a direction, as asked and as measured.
type Finding struct {
	What, Asked, Measured string
	OK                    bool // within its bound
}

// The property that Rate is about.
const rateProperty = "rate"

// Found is what a direction is really like.
type Found struct {
	Findings   []Finding       // the same properties in the same order for the same direction
	Rate       units.Bandwidth // 0: not measured, as where packets overtake each other
	Delay      time.Duration   // of a full packet on the idle line, its transmission included
	Asked      time.Duration   // the same, as it should be
	Lost, Sent int             // packets of the train that loss is told from
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

// Keep takes of each property what an earlier examination found as asked: other programs of a machine make a measurement worse,
// never better.
func (f *Found) Keep(before *Found) {
	for i, p := range before.Findings {
		if !p.OK {
			continue
		}
		if f.Findings[i] = p; p.What == rateProperty {
			f.Rate = before.Rate
		}
	}
}

// Examine measures a direction and holds it against what was asked for. Nothing else may be on the link, and the queue is empty
// before. It takes the time of some ten to some hundred packets of the MTU, and of a queue of RED.Max bytes where there are marks.
// An error says that nothing could be measured.
func Examine(ctx context.Context, s *Sender, r *Receiver, d qdisc.Direction) (*Found, error) {
	x := exam{d: d, s: s, r: r, size: d.MTU}
	if x.size == 0 {
		x.size = 1500
	}
	for _, test := range []func(context.Context) error{x.idle, x.busy, x.losses} {
		if err := test(ctx); err != nil {
			return nil, err
		}
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
	bucket := x.d.Bucket() // passes at once, and waits on the line instead
	marks := false
	if red := x.d.RED; red != nil {
		if n := int((red.Max+bucket)/x.packet()) + 4; n <= min(room, mostPacket) {
			marks = true
			burst = n
			count = max(count, n)
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
		x.add("loss", "0", fmt.Sprintf("%d of %d", lost, len(packets)), lost == 0)
	}
	if marks {
		x.onset(Queues(packets, x.transit(bucket), x.packet()))
	}
	return nil
}

// onset compares where marks begin and from where on all packets have one, with a packet to spare at either.
func (x *exam) onset(samples []Sample) {
	early, missing, least := 0, 0, units.Bytes(-1)
	for _, s := range samples {
		switch {
		case s.Marked && s.Queue < x.d.RED.Min-x.packet():
			early++
		case !s.Marked && s.Queue > x.d.RED.Max+x.packet() && x.d.RED.Pmax == 1:
			missing++
		}
		if s.Marked && (least < 0 || s.Queue < least) {
			least = s.Queue
		}
	}
	got := "none"
	if least >= 0 {
		got = fmt.Sprintf("from %v; %d too early, %d missing", least, early, missing)
	}
	x.add("marks", fmt.Sprintf("from %v, all from %v", x.d.RED.Min, x.d.RED.Max), got, early == 0 && missing == 0)
}

// losses measures the share of packets that a line loses by order.
func (x *exam) losses(ctx context.Context) error {
	if x.d.Loss == 0 || x.d.Loss == 1 {
		return nil
	}
	const small = 64
	t := Train{Count: lossPacket, Size: small, Gap: time.Millisecond / 4, Wait: x.d.Delay + x.late() + probeSlack}
	packets, err := Run(ctx, x.s, x.r, t)
	if err != nil {
		return err
	}
	x.found.Lost, x.found.Sent = Lost(packets), lossPacket
	got := float64(x.found.Lost) / lossPacket
	bound := lossSigmas * math.Sqrt(x.d.Loss*(1-x.d.Loss)/lossPacket)
	x.add("loss", fmt.Sprintf("%.3g %%", 100*x.d.Loss), fmt.Sprintf("%.3g %% of %d", 100*got, lossPacket), math.Abs(got-x.d.Loss) <= bound+1.0/lossPacket)
	return nil
}
