package summary

import (
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
	want := []record.Plateau{
		{FromUS: 0, UntilUS: 50, Conns: 1, Jain: 1, TotalGbps: 80, SettledUS: 0},
		{FromUS: 60, UntilUS: 120, Conns: 2, Jain: 360_000.0 / (2 * (340*340 + 260*260)), TotalGbps: 80, SettledUS: 10},
		{FromUS: 127, UntilUS: 180, Conns: 1, Jain: 1, TotalGbps: 80, SettledUS: 3},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("plateau %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// Unfair to the end: never settled. One that never ends lasts as long as something arrives.
func TestUnsettledPlateaus(t *testing.T) {
	r := samples([]int{10, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	got := r.Plateaus([]host.Flow{message(0, 0, 0), message(1, 10*us, 108*us)})
	if len(got) != 1 || got[0].Conns != 2 || got[0].SettledUS != got[0].UntilUS-got[0].FromUS {
		t.Errorf("%+v", got)
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
