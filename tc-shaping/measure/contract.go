package measure

import (
	"context"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

// Row is one thing that was asked of a direction, what was measured of it, and whether that is within its bound.
type Row struct {
	What, Asked, Measured, Bound string
	OK                           bool
}

// Table writes rows as a table with a heading, a line each; what is out of bounds says so.
func Table(rows []Row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tasked\tmeasured\tbound\t")
	for _, r := range rows {
		verdict := ""
		if !r.OK {
			verdict = "out of bounds"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.What, r.Asked, r.Measured, r.Bound, verdict)
	}
	_ = w.Flush() // a Builder takes everything
	return b.String()
}

// Kept reports whether all rows are within their bounds.
func Kept(rows []Row) bool {
	for _, r := range rows {
		if !r.OK {
			return false
		}
	}
	return true
}

// Bounds of the contract: the specification of the kernel's datapath. Delay: 3 % and 50 us.
const (
	rateBound  = 0.02
	delayShare = 0.03
	delayFixed = 50 * time.Microsecond
	markBound  = 0.05
	sigmas     = 3
)

// Counts of packets that the contract is measured with. Ours: a rate within a fraction of its bound, and no longer than needed.
const (
	spaced = 30  // that meet no queue
	busy   = 200 // that fill the line
)

// Verify measures a direction and holds it against what was asked for. Nothing else may be on the link, and the queue is empty
// before. It takes the time of some hundred packets of the MTU, and of a queue of RED.Max bytes where there are marks.
// An error says that nothing could be measured.
func Verify(ctx context.Context, s *Sender, r *Receiver, d qdisc.Direction) ([]Row, error) {
	v := verification{Direction: d, s: s, r: r}
	v.size = d.MTU
	if v.size == 0 {
		v.size = 1500
	}
	v.wire = v.size + qdisc.Ethernet
	if d.Rate > 0 {
		v.each = d.Rate.TransmitTime(v.wire + d.Overhead).Duration()
	}
	for _, step := range []func(context.Context) error{v.delay, v.rate, v.marks} {
		if err := step(ctx); err != nil {
			return v.rows, err
		}
	}
	v.loss()
	return v.rows, nil
}

// verification is a direction that is being measured.
type verification struct {
	qdisc.Direction
	s          *Sender
	r          *Receiver
	size, wire units.Bytes   // of a packet, as IP and as queues count it
	each       time.Duration // it takes on the line
	sent, lost int
	rows       []Row
}

func (v *verification) run(ctx context.Context, t Train) ([]Packet, error) {
	t.Size = v.size
	t.Wait = v.Delay + 20*v.Jitter + v.ReorderBy + time.Duration(t.Count)*v.each + 200*time.Millisecond
	return Run(ctx, v.s, v.r, t)
}

func (v *verification) delay(ctx context.Context) error {
	p, err := v.run(ctx, Train{Count: spaced, Gap: max(2*v.each, time.Millisecond)})
	if err != nil {
		return err
	}
	v.sent, v.lost = v.sent+len(p), v.lost+Lost(p)
	if v.Loss > 0.9 || v.Reorder > 0.4 {
		return nil // a median says nothing of the line's delay
	}
	asked := v.Delay
	if v.line() {
		asked += v.each
	}
	bound := time.Duration(delayShare*float64(asked)) + delayFixed
	if v.Jitter > 0 { // the median of an exponential, and what 30 draws of one may be off
		asked += time.Duration(math.Ln2 * float64(v.Jitter))
		bound += time.Duration(sigmas * float64(v.Jitter) / math.Sqrt(spaced))
	}
	got := Delay(p, 0.5)
	v.row("one-way delay", asked, got, "+-"+bound.Round(time.Microsecond).String(), (got-asked).Abs() <= bound)
	return nil
}

// line reports whether the time of a transmission is part of the delay (qdisc.Direction: without a line, packets arrive as they leave).
func (v *verification) line() bool {
	return v.Delay > 0 || v.Jitter > 0 || v.Loss > 0 || v.Duplicate > 0 || v.Corrupt > 0 || v.Reorder > 0
}

func (v *verification) rate(ctx context.Context) error {
	if v.Rate == 0 {
		return nil
	}
	// As much as fits with some to spare waits from the start, so that the line stays busy should the sender be held up.
	p, err := v.run(ctx, Train{Count: busy, Burst: int(min(busy, v.Limit*3/4/v.wire)), Gap: v.each})
	if err != nil {
		return err
	}
	v.sent, v.lost = v.sent+len(p), v.lost+Lost(p)
	if v.Loss > 0 || v.Jitter > 0 || v.Reorder > 0 { // gaps in arrivals are not the rate's
		return nil
	}
	got := Rate(p, busy/4, v.wire+v.Overhead)
	v.row("rate", v.Rate, got, "+-2%", math.Abs(float64(got)/float64(v.Rate)-1) <= rateBound)
	return nil
}

// marks fills the queue to beyond Max at once and looks at who was marked at which length.
func (v *verification) marks(ctx context.Context) error {
	if v.RED == nil || v.Jitter > 0 || v.Reorder > 0 {
		return nil
	}
	bucket := v.Bucket() // passes at once, and waits on the line instead
	count := int(min(v.RED.Max+bucket+20*v.wire, v.Limit) / v.wire)
	p, err := v.run(ctx, Train{Count: count})
	if err != nil {
		return err
	}
	below, between, above := 0, []Sample(nil), [2]int{}
	for _, s := range Queues(p, v.Delay+v.Rate.TransmitTime(bucket+v.Overhead).Duration(), v.wire) {
		switch {
		case s.Queue < v.RED.Min-v.wire:
			below += one(s.Marked)
		case s.Queue > v.RED.Max+2*v.wire:
			above[0], above[1] = above[0]+1, above[1]+one(s.Marked)
		case s.Queue >= v.RED.Min && s.Queue <= v.RED.Max:
			between = append(between, s)
		}
	}
	v.row("marked below kmin", 0, below, "a packet", below == 0)
	if above[0] > 0 {
		v.row("marked above kmax", above[0], above[1], "a packet", above[1] == above[0])
	}
	if v.RED.Max == v.RED.Min || len(between) == 0 {
		return nil
	}
	got, want := Share(between, func(q units.Bytes) float64 {
		return v.RED.Pmax * float64(q-v.RED.Min) / float64(v.RED.Max-v.RED.Min)
	})
	bound := markBound + sigmas*math.Sqrt(want*(1-want)/float64(len(between)))
	v.row("share marked between", fmt.Sprintf("%.3f", want), fmt.Sprintf("%.3f of %d", got, len(between)), fmt.Sprintf("+-%.3f", bound), math.Abs(got-want) <= bound)
	return nil
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (v *verification) loss() {
	n := float64(v.sent)
	bound := sigmas * math.Sqrt(n*v.Loss*(1-v.Loss))
	v.row("lost of "+fmt.Sprint(v.sent), fmt.Sprintf("%.1f", n*v.Loss), v.lost, fmt.Sprintf("+-%.1f", bound), math.Abs(float64(v.lost)-n*v.Loss) <= bound)
}

func (v *verification) row(what string, asked, measured any, bound string, ok bool) {
	v.rows = append(v.rows, Row{What: what, Asked: fmt.Sprint(asked), Measured: fmt.Sprint(measured), Bound: bound, OK: ok})
}
