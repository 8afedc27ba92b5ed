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

	"weft/realtime"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/ports"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// How much is measured and how often it is repeated: other programs on the machine make a
// measurement worse, never better. Our own values.
const (
	measured  = 12 // maximum number of directions; one of each kind comes before the second of any kind
	tries     = 6
	probePort = 47611
)

// Finding is one measured property of a direction of a link.
type Finding struct {
	Link string
	measure.Finding
}

// Table prints findings as a table.
func Table(all []Finding) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "link\twhat\tasked\tmeasured")
	for _, f := range all {
		verdict := ""
		if !f.OK {
			verdict = "\toutside"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", f.Link, f.What, f.Asked, f.Measured, verdict)
	}
	_ = w.Flush() // writes to memory
	return b.String()
}

// differs reads a direction back from the kernel and returns the settings that differ from the
// applied ones.
func (c *carrier) differs(p int) ([]qdisc.Difference, error) {
	l := &c.lines[p]
	got, err := l.dir.Read(l.tree)
	return qdisc.Compare(l.tree, got), err
}

// mismatchError returns the error for links that do not have the lab's properties. quiet is the
// 90th percentile of timer lateness during the least disturbed of the failing measurements.
func mismatchError(all []Finding, quiet time.Duration) error {
	why := fmt.Sprintf("meanwhile one timer in ten of this machine fired %v late or later",
		quiet.Round(10*time.Microsecond))
	if quiet > measure.Stall {
		why = "this machine stalls: " + why
	}
	return fmt.Errorf("%w; %s. A larger dilation helps where the machine is too busy\n%s", errMissed, why, Table(all))
}

// verify reads every direction back and measures some: first one of each kind, by settings, then
// others.
func (c *carrier) verify(ctx context.Context) error {
	for p := range c.lines {
		different, err := c.differs(p)
		if err != nil {
			return c.of(p, err)
		}
		for _, d := range different {
			return c.of(p, fmt.Errorf("the kernel has other settings than the requested ones: %v", d))
		}
	}
	kept, quiet := true, time.Duration(math.MaxInt64)
	for _, p := range c.choose() {
		found, _, err := c.measureRepeatedly(ctx, p, c.direction(p))
		if err != nil {
			return c.of(p, err)
		}
		if !found.OK() {
			kept, quiet = false, min(quiet, found.Late)
		}
		for _, f := range found.Findings {
			c.findings = append(c.findings, Finding{c.between(p), f})
		}
		c.check(p, found)
		if !kept && len(c.cfg.Slower) > 0 { // the next dilation is tried anyway
			break
		}
	}
	if !kept {
		return mismatchError(c.findings, quiet)
	}
	return nil
}

// check adds the measurement of a direction to the summary of all.
func (c *carrier) check(p int, found *measure.Found) {
	k := &c.checked
	k.Measured, k.Directions = k.Measured+1, len(c.lines)
	k.Probes, k.Lost = k.Probes+int64(found.Sent), k.Lost+int64(found.Lost)
	if found.Rate == 0 {
		k.Unrated++
		return
	}
	delay := float64((found.Delay - found.Asked).Abs()) / c.cfg.Dilation
	k.DelayErrorNS = max(k.DelayErrorNS, delay)
	k.RateError = max(k.RateError, math.Abs(float64(found.Rate)/float64(c.direction(p).Rate)-1))
}

var errMissed = errors.New("links differ from the lab")

// measureRepeatedly measures a direction until it matches d, at most a fixed number of times, and
// returns the number of measurements.
func (c *carrier) measureRepeatedly(ctx context.Context, p int, d qdisc.Direction) (found *measure.Found, times int,
	err error) {
	for times < tries && (found == nil || !found.OK()) {
		again, err := c.examine(ctx, p, d)
		if err != nil {
			return nil, times, err
		}
		if found != nil {
			again.Keep(found)
		}
		found = again
		times++
	}
	return found, times, nil
}

// measure measures a direction in its present state.
func (c *carrier) measure(ctx context.Context, p int) realtime.Found {
	if p < 0 || p >= len(c.lines) {
		return realtime.Found{Error: fmt.Sprintf("port %d of %d", p, len(c.lines))}
	}
	if c.lines[p].down || c.lines[p].toHalted {
		return realtime.Found{Error: "it is down"}
	}
	different, err := c.differs(p)
	if err != nil {
		return realtime.Found{Error: c.of(p, err).Error()}
	}
	found, times, err := c.measureRepeatedly(ctx, p, c.direction(p))
	if err != nil {
		return realtime.Found{Error: c.of(p, err).Error()}
	}
	return c.inLab(found, different, times)
}

// inLab converts a result to lab time.
func (c *carrier) inLab(found *measure.Found, different []qdisc.Difference, times int) realtime.Found {
	var missed []string
	for _, d := range different {
		missed = append(missed, d.String())
	}
	for _, f := range found.Findings {
		if !f.OK {
			missed = append(missed, fmt.Sprintf("%s: %s for %s", f.What, f.Measured, f.Asked))
		}
	}
	lab := func(d time.Duration) units.Time { return units.Time(float64(units.FromDuration(d)) / c.cfg.Dilation) }
	return realtime.Found{
		Missed: strings.Join(missed, "; "), Tries: times,
		Rate: units.Bandwidth(float64(found.Rate) * c.cfg.Dilation), Delay: lab(found.Delay), Asked: lab(found.Asked),
		Lost: found.Lost, Sent: found.Sent, LossTold: found.LossTold(),
	}
}

// choose returns the ports to measure.
func (c *carrier) choose() (ports []int) {
	take := func(most int, all []int) {
		seen := map[string]bool{}
		for _, p := range all {
			d := c.direction(p)
			kind := fmt.Sprint(c.net.Ends[p].Host >= 0, c.net.Ends[p^1].Host >= 0, d.Rate, d.Delay, d.Limit,
				d.RED != nil, d.Loss, d.Jitter, d.Reorder, d.Duplicate)
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
	slices.Reverse(all) // so that the second of each kind is in another part of the network
	take(measured, all)
	slices.Sort(ports)
	return ports
}

// direction returns the requested settings of a port in real time.
func (c *carrier) direction(p int) qdisc.Direction {
	l := &c.lines[p]
	return ports.Real(l.port, &l.line, c.cfg.Dilation, c.mtu(), c.net.source(p), c.kernel)
}

// between names the two ends of a port's direction.
func (c *carrier) between(p int) string {
	return c.name(c.net.Ends[p]) + " > " + c.name(c.net.Ends[p^1])
}

// examine measures one direction against the settings d.
func (c *carrier) examine(ctx context.Context, p int, d qdisc.Direction) (*measure.Found, error) {
	s, r, err := c.probes(p)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	defer r.Close()
	return measure.Examine(ctx, s, r, d)
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
			err = s.Through(from.Interface) // whatever the routing table says
		}
		return err
	})
	if err != nil {
		r.Close()
	}
	return s, r, err
}
