package pc4_test

import (
	"testing"

	"pgregory.net/rapid"

	"weft/transport/cc"
	"weft/transport/cc/pc4"
	"weft/units"
)

// Table I: all-reduce line/n, all-to-all line/(n-1), all-gather line/(n-1), other line/n.
func TestTableI(t *testing.T) {
	for _, c := range []struct {
		mode string
		n    int
		want units.Bandwidth
	}{
		{pc4.AllReduce, 4, 25 * gbps},
		{pc4.AllToAll, 5, 25 * gbps},
		{pc4.AllGather, 5, 25 * gbps},
		{"incast", 4, 25 * gbps},
		{"", 1, 100 * gbps},
		{pc4.AllReduce, 0, 100 * gbps}, // a single flow or none
		{pc4.AllToAll, 2, 100 * gbps},
		{pc4.AllToAll, 1, 100 * gbps},
		{"incast", 3, 33333333333}, // a whole number of b/s, so that senders can compare
	} {
		if got := pc4.ComputeBaseRate(c.mode, c.n, 100*gbps); got != c.want {
			t.Errorf("%s of %d: %d, want %d", c.mode, c.n, got, c.want)
		}
	}
}

// Our reading of Table I: n counts participants in the forms with n-1, and incoming flows in the
// others, so that the base rates of all flows into a host add up to its line rate.
func TestBaseRatesAddUpToTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]string{pc4.AllReduce, pc4.AllToAll, pc4.AllGather, "incast", "permute"}).Draw(t, "mode")
		flows := rapid.IntRange(1, 10000).Draw(t, "flows")
		line := units.Bandwidth(rapid.Int64Range(1_000_000, 1_600_000_000_000).Draw(t, "line"))
		r := pc4.NewReceiver(pc4.Defaults(), mode, line, 0)
		sum := units.Bandwidth(flows) * r.OnData(0, cc.Data{Expected: flows}).BaseRate
		if sum > line || sum <= line-units.Bandwidth(flows) {
			t.Fatalf("%s: %d base rates add up to %d of %d", mode, flows, sum, line)
		}
	})
}

// Algorithm 1, line 3: "one_way_delay ← now - pkt.tx_time - pkt.baseline".
func TestOneWayDelay(t *testing.T) {
	r := pc4.NewReceiver(pc4.Defaults(), pc4.AllReduce, 100*gbps, 0)
	for _, c := range []struct{ at, sent, baseline, want units.Time }{
		{10 * us, 5 * us, 2 * us, 3 * us},
		{7 * us, 5 * us, 2 * us, 0},
		{6 * us, 5 * us, 2 * us, -us}, // the receiver's clock is behind
	} {
		if got := r.OnData(99*us, cc.Data{At: c.at, SentAt: c.sent, Baseline: c.baseline}).OneWay; got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// Section III-A: "enabling each worker to be aware of incoming traffic", from the plan or from
// arriving packets. Section IV-C: "we intentionally excluded the computation of the base rate".
func TestSourcesOfTheNumberOfFlows(t *testing.T) {
	d := cc.Data{Expected: 4, Observed: 2}
	for source, want := range map[string]units.Bandwidth{
		pc4.Controller: 25 * gbps, pc4.Observed: 50 * gbps, pc4.Table: 12 * gbps, pc4.Off: 0,
	} {
		p := pc4.Defaults()
		p.BaseRate = source
		if got := pc4.NewReceiver(p, pc4.AllToAll, 100*gbps, 12*gbps).OnData(0, d).BaseRate; got != want {
			t.Errorf("%s: %d, want %d", source, got, want)
		}
	}
}
