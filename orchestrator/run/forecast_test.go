package run

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"weft/orchestrator/lab"
	"weft/results/record"
	"weft/units"
)

// A forecast that simulates the whole run is exact. One that simulates a part of it is about right.
func TestForecast(t *testing.T) {
	text := star + "workload: [{collective: all-reduce, size: 4MB, repeat: 4}]"
	s := mustSimulate(t, text)
	x := build(t, text)
	for _, c := range []struct {
		events int64
		off    float64
	}{{1 << 40, 0}, {s.Events / 4, 0.1}} {
		got, _, ok := forecastLabTime(t.Context(), x, c.events, nil)
		if !ok || math.Abs(got.Microseconds()/s.LabTimeUS-1) > c.off+1e-9 {
			t.Errorf("%d of %d events: %v, %t; the run lasts %g us", c.events, s.Events, got, ok, s.LabTimeUS)
		}
	}
	for _, p := range []placement{inNamespaces, inContainers} {
		e := &engine{dilation: 1000, placement: p}
		want := p.start(x) + time.Duration(s.LabTimeUS*1e6)
		if got := forecastWall(t.Context(), x, e, nil); (got - want).Abs() > time.Microsecond {
			t.Errorf("at dilation 1000 it takes %v, want %v", got, want)
		}
	}
	kernel := inNamespaces
	kernel.datapath = lab.DatapathKernel
	if a, b, c := inNamespaces.start(x), kernel.start(x), inContainers.start(x); a >= b || b >= c {
		t.Errorf("namespaces start in %v, with switches in %v, containers in %v", a, b, c)
	}
	if got, _, ok := forecastLabTime(t.Context(), build(t, star+"workload: [{collective: all-reduce, size: 4KB, start: 5ms}]"), 1<<40, nil); !ok || got < 5*units.Millisecond {
		t.Errorf("an item that starts at 5 ms: %v, %t", got, ok)
	}
}

// The progress in the second half of the time gives the speed of the rest.
func TestExtrapolate(t *testing.T) {
	at := func(t units.Time, done units.Bytes) Progress { return Progress{LabTime: t, Done: done, Total: 1000} }
	for _, c := range []struct {
		seen []Progress
		want units.Time
		ok   bool
	}{
		{nil, 0, false},
		{[]Progress{at(10, 100)}, 0, false},
		{[]Progress{at(10, 0), at(50, 0), at(100, 0)}, 0, false}, // nothing moved
		{[]Progress{at(10, 1), at(50, 100), at(100, 200)}, 500, true},
		{[]Progress{at(10, 1), at(50, 100), at(100, 1000)}, 100, true},
	} {
		if got, ok := extrapolate(c.seen); got != c.want || ok != c.ok {
			t.Errorf("%+v: %d, %t; want %d, %t", c.seen, got, ok, c.want, c.ok)
		}
	}
}

func TestAboutTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "about 1 s", 4400 * time.Millisecond: "about 4 s", 88 * time.Second: "about 90 s", 9*time.Minute + 20*time.Second: "about 9 min",
		100 * time.Minute: "about 1.7 h",
	} {
		if got := AboutTime(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// A run in the simulator that nobody asked for says why.
func TestUnrequestedSimulationSaysWhy(t *testing.T) {
	var said []string
	l := parse(t, star+"workload: [{collective: all-reduce, size: 4KB}]")
	if _, err := runLab(t.Context(), l, Options{Engine: "sim", Why: "emulating takes about 9 min", Root: t.TempDir(), Say: func(s string) { said = append(said, s) }}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(said, "\n"); got != "engine sim: emulating takes about 9 min" {
		t.Errorf("got %q", got)
	}
}

// A long simulation says so before it begins, and a cancelled one ends although a host is starting
// a million messages.
func TestLargeSimulation(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var said string
	s, err := runLab(ctx, parse(t, star+"workload: [{collective: all-reduce, size: 60GB}]"), Options{
		Engine: "sim", Root: t.TempDir(), Say: func(line string) { said = line; time.AfterFunc(50*time.Millisecond, stop) },
	})
	if err == nil || s.Status != record.Interrupted {
		t.Errorf("%v, %+v", err, s)
	}
	if want := "; simulates about 117.2 million packets, which takes about 2 min on an idle processor"; !strings.HasSuffix(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// Announce describes several runs in one sentence, with the time of all of them.
func TestAnnounce(t *testing.T) {
	labs := make([]*lab.Lab, 16)
	engines := make([]string, len(labs))
	for i := range labs {
		labs[i], engines[i] = &lab.Lab{Seed: uint64(i)}, "auto"
	}
	announce := func(engines []string, of func(l *lab.Lab) (Forecast, error)) (line string, seen int) {
		line = Announce(func(i int, _ Options) (Forecast, error) {
			seen++
			return of(labs[i])
		}, engines, Options{})
		return line, seen
	}
	emulated := func(l *lab.Lab) (Forecast, error) {
		return Forecast{Engine: "emu", Why: "asked for", Dilation: float64(100 + l.Seed), Wall: 15 * time.Second}, nil
	}
	for _, c := range []struct {
		name    string
		engines []string
		of      func(l *lab.Lab) (Forecast, error)
		want    string
		seen    int
	}{
		{"all", engines, emulated, "engine emu: 16 runs at dilations from 100 to 114, one after the other; takes about 4 min in all. The first: asked for", 8},
		{"half", []string{"sim", "emu", "sim", "emu"}, emulated, "engine emu: 2 of 4 runs at dilations from 101 to 103, one after the other; takes about 30 s in all. The first: asked for", 2},
		{"some", engines, func(l *lab.Lab) (Forecast, error) {
			if l.Seed < 8 {
				return Forecast{Engine: "sim"}, nil
			}
			return Forecast{Engine: "emu", Why: "asked for", Dilation: 100, Wall: 15 * time.Second}, nil
		}, "engine emu: some of 16 runs, one after the other; takes about 2 min in all. The first: asked for", 8},
		{"none", []string{"sim", "sim"}, emulated, "", 0},
		{"simulated", engines, func(*lab.Lab) (Forecast, error) { return Forecast{Engine: "sim"}, nil }, "", 8},
		{"not known", engines, func(*lab.Lab) (Forecast, error) { return Forecast{Engine: "emu"}, nil }, "", 1},
		{"wrong", engines, func(*lab.Lab) (Forecast, error) { return Forecast{}, errors.New("no") }, "", 1},
	} {
		if line, seen := announce(c.engines, c.of); line != c.want || seen != c.seen {
			t.Errorf("%s: %q after %d forecasts, want %q after %d", c.name, line, seen, c.want, c.seen)
		}
	}
}
