package summary

import (
	"reflect"
	"strings"
	"testing"

	"weft/host"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

const us = units.Microsecond

// samples are those of connections at 10 us each, in packets of 1 KB for each interval.
func samples(conns ...[]int) *Rates {
	r := &Rates{Every: 10 * us, Rtt: 5 * us}
	for i := range conns[0] {
		for c, packets := range conns {
			if packets[i] > 0 {
				r.Rows = append(r.Rows, record.Rate{At: units.Time(i+1) * 10 * us, Conn: uint32(c), Bytes: units.Bytes(packets[i]) * units.KB})
			}
		}
	}
	return r
}

func message(c transport.ConnID, start, acked units.Time) host.Flow {
	return host.Flow{Conn: c, Start: start, Acked: acked}
}

// A flow is alone, another joins and is even with it after one interval, and the first has the line
// back after another.
func TestPlateaus(t *testing.T) {
	r := samples(
		[]int{100, 100, 100, 100, 100, 100, 90, 50, 50, 50, 50, 50, 60, 100, 100, 100, 100, 100, 100},
		[]int{0, 0, 0, 0, 0, 0, 10, 50, 50, 50, 50, 50, 0, 0, 0, 0, 0, 0, 0},
	)
	got := r.Plateaus([]host.Flow{message(0, 0, 100*us), message(0, 100*us, 186*us), message(1, 60*us, 127*us)})
	after := func(us float64) *float64 { return &us }
	want := []record.Plateau{
		{FromUS: 0, UntilUS: 50, Conns: 1, Jain: 1, TotalGbps: 80, SettledUS: after(0)},
		{FromUS: 60, UntilUS: 120, Conns: 2, Jain: 360_000.0 / (2 * (340*340 + 260*260)), TotalGbps: 80,
			SettledUS: after(10)},
		{FromUS: 127, UntilUS: 180, Conns: 1, Jain: 1, TotalGbps: 80, SettledUS: after(3)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Every time of more than a base RTT with the same open connections is a plateau. One of fewer than
// four intervals has no shares, and is counted all the same.
func TestShortPlateaus(t *testing.T) {
	whole := make([]int, 30)
	for i := range whole {
		whole[i] = 50
	}
	r := samples(whole, whole, whole)
	for length, short := range map[units.Time]int{4: 0, 5: 0, 6: 1, 30: 1, 44: 1, 45: 0, 80: 0} {
		got := r.Plateaus([]host.Flow{message(0, 0, 290*us), message(1, 100*us, 250*us), message(2, 100*us, (100+length)*us)})
		n, second := 4, 1
		if length <= 5 {
			n, second = 3, 0
		}
		if len(got) != n || got[1].Short != (short > 0) || second > 0 && got[1].Conns != 3 || got[0].Short {
			t.Errorf("%d us: %+v", length, got)
		}
		s := &record.Summary{Plateaus: got}
		lackPlateaus(got, r.Every, s)
		for field, lacks := range map[string]bool{"jain": short > 0, "total_gbps": short > 0, "connections": false,
			"settled_us": got[1].SettledUS == nil} {
			if s.Lacks("plateaus.1."+field) != "" != lacks {
				t.Errorf("%d us: %s lacks a value: %v", length, field, !lacks)
			}
		}
	}
}

// Unfair to the end: never settled. One that never ends lasts as long as something arrives.
func TestUnsettledPlateaus(t *testing.T) {
	r := samples([]int{10, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	got := r.Plateaus([]host.Flow{message(0, 0, 0), message(1, 10*us, 108*us)})
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	two := got[1]
	if two.Conns != 2 || two.Short || two.SettledUS != nil {
		t.Errorf("%+v", got)
	}
	s := &record.Summary{Plateaus: got}
	lackPlateaus(got, r.Every, s)
	if !strings.Contains(s.Lacks("plateaus.1.settled_us"), "did not settle") || s.Lacks("plateaus.1.jain") != "" {
		t.Errorf("%+v", s.Unmeasured)
	}
}

// Connections that all begin and end at once, or many that come and go, have none.
func TestNoPlateaus(t *testing.T) {
	r := samples([]int{5, 5, 5, 5, 5, 5, 5})
	var many []host.Flow
	for i := range 40 {
		many = append(many, message(transport.ConnID(i), units.Time(i)*us, units.Time(i+100)*us))
	}
	for _, flows := range [][]host.Flow{nil, {message(0, 0, 70*us)}, many} {
		if got := r.Plateaus(flows); got != nil {
			t.Errorf("%d messages: %+v", len(flows), got)
		}
	}
}
