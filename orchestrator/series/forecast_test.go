package series

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/run"
	"weft/results/record"
)

func TestSimulates(t *testing.T) {
	const most = 10 * time.Minute
	for _, c := range []struct {
		emulating, simulating time.Duration
		want                  bool
	}{
		{5 * time.Second, time.Second, false},
		{30 * time.Second, time.Second, false},
		{31 * time.Second, time.Second, true},
		{31 * time.Second, 10 * time.Second, true},
		{31 * time.Second, 11 * time.Second, false}, // both are waits
		{9 * time.Minute, 20 * time.Minute, false},
		{10 * time.Minute, time.Minute, false},
		{11 * time.Minute, time.Minute, true},
		{11 * time.Minute, time.Hour, true},
	} {
		if got := Simulates(c.emulating, c.simulating, most); got != c.want {
			t.Errorf("emulating %v, simulating %v: %v", c.emulating, c.simulating, got)
		}
	}
}

func TestDatapath(t *testing.T) {
	for _, c := range []struct {
		takes          time.Duration
		lacks          error
		datapath, says string
	}{
		{9 * time.Second, nil, "kernel", "auto: Linux honours the lab, in about 9 s"},
		{30 * time.Second, nil, "kernel", "in about 30 s"},
		{2 * time.Minute, nil, "fabric", "auto: Linux would take about 2 min; --datapath kernel takes it"},
		{0, nil, "fabric", "auto: nobody can tell how long"},
		{9 * time.Second, errors.New("no PFC"), "fabric", "auto: Linux cannot honour the lab: no PFC"},
	} {
		if datapath, why := Datapath(c.takes, c.lacks); datapath != c.datapath || !strings.Contains(why, c.says) {
			t.Errorf("%v, %v: %s, %q", c.takes, c.lacks, datapath, why)
		}
	}
}

// oracle is an engine that forecasts: the wait, or an error on Linux. It runs nothing.
type oracle struct {
	wait time.Duration
	err  error // on the kernel datapath
	seen []string
}

func (o *oracle) Run(context.Context, *experiment.Experiment, run.Options) (*record.Summary, error) {
	return nil, errors.New("nothing runs")
}

func (o *oracle) Predict(_ context.Context, x *experiment.Experiment, opts run.Options) (run.Forecast, error) {
	o.seen = append(o.seen, x.Lab.Engine.Datapath)
	if x.Lab.Engine.OnKernel() && o.err != nil {
		return run.Forecast{}, o.err
	}
	return run.Forecast{Engine: "emu", Wall: o.wait}, nil
}

// jobs returns a job for each lab, which is a star with some settings.
func jobs(t *testing.T, settings ...string) (all []*Job) {
	t.Helper()
	for _, s := range settings {
		text := "weft: 1\nname: x\ntopology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}\n" +
			"workload: [{collective: incast, ranks: 2, size: 64KB}]\n" + s
		labs, err := lab.Parse("x.yaml", []byte(text), lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		j := &Job{Lab: labs[0], Engine: labs[0].Engine.Kind}
		j.slower = func(float64) (*lab.Lab, error) { return labs[0], nil }
		all = append(all, j)
	}
	return all
}

// All jobs that leave the datapath to Weft get one and the same: Linux if it can honour each of
// them and soon, else the modelled fabric. What asks for a datapath, or is simulated, keeps it.
func TestChooseDatapath(t *testing.T) {
	const open, fabric = "engine: {kind: emu, datapath: auto}", "engine: {kind: emu}"
	const paused = "queues: {shared: {total: 32MB}, pfc: on}\n"
	for name, c := range map[string]struct {
		labs    []string
		blocked error
		o       oracle
		want    []string
		says    string
	}{
		"Linux":            {[]string{open, fabric}, nil, oracle{wait: 5 * time.Second}, []string{"kernel", "fabric"}, "honours"},
		"long":             {[]string{open}, nil, oracle{wait: time.Minute}, []string{"fabric"}, "would take about 60 s"},
		"long in all":      {[]string{open, open}, nil, oracle{wait: 20 * time.Second}, []string{"fabric", "fabric"}, "about 40 s"},
		"one cannot":       {[]string{open, paused + open}, nil, oracle{wait: time.Second}, []string{"fabric", "fabric"}, "Linux has no priority flow control"},
		"this kernel":      {[]string{open}, nil, oracle{wait: time.Second, err: errors.New("no netem")}, []string{"fabric"}, "no netem"},
		"the command":      {[]string{open}, errors.New("--capture copies"), oracle{wait: time.Second}, []string{"fabric"}, "--capture copies"},
		"not known":        {[]string{open}, nil, oracle{}, []string{"fabric"}, "nobody can tell"},
		"simulated":        {[]string{"engine: {kind: sim, datapath: auto}"}, nil, oracle{wait: time.Second}, []string{"auto"}, ""},
		"asked for Linux":  {[]string{"engine: {kind: emu, datapath: kernel}"}, nil, oracle{wait: time.Hour}, []string{"kernel"}, ""},
		"nobody leaves it": {[]string{fabric}, nil, oracle{wait: time.Second}, []string{"fabric"}, ""},
	} {
		all := jobs(t, c.labs...)
		ChooseDatapath(t.Context(), &c.o, all, c.blocked, nil)
		for i, j := range all {
			again, err := j.slower(2)
			if j.Lab.Engine.Datapath != c.want[i] || err != nil || again.Engine.Datapath != c.want[i] {
				t.Errorf("%s: job %d has %s, and slower %s, %v; want %s", name, i, j.Lab.Engine.Datapath,
					again.Engine.Datapath, err, c.want[i])
			}
		}
		if why := all[0].datapathWhy; !strings.Contains(why, c.says) || (why == "") != (c.says == "") {
			t.Errorf("%s: says %q, want %q", name, why, c.says)
		}
		if c.says == "" && len(c.o.seen) > 0 {
			t.Errorf("%s: asked about %q", name, c.o.seen)
		}
	}
}
