package table

import (
	text "bytes"
	"strings"
	"testing"

	"weft/results/record"
)

func clocked(sync string) *record.Summary {
	return &record.Summary{
		Lab: "clocks", Engine: "sim", Status: "ok", Verified: true, Point: map[string]any{"clocks.sync": sync},
		Clocks: record.Clocks{
			Sync: sync, Samples: 10, Error: record.Quantiles{Mean: 3, P50: 2.5, P99: 12, Max: 1500}, LimitNS: 100,
			Packets: 7, Bytes: 640, Share: 0.0046,
			Reference: &record.Quantiles{P99: 11}, Bound: &record.Quantiles{P50: 60}, Coverage: new(0.9999),
			ConvergedUS: new(2410.0),
			Refused:     3, Filtered: 4, Steps: 2, Resets: 1,
		},
	}
}

func TestSummaryShowsClocks(t *testing.T) {
	var b text.Buffer
	if err := Summary(&b, clocked("huygens"), Style{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"between hosts", "2.5 ns", "12 ns", "1.5 us", "within 100 ns since 2.41 ms", "holds for 99.99 % of pairs",
		"to the reference",
		"huygens: 7 packets, 640 B, 0.46 % of what NICs can send, 3 refused, 4 outliers left out, 2 steps, 1 " +
			"clock restarts",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "verified") || strings.Contains(b.String(), "flows") {
		t.Errorf("a run without a workload speaks of one:\n%s", b.String())
	}
}

func TestSummaryShowsStabilityBesideLimits(t *testing.T) {
	s := clocked("ptp")
	s.Clocks.Stability = &record.Stability{
		Hosts: 3, MaxTE: 12, Constant: 1.5, At: []record.Averaged{{TauUS: 10, ADEV: 2.83e-5, MDEV: 1e-6, TDEV: 0.25,
			MTIE: 7}, {TauUS: 100}},
		Classes: []record.Class{{Name: "A", MaxTE: 100, Constant: 50, MTIE: 40, TDEV: 4}},
	}
	var b text.Buffer
	if err := Summary(&b, s, Style{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"over 10 us", "2.83e-05", "250 ps", "7 ns", "1.5 ns", "over 100 us", "G.8273.2 class A",
		"40 ns", "for comparison alone"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "complian") {
		t.Errorf("a run speaks of compliance:\n%s", b.String())
	}
	s.Flows.Count = 8
	b.Reset()
	if err := Summary(&b, s, Style{}); err != nil || strings.Contains(b.String(), "G.8273.2") {
		t.Errorf("a run with a workload has the table: %v\n%s", err, b.String())
	}
}

func TestSummaryOfClocksThatNothingKeeps(t *testing.T) {
	s := clocked("none")
	s.Clocks = record.Clocks{Sync: "none", Samples: 10, Error: record.Quantiles{P99: 2000}, LimitNS: 100}
	var b text.Buffer
	if err := Summary(&b, s, Style{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"none: not synchronized", "still apart by more than 100 ns at the end", "2 us"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestPointsOfClocksAreATableOfTheirOwn(t *testing.T) {
	apart := clocked("none")
	apart.Clocks.ConvergedUS, apart.Clocks.Coverage = nil, nil
	busy := clocked("ptp")
	busy.Flows.Count = 8
	var b text.Buffer
	if err := Points(&b, []*record.Summary{clocked("huygens"), apart, busy}, Style{}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{"error p50", "2.41 ms", "99.99 %", "0.46 %", "FCT p50"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "huygens"); n != 2 { // the point and the kind, in one table
		t.Errorf("a run without a workload is named %d times:\n%s", n, got)
	}
}
