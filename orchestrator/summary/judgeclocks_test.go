package summary

import (
	"strings"
	"testing"

	"weft/clocksync/node"
	"weft/results/record"
)

// A stall counts against synchronized clocks if it is as long as an error beyond their limit,
// whenever it was. Clocks that nothing corrected have the error of the start, whatever stood.
func TestStallsThrowClocksOff(t *testing.T) {
	talks := node.Facts{Talks: true}
	for name, c := range map[string]struct {
		verdict string
		stall   float64 // us
		p99     float64 // ns
		kind    node.Facts
		hosts   int // whose clocks were corrected
		want    string
	}{
		"thrown off":        {record.OK, 15.3, 6427, talks, 3, record.Degraded},
		"invalid anyway":    {record.Invalid, 15.3, 6427, talks, 3, record.Invalid},
		"within the limit":  {record.OK, 15.3, 61, talks, 3, record.OK},
		"another cause":     {record.OK, 5, 6427, talks, 3, record.OK},
		"no stall":          {record.OK, 0, 6427, talks, 3, record.OK},
		"no protocol":       {record.OK, 15.3, 6427, node.Facts{}, 0, record.OK},
		"nothing corrected": {record.OK, 15.3, 6427, talks, 0, record.OK},
	} {
		f := &record.Fidelity{Verdict: c.verdict}
		if c.stall > 0 {
			f.Stalls = []record.Stall{{Process: "h1", FromUS: 10, ForUS: 0.2}, {Process: "the fabric process", FromUS: 10355, ForUS: c.stall}}
		}
		judgeClocks(f, &record.Clocks{Samples: 9, LimitNS: 100, Error: record.Quantiles{P99: c.p99}}, c.kind, c.hosts)
		if f.Verdict != c.want || f.Slowed != (len(f.Reasons) > 0) {
			t.Errorf("%s: %+v, want %s", name, f, c.want)
		}
		if name == "thrown off" && (len(f.Reasons) != 1 || !strings.HasSuffix(f.Reasons[0],
			"is above clocks.limit, 100ns, and the fabric process stood or ran late for 15.3us of lab time from 10.4ms on")) {
			t.Error(f.Reasons)
		}
	}
	judgeClocks(nil, &record.Clocks{}, talks, 3)
}
