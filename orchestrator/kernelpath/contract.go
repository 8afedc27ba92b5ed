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

// What is measured, and how often it is tried: other programs of the machine make a measurement worse, never better. Ours.
const (
	measured  = 12 // directions at most, of each kind one before any a second time
	tries     = 6
	probePort = 47611
)

// Finding is one property of a direction of a link.
type Finding struct {
	Link string
	measure.Finding
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

// differs reads a direction back and returns how it is not what the kernel was told.
func (c *carrier) differs(p int) ([]qdisc.Difference, error) {
	got, err := c.lines[p].way.Read()
	return qdisc.Compare(c.lines[p].tree, got), err
}

// broken is what says that links are not what the lab asks for; quiet is how late one timer in ten of the machine came or
// later while what is not as asked was measured, the times when it came least late.
func broken(all []Finding, quiet time.Duration) error {
	why := fmt.Sprintf("one timer in ten of this machine came %v late or later meanwhile", quiet.Round(10*time.Microsecond))
	if quiet > measure.Stall {
		why = "this machine stalls: " + why
	}
	return fmt.Errorf("%w; %s. A larger dilation helps where the machine is too busy\n%s", errMissed, why, Table(all))
}

// verify reads every direction back, and measures some: of each kind, as settings go, one, and then others.
func (c *carrier) verify(ctx context.Context) error {
	for p := range c.lines {
		different, err := c.differs(p)
		if err != nil {
			return c.of(p, err)
		}
		for _, d := range different {
			return c.of(p, fmt.Errorf("the kernel has something else than it was told: %v", d))
		}
	}
	kept, quiet := true, time.Duration(math.MaxInt64)
	for _, p := range c.choose() {
		found, _, err := c.insist(ctx, p, c.direction(p))
		if err != nil {
			return c.of(p, err)
		}
		if !found.OK() {
			kept, quiet = false, min(quiet, found.Late)
		}
		for _, f := range found.Findings {
			c.findings = append(c.findings, Finding{c.between(p), f})
		}
		if !kept && len(c.cfg.Slower) > 0 { // the rest would not change that another dilation is next
			break
		}
	}
	if !kept {
		return broken(c.findings, quiet)
	}
	return nil
}

var errMissed = errors.New("links are not what the lab asks for")

// insist measures a direction, which should be d, until it is as asked, but not for ever, and returns how often it did.
func (c *carrier) insist(ctx context.Context, p int, d qdisc.Direction) (found *measure.Found, times int, err error) {
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

// measure answers what a direction is like at present.
func (c *carrier) measure(ctx context.Context, p int) realtime.Found {
	if p < 0 || p >= len(c.lines) {
		return realtime.Found{Error: fmt.Sprintf("port %d of %d", p, len(c.lines))}
	}
	if c.lines[p].down || c.lines[p].deaf {
		return realtime.Found{Error: "it is down"}
	}
	different, err := c.differs(p)
	if err != nil {
		return realtime.Found{Error: c.of(p, err).Error()}
	}
	found, times, err := c.insist(ctx, p, c.direction(p))
	if err != nil {
		return realtime.Found{Error: c.of(p, err).Error()}
	}
	return c.inLab(found, different, times)
}

// inLab is what was found, in lab time.
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
		Lost: found.Lost, Sent: found.Sent,
	}
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
	return ports.Real(l.port, &l.line, c.cfg.Dilation, c.mtu(), c.net.source(p))
}

// between says which direction a port is.
func (c *carrier) between(p int) string {
	return c.name(c.net.Ends[p]) + " > " + c.name(c.net.Ends[p^1])
}

// examine measures one direction, which should be d.
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
			err = s.Through(from.Interface) // whatever ways lead there
		}
		return err
	})
	if err != nil {
		r.Close()
	}
	return s, r, err
}
