package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/results/record"
	"weft/results/stats"
)

func TestSettingsDiff(t *testing.T) {
	run := func(settings ...record.Setting) *Run { return &Run{Manifest: &record.Manifest{Settings: settings}} }
	setting := func(path, value, from string) record.Setting {
		return record.Setting{Path: path, Value: value, From: from}
	}
	kind := func(k string, seed string) *Run {
		return run(setting("transport.kind", k, "line 3"), setting("seed", seed, "line 4"), setting("transport."+k+".x", "1", "default: ours"))
	}
	module := func(name, hash string) *Run {
		return &Run{Manifest: &record.Manifest{Module: &record.Module{Name: name, SHA256: hash}}}
	}
	script := func(name, hash string) *Run {
		return &Run{Manifest: &record.Manifest{ProgramFiles: []record.ProgramFile{{Path: "workload.0.files.0", File: name, SHA256: hash}}}}
	}
	var many []record.Setting
	for i := range 10 {
		many = append(many, setting(fmt.Sprintf("p%d", i), "1", "line 1"))
	}
	for _, c := range []struct {
		name string
		a, b Side
		want string
	}{
		{"seeds alone", Side{kind("pc4", "1")}, Side{kind("pc4", "2")}, ""},
		{"written", Side{kind("pc4", "1")}, Side{kind("roce", "1")}, "settings that differ (A / B): transport.kind pc4 / roce; and 2 defaults"},
		{"sweeps", Side{kind("pc4", "1"), kind("roce", "1")}, Side{kind("roce", "1"), kind("pc4", "1")}, ""},
		{"defaults", Side{run(setting("a", "1", "default: ours"))}, Side{run(setting("a", "2", "default: ours"))}, "settings that differ (A / B): a 1 / 2"},
		{"many", Side{run(many...)}, Side{run()},
			"settings that differ (A / B): p0 1 / -; p1 1 / -; p2 1 / -; p3 1 / -; p4 1 / -; p5 1 / -; p6 1 / -; p7 1 / -; and 2 more"},
		{"the same build", Side{module("mine", "aaaaaaaa11")}, Side{module("mine", "aaaaaaaa11")}, ""},
		{"other builds", Side{module("mine", "aaaaaaaa11")}, Side{module("mine", "bbbbbbbb22"), module("mine", "aaaaaaaa11")},
			"settings that differ (A / B): build of module mine (sha256) aaaaaaaa / aaaaaaaa, bbbbbbbb"},
		{"the same program", Side{script("x.sh", "aaaaaaaa11")}, Side{script("x.sh", "aaaaaaaa11")}, ""},
		{"another program", Side{script("x.sh", "aaaaaaaa11"), script("y.sh", "cc")}, Side{script("x.sh", "bbbbbbbb22")},
			"settings that differ (A / B): file x.sh of programs (sha256) aaaaaaaa / bbbbbbbb"},
		{"other modules", Side{module("mine", "aaaaaaaa11")}, Side{module("copa", "bbbbbbbb22")}, ""},
	} {
		if got := SettingsDiff(c.a, c.b); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A comparison of transports says that a controller helps one of them.
func TestControllerNote(t *testing.T) {
	side := func(paths ...string) Side {
		m := &record.Manifest{}
		for _, p := range paths {
			path, value, _ := strings.Cut(p, "=")
			m.Settings = append(m.Settings, record.Setting{Path: path, Value: value})
		}
		return Side{{Manifest: m}}
	}
	const rates, start = "transport.pc4.base_rate", "transport.pc4.initial"
	helped, alone, other := side(rates+"=controller", start+"=base-rate"), side(rates+"=off", start+"=line"), side("transport.kind=roce")
	if a, b := ControllerNote(helped, other), ControllerNote(other, helped); !strings.HasPrefix(a, "note: in A ") || !strings.HasPrefix(b, "note: in B ") {
		t.Errorf("%q, %q", a, b)
	}
	for _, c := range []struct{ rates, start, settings string }{
		{"controller", "line", "--set transport.pc4.base_rate=observed"},
		{"table", "base-rate", "--set transport.pc4.base_rate=observed --set transport.pc4.initial=line"},
		{"off", "base-rate", "--set transport.pc4.initial=line"}, // it starts at the share that the controller planned
	} {
		got := ControllerNote(side(rates+"="+c.rates, start+"="+c.start), other)
		if _, settings, _ := strings.Cut(got, "without it: "); settings != c.settings {
			t.Errorf("%v: got %q", c, got)
		}
	}
	if got := ControllerNote(side("transport.ccm.pc4.initial=base-rate"), other); !strings.HasSuffix(got, "--set transport.ccm.pc4.initial=line") {
		t.Errorf("inside another transport: got %q", got)
	}
	for _, pair := range [][2]Side{{helped, helped}, {helped, alone}, {alone, other}, {other, other}} {
		if got := ControllerNote(pair[0], pair[1]); got != "" {
			t.Errorf("got %q", got)
		}
	}
}

// A width that is only a rounding error is not printed.
func TestIntervalOfEqualNumbers(t *testing.T) {
	if got := interval(stats.Interval{Mean: 5.2, Low: 5.2 - 4.4e-16, High: 5.2 + 4.4e-16}, "us"); got != "5.2 us" {
		t.Errorf("got %s", got)
	}
}

// The page of an emulated sweep has the dilations of its points, and says that its charts have
// invalid ones among them.
func TestSweepPageOfEmulations(t *testing.T) {
	var runs []*record.Summary
	for i, verdict := range []string{"ok", "invalid"} {
		runs = append(runs, &record.Summary{Lab: "a", Engine: "emu", Dilation: float64(4000 * (1 + i)), Status: record.OK,
			Point: map[string]any{"seed": i}, Fidelity: &record.Fidelity{Verdict: verdict}})
	}
	chart, err := SweepPlot{Title: "RTT", X: "transport.kind", Y: "rtt.mean"}.Draw(sweepPoints())
	if err != nil {
		t.Fatal(err)
	}
	first := &Run{Manifest: &record.Manifest{Run: "r", Engine: "emu"}}
	p, err := SweepPage("v1", first, runs, nil, []Chart{{Drawing: chart}}, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	charts := p.Parts[slices.IndexFunc(p.Parts, func(p Part) bool { return p.Heading == "Charts" })]
	if !strings.HasSuffix(p.Sub, "; dilation 4000 to 8000") || !strings.Contains(charts.Text, "1 run of invalid fidelity") {
		t.Errorf("%q, %q", p.Sub, charts.Text)
	}
}
