package measure_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// Links with BPF programs have the properties of the contract: marks on arrival and on departure,
// by a step and by a slope, loss, one sender; and a link that differs is found out.
func TestPrivGate(t *testing.T) {
	own := &qdisc.Source{MAC: [6]byte{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.9.0.1")}
	plain := qdisc.Direction{Rate: 8 * units.Mbps, Limit: 400_000, Lateness: quiettest.Gap, AtEnds: true, Source: own,
		Delay: 20 * time.Millisecond, Overhead: 4}
	with := func(red qdisc.RED) qdisc.Direction {
		d := plain
		red.ECN, red.Drawn = true, true
		d.RED = &red
		return d
	}
	lossy, shaky, shuffled := plain, plain, plain
	lossy.Loss = 0.1
	shaky.Jitter = 4 * time.Millisecond
	shuffled.Reorder, shuffled.ReorderBy = 0.2, 30*time.Millisecond
	for name, d := range map[string]qdisc.Direction{
		"rate": plain, "loss": lossy, "jitter": shaky, "reordering": shuffled,
		"step, arriving":  with(qdisc.RED{Min: 60_000, Max: 60_000, Pmax: 1}),
		"step, leaving":   with(qdisc.RED{Min: 60_000, Max: 60_000, Pmax: 1, Leaving: true}),
		"slope, arriving": with(qdisc.RED{Min: 30_000, Max: 150_000, Pmax: 0.4}),
		"slope, leaving":  with(qdisc.RED{Min: 30_000, Max: 150_000, Pmax: 0.4, Leaving: true}),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLink(t, d)
			l.measureUntil(func() error {
				found, err := measure.Examine(t.Context(), l.sender, l.receiver, d)
				l.noError(err)
				t.Logf("%+v", found.Findings)
				if !found.OK() {
					return fmt.Errorf("broken: %+v", found)
				}
				return nil
			})
			s := l.statistics()
			c := l.Gate.Counters()
			if s.Backlog != 0 || c.Queue() != 0 || c.EnteredPackets != c.LeftPackets || s.Sent != c.Left ||
				s.Spoofed+s.NotRouted+s.Drops != 0 || (d.Loss > 0) != (s.Lost > 0) || (d.RED != nil) != (s.Marks > 0) {
				t.Errorf("%+v, gate %+v", s, c)
			}
			if d.RED == nil {
				return
			}
			wrong := *d.RED
			wrong.Min, wrong.Max = 350_000, 380_000
			d.RED = &wrong
			if found, err := measure.Examine(t.Context(), l.sender, l.receiver, d); err != nil || found.OK() {
				t.Errorf("marks from 30 or 60 kB on are as asked from 350 kB on: %+v, %v", found, err)
			}
		})
	}
}

// A Gate drops what does not fit, counts it, and frames of other senders.
func TestPrivGateDrops(t *testing.T) {
	d := qdisc.Direction{Rate: 8 * units.Mbps, Limit: 20_000, AtEnds: true,
		Source: &qdisc.Source{MAC: [6]byte{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.9.0.1")}}
	l := newLink(t, d)
	packets := l.send(measure.Train{Count: 40, Size: 1000, Burst: 40, Wait: time.Second})
	s := l.statistics()
	if lost := measure.Lost(packets); lost == 0 || uint64(lost) != s.Drops || s.MaxQueue > d.Limit ||
		s.MaxQueue < d.Limit-1014 || s.Arrived != uint64(40-lost) {
		t.Errorf("%d of 40 packets lost: %+v", lost, s)
	}
	tree := l.tree
	tree.Source = &qdisc.Source{MAC: [6]byte{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.9.0.9")}
	l.noError(l.Apply(tree))
	if lost := measure.Lost(l.send(measure.Train{Count: 5, Size: 1000, Burst: 5, Wait: time.Second / 5})); lost != 5 {
		t.Errorf("%d of 5 packets of another sender were lost", lost)
	}
	if s := l.statistics(); s.Spoofed != 5 || s.NotRouted != 0 || s.Arrived != 0 {
		t.Errorf("%+v", s)
	}
}
