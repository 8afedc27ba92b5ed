package emulate

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"weft/internal/testenv"
	"weft/results/record"
	"weft/units"
)

// BenchmarkPrivAllToAll carries an all-to-all of 16 hosts at the offered load of WEFT_OFFERED data
// packets per second of real time, by default enough to carry more than 40,000 of them. It reports
// the medians of the packets carried and of the worst p99 lateness, in real time, and the share of
// the runs with verdict ok.
func BenchmarkPrivAllToAll(b *testing.B) {
	testenv.NeedNamespaces(b)
	offered := 48_000.0
	if s := os.Getenv("WEFT_OFFERED"); s != "" {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			b.Fatal(err)
		}
		offered = f
	}
	good := 0
	var rates, late []float64
	for range b.N {
		m, err := newBench(b.Context(), Processes{Stderr: os.Stderr, Bypass: os.Getenv("WEFT_NIC") == "bypass"})
		if err != nil {
			b.Fatal(err)
		}
		o, err := m.last().run(b.Context(), 1.2, offered)
		if err := m.close(); err != nil {
			b.Error(err)
		}
		if err != nil {
			b.Fatal(err)
		}
		r, rate := o.Report, o.packetRate()
		rates, late = append(rates, rate), append(late, o.Fidelity.LatenessP99NS*o.dilation/1e3)
		if o.Fidelity.Verdict == record.OK {
			good++
		}
		var cpu int64
		for _, n := range o.Results {
			cpu += n.CPU
		}
		b.Logf("offered %.0f, carried %.0f/s at dilation %g, verdict %s %v; fabric %s %.2f s, nodes %s %.2f s of "+
			"processor, backlog %d; RTT p50 %v of %v; retransmits %d timeouts %d",
			offered, rate, o.dilation, o.Fidelity.Verdict, o.Fidelity.Reasons, r.Scheduler, float64(r.CPU)/1e9,
			o.Results[0].Scheduler, float64(cpu)/1e9, r.Backlog,
			o.RTT.Quantile(0.5), o.Fidelity.BaseRTTNS, o.Transport.Retransmits, o.Transport.Timeouts)
		for _, l := range latenessOf(o.Outcome) {
			b.Logf("%s: p50 %.0f us, p99 %.0f us, max %.0f us of real time (%d)", l.what,
				l.dist.Quantile(0.5).Microseconds()*o.dilation,
				l.dist.Quantile(0.99).Microseconds()*o.dilation, l.dist.Quantile(1).Microseconds()*o.dilation,
				l.dist.Count())
		}
	}
	b.ReportMetric(median(rates), "packets/s")
	b.ReportMetric(median(late), "late_us")
	b.ReportMetric(float64(good)/float64(b.N), "ok/op")
}

// packetRate returns the number of data packets that arrived per second of real time.
func (o benchOutcome) packetRate() float64 {
	seconds := float64(o.Elapsed) / float64(units.Second) * o.dilation
	return float64(o.Transport.DataPackets-o.Transport.Retransmits) / seconds
}

// median returns the middle one of some numbers, the upper if there are two.
func median(of []float64) float64 {
	return slices.Sorted(slices.Values(of))[len(of)/2]
}

func TestPrivMeasure(t *testing.T) {
	testenv.NeedNamespaces(t)
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	start := time.Now()
	c, err := Measure(t.Context(), Processes{Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v in %v", c, time.Since(start))
	if c.PacketsPerSecond < 1000 || len(c.Lateness) != 3 {
		t.Errorf("measured %+v", c)
	}
}
