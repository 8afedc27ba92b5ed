// Package ports maps one direction of a modelled link to the settings of kernel queueing
// disciplines. Input: a fabric port and its link settings, and the dilation of the run. Output: a
// qdisc.Direction in real time. It is pure; package kernelpath applies the result.
//
// Sizes keep their value under dilation, times are multiplied by it and rates divided. A property
// of a port that the kernel cannot provide is an error that wraps qdisc.ErrRefused, never ignored;
// properties_test.go lists the decision for each property.
//
// On a kernel without netem links delay nothing, and receivers hold packets back instead. TransitOf
// (transit.go) says for how long at most, and how far that makes packets arrive at a queue out of
// step.
//
// Start with Shape, which covers a whole network, and Real, which covers one direction.
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

// uncounted is the size of the frame check sequence: the part of a packet on the modelled wire that
// the kernel does not count, in bytes.
const uncounted = wire.Overhead - qdisc.Ethernet - 20 - 8 // IPv4, UDP

// hostQueue limits the queue in a host's NIC. A lab sets no such limit, because hosts hold back
// what their link cannot take. Our own value, larger than any backlog of a host.
const hostQueue = 256 * units.MiB

// Real returns one direction of a link in real time. The port provides the queue and l the link.
// mtu is the largest IPv4 packet in bytes. host is the only sender
// whose frames the direction carries; nil if the direction starts at a switch. On a kernel that
// cannot delay packets, receivers do.
func Real(p *fabric.PortConfig, l *fabric.Link, dilation float64, mtu units.Bytes, host *qdisc.Source,
	kernel qdisc.Capabilities) qdisc.Direction {
	stretched := func(t units.Time) time.Duration {
		return time.Duration(float64(t) * dilation / float64(units.Nanosecond))
	}
	d := qdisc.Direction{
		Rate: units.Bandwidth(float64(l.Rate)/dilation) / 8 * 8, Overhead: uncounted, Limit: p.Buffer, MTU: mtu,
		Wire: true, Delay: stretched(l.Delay), Loss: l.Loss, Source: host,
		Jitter: stretched(l.Jitter), Duplicate: l.Duplicate, Reorder: l.Reorder,
	}
	d.Gated = kernel.Lacks(qdisc.PartBPF) == nil
	if !kernel.Delays() {
		d.AtEnds, d.Wire = true, false
	}
	if d.Reorder > 0 { // without reordering, ReorderBy has no effect
		d.ReorderBy = stretched(l.ReorderBy)
	}
	if d.Rate > 0 {
		// One extra packet is no noticeable queue, slow labs often see a timer that is late by that
		// much, and the link spaces packets that leave in a burst.
		one := float64(mtu+qdisc.Ethernet) * 8e9 / float64(d.Rate)
		if d.AtEnds { // nothing spaces packets on their way to the next queue
			one /= 8
		}
		d.Lateness = max(100*time.Microsecond, time.Duration(one))
	}
	if host != nil {
		d.Limit = hostQueue
	}
	if e := p.ECN; e.On {
		d.RED = &qdisc.RED{Min: e.Kmin, Max: e.Kmax, Pmax: e.Pmax, ECN: true, Leaving: !e.Ingress,
			// what has a coordination tag is marked by what that says
			Drawn: !e.Ingress || p.Congested > 0 || kernel.Lacks(qdisc.PartRED) != nil}
	}
	return d
}

// coarsest is the largest relative error of a rate that is accepted. The kernel counts in bytes per
// second.
const coarsest = 1e-3

// Sources returns the only permitted sender of each host's cable, by the hosts' addresses.
func Sources(addrs []netip.Addr) []qdisc.Source {
	all := make([]qdisc.Source, len(addrs))
	for h, a := range addrs {
		all[h] = qdisc.Source{MAC: mac.Of(a), Addr: a}
	}
	return all
}

// Shape returns the qdisc tree of each direction, by port, before any change of the lab takes
// effect. hosts are the network's hosts in order. On error, the returned port is the one that
// failed.
func Shape(cfg *fabric.Config, hosts []qdisc.Source, dilation float64, mtu units.Bytes,
	kernel qdisc.Capabilities) (trees []qdisc.Tree, port int, err error) {
	trees = make([]qdisc.Tree, len(cfg.Ports))
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if trees[i], err = Plan(p, &p.Link, dilation, mtu, from(p, hosts), kernel); err != nil {
			return nil, i, err
		}
	}
	return trees, 0, nil
}

// Check returns the first port, by number, with settings that the kernel cannot provide at this
// dilation, and the reason. It covers the initial settings and all changes.
func Check(cfg *fabric.Config, hosts []qdisc.Source, changes []fabric.Change, dilation float64, mtu units.Bytes,
	kernel qdisc.Capabilities) (port int, err error) {
	if _, port, err = Shape(cfg, hosts, dilation, mtu, kernel); err != nil {
		return port, err
	}
	for s := range cfg.Switches {
		if err := checkBalance(&cfg.Switches[s], kernel); err != nil {
			return 0, err
		}
	}
	for i := range changes {
		change := &changes[i]
		for s := range change.Tables {
			if err := checkBalance(&change.Tables[s], kernel); err != nil {
				return 0, fmt.Errorf("from %v on: %w", change.At.Duration(), err)
			}
		}
		if change.Link == nil {
			continue
		}
		for _, port := range change.Ports {
			p := &cfg.Ports[port]
			if _, err := Plan(p, change.Link, dilation, mtu, from(p, hosts), kernel); err != nil {
				return port, fmt.Errorf("from %v on: %w", change.At.Duration(), err)
			}
		}
	}
	return 0, nil
}

// checkBalance returns an error if the kernel cannot choose paths as a switch does.
func checkBalance(sw *fabric.SwitchConfig, kernel qdisc.Capabilities) error {
	if !sw.Balance.PerPacket() {
		return nil
	}
	if lacks := kernel.Lacks(qdisc.PartBPF); lacks != nil {
		return fmt.Errorf("%w: a choice of the path for each packet, since this kernel lacks %s", qdisc.ErrRefused,
			lacks[0])
	}
	if sw.Balance.Random() {
		return nil
	}
	widest, most, with := 0, qdisc.MaxBalanced, ""
	for _, group := range sw.Groups {
		widest = max(widest, len(group))
	}
	if sw.Aside != nil {
		most, with = most/2, ", with as many detours"
	}
	if widest > most {
		return fmt.Errorf("%w: a choice by their queues among %d equal paths; it can among %d%s", qdisc.ErrRefused,
			widest, most, with)
	}
	return nil
}

// from returns the host that a port belongs to, or nil if it belongs to a switch.
func from(p *fabric.PortConfig, hosts []qdisc.Source) *qdisc.Source {
	if int(p.From) < len(hosts) {
		return &hosts[p.From]
	}
	return nil
}

// Plan returns the qdisc tree of one direction. host is nil if the direction starts at a switch.
func Plan(p *fabric.PortConfig, l *fabric.Link, dilation float64, mtu units.Bytes, host *qdisc.Source,
	kernel qdisc.Capabilities) (qdisc.Tree, error) {
	if l.BitErrors > 0 {
		return qdisc.Tree{}, fmt.Errorf("%w: bit errors, since it would deliver packets with wrong bits; "+
			"expected loss", qdisc.ErrRefused)
	}
	d := Real(p, l, dilation, mtu, host, kernel)
	if exact := float64(l.Rate) / dilation; exact-float64(d.Rate) > coarsest*exact {
		return qdisc.Tree{}, fmt.Errorf("%w: a rate of %g bit/s, which it counts in whole bytes per second; "+
			"expected a smaller dilation than %.15g", qdisc.ErrRefused, exact, dilation)
	}
	if host != nil {
		return qdisc.Plan(d, kernel)
	}
	if short := mtu + qdisc.Ethernet; d.Limit < short {
		return qdisc.Tree{}, fmt.Errorf("%w: a buffer of %v, in which a packet of %v does not fit", qdisc.ErrRefused,
			d.Limit, short)
	}
	return qdisc.Plan(d, kernel)
}
