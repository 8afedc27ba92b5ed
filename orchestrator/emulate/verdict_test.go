package emulate

import (
	"strings"
	"testing"

	"weft/results/stats"
	"weft/units"
)

// dist has 100 values: one in a hundred is worst, the others on time.
func dist(p99, worst units.Time) *stats.Dist {
	d := stats.NewDist()
	for range 98 {
		d.Record(0)
	}
	d.Record(p99)
	d.Record(worst)
	return d
}

func TestVerdict(t *testing.T) {
	const rtt = 10 * units.Microsecond
	const ns = units.Nanosecond
	for _, c := range []struct {
		name    string
		e       evidence
		verdict string
		reason  string
	}{
		{"nothing happened", evidence{}, OK, ""},
		{"at the bound", evidence{late: []lateness{{"timers", dist(500*ns, 9000*ns)}}}, OK, ""},
		{"beyond it", evidence{late: []lateness{{"timers", dist(510*ns, 510*ns)}}}, Degraded, "lateness of timers is 510 ns, 5.1 %"},
		{"the last degraded", evidence{late: []lateness{{"timers", dist(2000*ns, 2000*ns)}}}, Degraded, "20.0 %"},
		{"beyond that", evidence{late: []lateness{{"timers", dist(2010*ns, 2010*ns)}}}, Invalid, "20.1 %"},
		{"the worst kind decides", evidence{late: []lateness{{"a", dist(0, 0)}, {"b", dist(3000*ns, 3000*ns)}, {"c", nil}}}, Invalid, "lateness of b"},
		{"a drop", evidence{drops: []drops{{"sockets", 0}, {"queues", 1}}}, Degraded, "1 packets lost in queues"},
		{"a drop does not mend", evidence{late: []lateness{{"b", dist(3000*ns, 3000*ns)}}, drops: []drops{{"queues", 1}}}, Invalid, ""},
		{"broken", evidence{broken: []string{"two and two are five"}}, Invalid, "two and two"},
	} {
		c.e.baseRTT = rtt
		f := judge(c.e)
		if reasons := strings.Join(f.Reasons, "; "); f.Verdict != c.verdict || !strings.Contains(reasons, c.reason) || c.verdict != OK && reasons == "" {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, f.Verdict, reasons, c.verdict, c.reason)
		}
	}
	f := judge(evidence{late: []lateness{{"a", dist(500*ns, 9000*ns)}}, baseRTT: rtt, cpu: 0.5})
	if f.LatenessP99NS < 499 || f.LatenessP99NS > 501 || f.LatenessMaxNS < 8990 || f.BaseRTTNS != 10000 || f.CPUMax != 0.5 {
		t.Errorf("numbers of the verdict: %+v", f)
	}
}
