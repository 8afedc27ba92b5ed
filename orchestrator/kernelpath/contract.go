package kernelpath

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weft/fabric/realtime"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// How far a link may be from what was asked.
const (
	rateBound  = 0.02
	delayBound = 0.03
	delaySlack = 50 * time.Microsecond
	lossSigmas = 3
)

// What is measured, and how often it is tried: other programs of the machine make a measurement worse, never better. Ours.
const (
	measured   = 12 // directions at most, of each kind one before any a second time
	tries      = 6
	rateTime   = 100 * time.Millisecond // of a train at the full rate, at least
	ratePacket = 24                     // packets of one, at least
	mostPacket = 600                    // and at most
	idlePacket = 8                      // packets on an idle line
	lossPacket = 400
	probePort  = 47611
	probeSlack = 250 * time.Millisecond // for the last packets of a train
)

// Finding is one property of a link, as asked and as measured.
type Finding struct {
	Link, What, Asked, Measured string
	OK                          bool
}

// Table prints findings.
func Table(all []Finding) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "link\twhat\tasked\tmeasured\t")
	for _, f := range all {
		verdict := ""
		if !f.OK {
			verdict = "outside"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.Link, f.What, f.Asked, f.Measured, verdict)
	}
	_ = w.Flush() // to memory
	return b.String()
}

// verify reads every direction back, and measures some: of each kind, as settings go, one, and then others.
func (c *carrier) verify(ctx context.Context) error {
	for p := range c.lines {
		got, err := c.lines[p].way.Read()
		if err != nil {
			return c.of(p, err)
		}
		for _, d := range qdisc.Compare(c.lines[p].tree, got) {
			return c.of(p, fmt.Errorf("the kernel has something else than it was told: %v", d))
		}
	}
	broken := false
	for _, p := range c.choose() {
		findings, _, err := c.insist(ctx, p)
		if err != nil {
			return c.of(p, err)
		}
		broken = broken || !allOK(findings)
		c.findings = append(c.findings, findings...)
	}
	if broken {
		return errors.New("links are not what the lab asks for; is the machine too busy? A larger dilation helps then\n" + Table(c.findings))
	}
	return nil
}

// insist measures a direction until it is as asked, but not for ever.
func (c *carrier) insist(ctx context.Context, p int) (findings []Finding, found realtime.Found, err error) {
	for try := range tries {
		x, err := c.examine(ctx, p)
		if err != nil {
			return nil, found, err
		}
		best := found
		found = x.got
		if found.Tries = try + 1; try > 0 && findings[1].OK { // the rate, which hardly ever is too good
			found.Rate = best.Rate
		}
		if findings = better(findings, x.found); allOK(findings) {
			break
		}
	}
	var missed []string
	for _, f := range findings {
		if !f.OK {
			missed = append(missed, fmt.Sprintf("%s: %s for %s", f.What, f.Measured, f.Asked))
		}
	}
	found.Missed = strings.Join(missed, "; ")
	return findings, found, nil
}

// measure answers what a direction is like at present.
func (c *carrier) measure(p int) realtime.Found {
	if p < 0 || p >= len(c.lines) {
		return realtime.Found{Error: fmt.Sprintf("port %d of %d", p, len(c.lines))}
	}
	if c.lines[p].down || c.deaf(p) {
		return realtime.Found{Error: "it is down"}
	}
	_, found, err := c.insist(context.Background(), p)
	if err != nil {
		found.Error = c.of(p, err).Error()
	}
	return found
}

// better keeps of each property the finding that is as asked, if there is one.
func better(before, now []Finding) []Finding {
	for i := range now {
		if i < len(before) && before[i].OK {
			now[i] = before[i]
		}
	}
	return now
}

func allOK(all []Finding) bool {
	for _, f := range all {
		if !f.OK {
			return false
		}
	}
	return true
}

// choose returns the ports that are measured.
func (c *carrier) choose() (ports []int) {
	take := func(most int, all []int) {
		seen := map[string]bool{}
		for _, p := range all {
			d := c.direction(p)
			kind := fmt.Sprint(c.net.Ends[p].Host >= 0, c.net.Ends[p^1].Host >= 0, d.Rate, d.Delay, d.Limit, d.RED != nil, d.Loss, d.Jitter, d.Reorder, d.Duplicate)
			if !seen[kind] && len(ports) < most && !slices.Contains(ports, p) {
				seen[kind] = true
				ports = append(ports, p)
			}
		}
	}
	all := make([]int, len(c.lines))
	for p := range all {
		all[p] = p
	}
	take(measured, all)
	slices.Reverse(all) // the second of each kind is from elsewhere in the network
	take(measured, all)
	slices.Sort(ports)
	return ports
}

// direction is what a port should be in real time.
func (c *carrier) direction(p int) qdisc.Direction {
	l := &c.lines[p]
	return Real(l.port, &l.line, c.cfg.Dilation, c.mtu(), c.net.Ends[p].Host >= 0)
}

// examine measures one direction.
func (c *carrier) examine(ctx context.Context, p int) (*exam, error) {
	s, r, err := c.probes(p)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	defer r.Close()
	x := &exam{dilation: c.cfg.Dilation, d: c.direction(p), name: c.name(c.net.Ends[p]) + " > " + c.name(c.net.Ends[p^1]), size: c.mtu(), s: s, r: r}
	for _, test := range []func(context.Context) error{x.idle, x.busy, x.losses} {
		if err := test(ctx); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// probes opens the sockets of a measurement at both ends of a direction.
func (c *carrier) probes(p int) (s *measure.Sender, r *measure.Receiver, err error) {
	from, to := c.net.Ends[p], c.net.Ends[p^1]
	at := netip.AddrPortFrom(c.addr(to), probePort)
	err = c.proc(to).Do(func() (err error) {
		r, err = measure.NewReceiver(at)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	err = c.proc(from).Do(func() (err error) {
		if s, err = measure.NewSender(at); err == nil && from.Switch >= 0 && to.Switch >= 0 {
			err = s.Through(from.Interface) // whatever ways lead there
		}
		return err
	})
	if err != nil {
		r.Close()
	}
	return s, r, err
}

// exam is the measurement of one direction.
type exam struct {
	d     qdisc.Direction
	name  string
	size  units.Bytes // of the packets
	s     *measure.Sender
	r     *measure.Receiver
	found []Finding

	dilation float64
	got      realtime.Found // in lab time
}

// lab is a real time in lab time.
func (x *exam) lab(d time.Duration) units.Time {
	return units.Time(float64(units.FromDuration(d)) / x.dilation)
}

func (x *exam) add(what, asked, got string, ok bool) {
	x.found = append(x.found, Finding{x.name, what, asked, got, ok})
}

// each is how long a packet of the probes takes on the line.
func (x *exam) each() time.Duration {
	return time.Duration(float64(x.wire()) * 8e9 / float64(x.d.Rate))
}

// wire is what one takes of the line.
func (x *exam) wire() units.Bytes { return x.size + qdisc.Ethernet + x.d.Overhead }

// late is how much later than the delay packets may come, by order.
func (x *exam) late() time.Duration { return 20*x.d.Jitter + x.d.ReorderBy }

// idle measures the delay of packets that find nobody waiting: the least of them, as what is more is the machine's.
func (x *exam) idle(ctx context.Context) error {
	t := measure.Train{Count: idlePacket, Size: x.size, Gap: x.each() + x.each()/2, Wait: x.d.Delay + x.late() + probeSlack}
	packets, err := measure.Run(ctx, x.s, x.r, t)
	if err != nil {
		return err
	}
	got, asked := measure.Delay(packets, 0), x.d.Delay+x.each()
	x.got.Delay, x.got.Asked = x.lab(got), x.lab(asked)
	bound := delaySlack + time.Duration(delayBound*float64(asked))
	if x.d.Jitter > 0 || x.d.Reorder > 0 {
		bound += x.late() + x.each()
	}
	ok := got > 0 && got >= asked-bound && got <= asked+bound
	x.add("delay and one packet", asked.Round(time.Microsecond).String(), got.Round(time.Microsecond).String(), ok)
	return nil
}

// busy measures the rate, and where a queue begins to mark.
func (x *exam) busy(ctx context.Context) error {
	count := min(mostPacket, max(ratePacket, int(rateTime/max(1, x.each()))))
	room := int(x.d.Limit/(x.size+qdisc.Ethernet)) - 1
	burst := min(count, room)
	marks := false
	if red := x.d.RED; red != nil {
		if n := int(red.Max/(x.size+qdisc.Ethernet)) + 6; n <= min(room, mostPacket) {
			marks = true
			burst = n
			count = max(count, n)
		}
	}
	t := measure.Train{Count: count, Size: x.size, Burst: max(1, burst), Gap: x.each(), Wait: x.d.Delay + x.late() + time.Duration(count)*x.each() + probeSlack}
	packets, err := measure.Run(ctx, x.s, x.r, t)
	if err != nil {
		return err
	}
	if x.d.Jitter == 0 && x.d.Reorder == 0 {
		rate := measure.Rate(packets, 2, x.wire())
		x.got.Rate = units.Bandwidth(float64(rate) * x.dilation)
		off := math.Abs(float64(rate)-float64(x.d.Rate)) / float64(x.d.Rate)
		x.add("rate", x.d.Rate.String(), rate.String(), off <= rateBound)
	}
	if x.d.Loss == 0 {
		x.got.Lost, x.got.Sent = measure.Lost(packets), len(packets)
		x.add("loss", "0", fmt.Sprintf("%d of %d", measure.Lost(packets), len(packets)), measure.Lost(packets) == 0)
	}
	if marks {
		x.onset(packets)
	}
	return nil
}

// onset compares where marks begin and from where on all packets have one, with a packet to spare at either.
func (x *exam) onset(packets []measure.Packet) {
	packet := x.size + qdisc.Ethernet
	samples := measure.Queues(packets, x.d.Delay+x.each(), packet)
	early, missing, least := 0, 0, units.Bytes(-1)
	for _, s := range samples {
		switch {
		case s.Marked && s.Queue < x.d.RED.Min-packet:
			early++
		case !s.Marked && s.Queue > x.d.RED.Max+packet && x.d.RED.Pmax == 1:
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
	t := measure.Train{Count: lossPacket, Size: small, Gap: time.Millisecond / 4, Wait: x.d.Delay + x.late() + probeSlack}
	packets, err := measure.Run(ctx, x.s, x.r, t)
	if err != nil {
		return err
	}
	got := float64(measure.Lost(packets)) / lossPacket
	x.got.Lost, x.got.Sent = measure.Lost(packets), lossPacket
	bound := lossSigmas * math.Sqrt(x.d.Loss*(1-x.d.Loss)/lossPacket)
	x.add("loss", fmt.Sprintf("%.3g %%", 100*x.d.Loss), fmt.Sprintf("%.3g %% of %d", 100*got, lossPacket), math.Abs(got-x.d.Loss) <= bound+1.0/lossPacket)
	return nil
}
