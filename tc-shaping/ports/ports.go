// Package ports says what one direction of a link of the modelled network becomes in the kernel: a port of the fabric and its
// line, at a dilation, as settings of queueing disciplines. It is pure: package kernelpath applies what it returns.
package ports

import (
	"fmt"
	"net/netip"
	"time"

	"weft/fabric"
	"weft/internal/mac"
	"weft/tc-shaping/qdisc"
	"weft/transport/wire"
	"weft/units"
)

// uncounted is what a packet occupies on the modelled wire beyond what the kernel counts: the frame check sequence.
const uncounted = wire.Overhead - qdisc.Ethernet - 20 - 8 // IPv4, UDP

// hostQueue is the limit of what waits in the NIC of a host, which in a lab has none: hosts hold back what their line cannot
// take. Ours: more than any of them is ever ahead.
const hostQueue = 256 * units.MiB

// LineOf is the line of a port as the lab begins.
func LineOf(p *fabric.PortConfig) fabric.Link {
	return fabric.Link{Rate: p.Rate, Delay: p.Delay, Loss: p.Loss, BitErrors: p.BitErrors, Disorder: &p.Disorder}
}

// Become is what a change makes of a line.
func Become(was fabric.Link, change *fabric.Link) fabric.Link {
	now := *change
	if now.Disorder == nil {
		now.Disorder = was.Disorder
	}
	return now
}

// Real is one direction of a link in real time, at a dilation: the queue of a port and a line, which says all (its Disorder is not nil).
// IPv4 packets have at most mtu bytes. host is where it begins, and is the only sender of its frames; nil: it begins at a switch.
func Real(p *fabric.PortConfig, l *fabric.Link, dilation float64, mtu units.Bytes, host *qdisc.Source) qdisc.Direction {
	stretched := func(t units.Time) time.Duration {
		return time.Duration(float64(t) * dilation / float64(units.Nanosecond))
	}
	d := qdisc.Direction{
		Rate: units.Bandwidth(float64(l.Rate)/dilation) / 8 * 8, Overhead: uncounted, Limit: p.Buffer, MTU: mtu,
		Wire: true, Delay: stretched(l.Delay), Loss: l.Loss, Source: host,
		Jitter: stretched(l.Disorder.Jitter), Duplicate: l.Disorder.Duplicate, Reorder: l.Disorder.Reorder,
	}
	if d.Reorder > 0 { // else nothing comes late, whatever the lab says of how late
		d.ReorderBy = stretched(l.Disorder.By)
	}
	if d.Rate > 0 {
		// One packet more or less makes no queue; a timer that is late by that much is common where labs are slow, and the
		// line spaces what leaves at once.
		one := float64(mtu+qdisc.Ethernet) * 8e9 / float64(d.Rate)
		d.Lateness = max(100*time.Microsecond, time.Duration(one))
	}
	if host != nil {
		d.Limit = hostQueue
	}
	if e := p.ECN; e.On {
		d.RED = &qdisc.RED{Min: e.Kmin, Max: e.Kmax, Pmax: e.Pmax, ECN: true}
	}
	return d
}

// coarsest is the most that a rate may be off because the kernel counts in bytes per second.
const coarsest = 1e-3

// Sources are the only senders that the cables of hosts carry frames of, by the hosts' addresses.
func Sources(addrs []netip.Addr) []qdisc.Source {
	all := make([]qdisc.Source, len(addrs))
	for h, a := range addrs {
		all[h] = qdisc.Source{MAC: mac.Of(a), Addr: a}
	}
	return all
}

// Shape returns what each direction of a network is in the kernel at a dilation, by port, as long as nothing changes it. hosts are those
// of the network, in order. Of an error
// the port is the last that was tried.
func Shape(cfg *fabric.Config, hosts []qdisc.Source, dilation float64, mtu units.Bytes, kernel qdisc.Capabilities) (trees []qdisc.Tree, port int, err error) {
	trees = make([]qdisc.Tree, len(cfg.Ports))
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		l := LineOf(p)
		if trees[i], err = Plan(p, &l, dilation, mtu, from(p, hosts), kernel); err != nil {
			return nil, i, err
		}
	}
	return trees, 0, nil
}

// Check reports what the kernel cannot honour of a network, and of what becomes of it, at a dilation: the first port, by its number, and why.
func Check(cfg *fabric.Config, hosts []qdisc.Source, changes []fabric.Change, dilation float64, mtu units.Bytes, kernel qdisc.Capabilities) (port int, err error) {
	if _, port, err = Shape(cfg, hosts, dilation, mtu, kernel); err != nil {
		return port, err
	}
	for i := range changes {
		change := &changes[i]
		if change.Line == nil {
			continue
		}
		for _, port := range change.Ports {
			p := &cfg.Ports[port]
			l := Become(LineOf(p), change.Line)
			if _, err := Plan(p, &l, dilation, mtu, from(p, hosts), kernel); err != nil {
				return port, fmt.Errorf("from %v on: %w", change.At.Duration(), err)
			}
		}
	}
	return 0, nil
}

// from is the host where a port is; nil: it is at a switch.
func from(p *fabric.PortConfig, hosts []qdisc.Source) *qdisc.Source {
	if int(p.From) < len(hosts) {
		return &hosts[p.From]
	}
	return nil
}

// Plan is what a direction is in the kernel, from a host or (nil) from a switch.
func Plan(p *fabric.PortConfig, l *fabric.Link, dilation float64, mtu units.Bytes, host *qdisc.Source, kernel qdisc.Capabilities) (qdisc.Tree, error) {
	if l.BitErrors > 0 {
		return qdisc.Tree{}, fmt.Errorf("%w: bit errors, of which it would deliver packets with wrong bits; expected loss", qdisc.ErrRefused)
	}
	d := Real(p, l, dilation, mtu, host)
	if exact := float64(l.Rate) / dilation; exact-float64(d.Rate) > coarsest*exact {
		return qdisc.Tree{}, fmt.Errorf("%w: a rate of %g bit/s, which it counts in whole bytes per second; expected a smaller dilation than %g", qdisc.ErrRefused, exact, dilation)
	}
	if host != nil {
		return qdisc.Plan(d, kernel)
	}
	if short := mtu + qdisc.Ethernet; d.Limit < short {
		return qdisc.Tree{}, fmt.Errorf("%w: a buffer of %v, in which a packet of %v does not fit", qdisc.ErrRefused, d.Limit, short)
	}
	return qdisc.Plan(d, kernel)
}
