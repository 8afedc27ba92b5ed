package qdisc

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/internal/golden"
	"weft/units"
)

// TestPlan keeps the qdisc tree of typical directions for review.
func TestPlan(t *testing.T) {
	var b strings.Builder
	for _, c := range directions() {
		tree, err := Plan(c.Direction, Full())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		fmt.Fprintf(&b, "%s\n----\n%v\n", c.name, tree)
	}
	golden.Table(t, "plan", "Qdisc trees that shape one direction of a link, at its near end and its far end.",
		b.String())
}

type named struct {
	name string
	Direction
}

func directions() []named {
	marks := func(pmax float64) *RED { return &RED{Min: 50_000, Max: 200_000, Pmax: pmax, ECN: true} }
	const rate, limit = 100 * units.Mbps, 500 * units.KB
	return []named{
		{"nothing", Direction{}},
		{"rate alone: no netem is needed", Direction{Rate: rate, Limit: limit}},
		{"100 Gb/s, 1 us at dilation 1000, marks as DCQCN's", Direction{Rate: rate, Limit: limit,
			Delay: time.Millisecond, RED: marks(0.2)}},
		{"the same, marks up to 1: two stages", Direction{Rate: rate, Limit: limit, Delay: time.Millisecond,
			RED: marks(1)}},
		{"marks in a step", Direction{Rate: rate, Limit: limit, RED: &RED{Min: 30_000, Max: 30_000, Pmax: 1,
			ECN: true}}},
		{"400 Gb/s undilated, jumbo packets, with preamble and gap", Direction{Rate: 400 * units.Gbps,
			Limit: 16 * units.MB, MTU: 9000, Overhead: 24, Delay: time.Microsecond}},
		{"1 Mb/s: the bucket is a packet and little more", Direction{Rate: units.Mbps, Limit: limit}},
		{"no delay: transmission takes its time on the line", Direction{Rate: rate, Limit: limit, Wire: true}},
		{"loss, copies, bit errors", Direction{Loss: 0.01, Duplicate: 0.5, Corrupt: 1}},
		{"jitter: the time of a packet is part of the delay", Direction{Rate: rate, Limit: limit,
			Delay: time.Millisecond, Jitter: 100 * time.Microsecond}},
		{"one sender", Direction{Source: &Source{MAC: [6]byte{2, 0, 10, 0, 0, 1},
			Addr: netip.AddrFrom4([4]byte{10, 0, 0, 1})}}},
		{"late packets", Direction{Delay: time.Millisecond, Reorder: 0.1, ReorderBy: 2 * time.Millisecond}},
	}
}

func TestPlanRefusesWhatMakesNoSense(t *testing.T) {
	ok := Direction{Rate: units.Mbps, Limit: 100_000}
	for _, c := range []struct {
		change func(*Direction)
		says   string
	}{
		{func(d *Direction) { d.Rate = -1 }, "a rate of"},
		{func(d *Direction) { d.Overhead = 70_000 }, "overhead of 70000"},
		{func(d *Direction) { d.MTU = 70_000 }, "MTU of 70000"},
		{func(d *Direction) { d.Source = &Source{Addr: netip.IPv6Loopback()} }, "not IPv4"},
		{func(d *Direction) { d.Delay = -1 }, "delay of -1ns"},
		{func(d *Direction) { d.Jitter = 25 * time.Hour }, "jitter of 25h"},
		{func(d *Direction) { d.Loss = 1.5 }, "loss of 1.5"},
		{func(d *Direction) { d.Duplicate = -0.5 }, "duplicate of -0.5"},
		{func(d *Direction) { d.Reorder = 0.5 }, "one needs the other"},
		{func(d *Direction) { d.Rate = 0 }, "a queue without a rate"},
		{func(d *Direction) { d.Limit = 1000 }, "a packet of the MTU takes 1514"},
		{func(d *Direction) { d.Limit = 1 << 31 }, "the kernel's field ends at"},
		{func(d *Direction) { d.RED = &RED{Min: 2, Max: 1, ECN: true} }, "marking from 2 to 1"},
		{func(d *Direction) { d.RED = &RED{Min: 1, Max: 2, Pmax: 2, ECN: true} }, "probability 2"},
	} {
		d := ok
		c.change(&d)
		_, err := Plan(d, Full())
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrRefused) {
			t.Errorf("%+v: %v; want an error with %q that is no refusal", d, err, c.says)
		}
	}
}

func TestPlanRefusesByNameWhatTheKernelCannot(t *testing.T) {
	ok := Direction{Rate: units.Mbps, Limit: 100_000, Delay: time.Millisecond}
	without := func(parts ...Part) Capabilities {
		c := Full()
		c.Missing = map[Part]string{}
		for _, p := range parts {
			c.Missing[p] = "not here"
		}
		return c
	}
	coarse := Full()
	coarse.Tick = 4 * time.Millisecond
	for _, c := range []struct {
		change func(*Direction)
		kernel Capabilities
		says   string
	}{
		{func(d *Direction) {}, without(PartNetem), "lacks netem (not here)"},
		{func(d *Direction) {}, without(PartHTB), "lacks htb"},
		{func(d *Direction) {}, coarse, "resolution of 4ms"},
		{func(d *Direction) { d.Rate = 7 }, Full(), "bytes per second"},
		{func(d *Direction) { d.Rate = 100_001 }, Full(), "more than a millionth"},
		{func(d *Direction) { d.Rate = 8; d.Overhead = 60_000 }, Full(), "after which htb sends the next"},
		{func(d *Direction) { d.Rate = 100 * units.Gbps; d.Lateness = 5 * time.Minute }, Full(), "the largest bucket has"},
		{func(d *Direction) { d.RED = &RED{Min: 1, Max: 2} }, Full(), "early drops"},
		{func(d *Direction) { d.Jitter, d.Reorder, d.ReorderBy = 1, 0.5, 1 }, Full(), "jitter together with reorder"},
		{func(d *Direction) { d.Jitter = time.Second }, Full(), "netem's ends at"},
		{func(d *Direction) { d.Reorder, d.ReorderBy = 0.5, time.Minute }, Full(), "netem's jitter ends at"},
		{func(d *Direction) { d.Reorder, d.ReorderBy = 1e-6, 1 }, Full(), "one in 16384"},
		{func(d *Direction) { d.Loss = 1e-12 }, Full(), "loss of 1e-12"},
	} {
		d := ok
		c.change(&d)
		_, err := Plan(d, c.kernel)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v; want a refusal with %q", d, err, c.says)
		}
	}
	if _, err := Plan(Direction{Rate: units.Mbps, Limit: 100_000}, without(PartNetem)); err != nil {
		t.Errorf("a rate alone needs no netem: %v", err)
	}
	for _, c := range []struct {
		lacks    []Part
		complete bool
	}{{nil, true}, {[]Part{PartRED}, true}, {[]Part{PartRED, PartNetem, PartIFB, PartSource}, true}, {[]Part{PartBPF}, true},
		{[]Part{PartRED, PartBPF}, false}, {[]Part{PartHTB}, false}} {
		if err := without(c.lacks...).Complete(); (err == nil) != c.complete {
			t.Errorf("without %v: %v", c.lacks, err)
		}
	}
}
