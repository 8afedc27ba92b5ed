package summary

import (
	"strings"
	"testing"

	"weft/collectives/schedule"
	"weft/host"
	"weft/results/record"
	"weft/units"
)

// A run is verified when every rank finished every repetition, every result was compared, and
// nothing differs.
func TestVerified(t *testing.T) {
	x := build(t, star+"workload: [{collective: incast, ranks: 2, size: 1MB, repeat: 2}]") // two senders, h2 receives
	good := func() []host.Done {
		var d []host.Done
		for repeat := range 2 {
			for rank := range 3 {
				p := host.Done{Repeat: repeat, Rank: rank}
				if rank == 2 {
					p.Checked = 500_000
				}
				d = append(d, p)
			}
		}
		return d
	}
	for name, c := range map[string]struct {
		change func([]host.Done) []host.Done
		want   bool
	}{
		"all right":             {func(d []host.Done) []host.Done { return d }, true},
		"one element is wrong":  {func(d []host.Done) []host.Done { d[2].Wrong = 1; return d }, false},
		"a sender's is wrong":   {func(d []host.Done) []host.Done { d[0].Wrong = 1; return d }, false},
		"a result not compared": {func(d []host.Done) []host.Done { d[5].Checked = 0; return d }, false},
		"a rank is missing":     {func(d []host.Done) []host.Done { return d[:5] }, false},
		"nothing came back":     {func([]host.Done) []host.Done { return nil }, false},
	} {
		if got := verified(x, c.change(good())); got != c.want {
			t.Errorf("%s: verified %t", name, got)
		}
	}
}

// A run that ends without an error may still lack messages or results; its status says so, the
// worst first.
func TestStatusOfARunThatEnded(t *testing.T) {
	x := build(t, eight+"workload: [{collective: all-reduce, ranks: 2, size: 1kB}]")
	whole := func() []host.Done {
		dones := []host.Done{{Rank: 0}, {Rank: 1}}
		for i := range dones {
			dones[i].Checked = schedule.Due(x.Item(0).Spec(), i)
		}
		return dones
	}
	for _, c := range []struct {
		change      func(d []host.Done) []host.Done
		unfinished  int64
		status, why string
	}{
		{nil, 0, record.OK, ""},
		{nil, 3, record.Unfinished, "3 of 8 messages did not finish"},
		{func(d []host.Done) []host.Done { return d[:1] }, 3, record.Unfinished, "3 of 8 messages did not finish; 1 of 2 results of ranks are missing"},
		{func(d []host.Done) []host.Done { d[0].Wrong = 1; return d }, 3, record.Unverified,
			"1 of 2 results of ranks have wrong elements; 3 of 8 messages did not finish"},
		{func(d []host.Done) []host.Done { d[1].Checked--; return d }, 0, record.Unverified, "1 of 2 results of ranks were not fully checked"},
	} {
		dones := whole()
		if c.change != nil {
			dones = c.change(dones)
		}
		if status, why := Settle(x, dones, &record.Flows{Count: 8, Unfinished: c.unfinished}); status != c.status || why != c.why {
			t.Errorf("%s: %s; want %s: %s", status, why, c.status, c.why)
		}
	}
}

// Each of several items has the completion times of those of its messages that were completed. One
// item has none: they are those of the run.
func TestCompletionByItem(t *testing.T) {
	const one = "{collective: all-reduce, ranks: 2, size: 1kB}"
	flows := []host.Flow{{Acked: 1 * units.Microsecond}, {Acked: 3 * units.Microsecond}, {Item: 1, Acked: 10 * units.Microsecond}, {Item: 1}, {Item: 2}}
	for items, want := range map[int][]float64{1: {0}, 3: {2, 10, 0}} {
		x := build(t, eight+"workload: ["+strings.Repeat(one+", ", items-1)+one+"]")
		rows := make([]record.Collective, items)
		completionByItem(x, flows, rows)
		for i, mean := range want {
			if got := rows[i].FCT; mean == 0 && got != nil || mean > 0 && (got == nil || got.Mean != mean) {
				t.Errorf("%d items: item %d has %+v, want a mean of %g us", items, i, got, mean)
			}
		}
	}
}
