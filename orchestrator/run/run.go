package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/failure"
	"weft/orchestrator/lab"
	"weft/orchestrator/summary"
	"weft/orchestrator/topology"
	"weft/orchestrator/uml"
	"weft/results/expect"
	"weft/results/record"
	"weft/results/store"
	"weft/units"
)

// Options say how a lab is to be run. The zero value runs it as the lab says.
type Options struct {
	Engine  string // "", auto, sim or emu; "" takes the lab's
	Why     string // Engine is sim although nobody asked for it; may be empty
	Self    string // path of the weft binary that nodes re-execute; "" is this program
	Root    string // directory that keeps all runs; "" is runs
	LabText []byte // the lab file as it was read, kept with the results
	Version string
	Program string       // what tells this very program from others of its version, kept with the results; may be empty
	Series  store.Series // which run this is of its command line; names the directory

	Subnet   topology.Subnet // of a lab that stands; 0: that of a lab by itself
	Dilation float64         // likewise, as it was chosen before for a lab that leaves it open; 0: choose

	Captures []Capture // of the run, which has to be emulated

	Retry   *record.Retry // what the run before was, if this is another try of it; whether it counts is found out
	Retries bool          // another try is made by itself where it helps

	Announced bool // ForeseeAll told the user about this run if it is emulated, so that Say need not

	Workers int // processors that a simulation may use; 0: all. It makes no difference to the results.

	Say      func(line string)   // told, before anything runs, which engine was chosen and why, and at the end what was captured; may be nil
	Parts    func([]record.Part) // told at the end what every rank did, also of a run that failed; may be nil
	Step     func(step string)   // told of every step of starting and ending an emulated lab: see runtime.Spec; may be nil
	Progress func(Progress)      // called every now and then from one goroutine; may be nil
}

func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Measuring is the phase in which it is found out what the machine can carry: once for a program on a machine, and before anything runs.
const Measuring = "measuring the machine"

// Progress is how far a run has come.
type Progress struct {
	Phase       string      // Measuring or running
	Done, Total units.Bytes // of Measuring: steps
	LabTime     units.Time
}

// Run runs an experiment, leaves its run directory and returns the summary. With a nil summary nothing was run or left.
// A run that failed or was interrupted has a summary that says so, and the error.
func Run(ctx context.Context, x *experiment.Experiment, o Options) (*record.Summary, error) {
	l := x.Lab
	captures, err := createCaptures(x, o)
	if err != nil {
		return nil, err
	}
	defer captures.discard()
	e, err := choose(ctx, x, o)
	if err != nil {
		return nil, err
	}
	e.captures = captures
	if e.name == "sim" && len(captures) > 0 {
		return nil, fmt.Errorf("--capture: the simulator's packets have no bytes to write, and the lab would be simulated: %s; --engine emu captures where the machine can", e.why)
	}
	if o.Say != nil && !(o.Announced && e.name == "emu") {
		line := fmt.Sprintf("engine %s: %s", e.name, e.why)
		if e.name == "emu" {
			if d := takes(ctx, x, e.dilation); d > 0 {
				line += "; takes " + AboutTime(d)
			}
		}
		o.Say(line)
	}
	start := time.Now()
	dir, err := store.Open(store.Options{Root: o.Root, Now: start, Series: o.Series, LabText: o.LabText, Manifest: manifest(x, e, o)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Abandon(time.Now(), errors.New("the run ended without a summary")) }()

	out, runErr := e.run(ctx, x, e, dir, o)
	s := &record.Summary{
		Lab: l.Name, Point: l.Point, Engine: e.name, Datapath: e.datapath, Runtime: e.place.runtime,
		Dilation: cmp.Or(out.Dilation, e.dilation), Seed: l.Seed, Transport: l.Transport.Kind, Status: record.OK,
		Collectives: []record.Collective{}, Expect: []record.Expect{},
	}
	for _, p := range x.Outside() {
		s.Warnings = append(s.Warnings, p.Path+": "+p.Message)
	}
	summary.Summarize(x, out, s)
	if s.Fidelity != nil {
		s.Fidelity.Advice = emulate.Advice(s.Fidelity, s.Dilation, o.Retries)
	}
	by := units.Time(s.LabTimeUS * float64(units.Microsecond))
	if ctx.Err() == nil && stuck(runErr) {
		runErr = failure.Explain(x, runErr, out, e.datapath == experiment.OnKernel, by)
	}
	s.Warnings = append(s.Warnings, failure.Untold(failure.Halted(x, by), runErr)...)
	s.WallS = time.Since(start).Seconds()
	switch {
	case runErr == nil:
		s.Status, s.Error = summary.Settle(x, out.Dones, &s.Flows)
		if text := summary.Unreached(x, by); text != "" {
			s.Warnings = append(s.Warnings, text)
		}
		s.Expect = expect.All(expectations(l), s, l.Scope())
	case ctx.Err() != nil:
		s.Status, s.Error = record.Interrupted, context.Cause(ctx).Error()
	default:
		s.Status, s.Error = record.Failed, runErr.Error()
	}
	if o.Retry != nil {
		s.Retry = retried(*o.Retry, s)
		if err := dir.Update(func(m *record.Manifest) { m.Retry = s.Retry }); err != nil && runErr == nil {
			runErr = err
		}
	}
	if faults := summary.FaultRows(x); len(faults) > 0 && out.CutBy != nil {
		if err := dir.Update(func(m *record.Manifest) { m.Faults = summary.CutRows(x, faults, out.CutBy) }); err != nil && runErr == nil {
			runErr = err
		}
	}
	parts := summary.Parts(x, out)
	if o.Parts != nil {
		o.Parts(parts)
	}
	if err := storeAll(x, out, parts, dir); err == nil || runErr == nil {
		runErr = errors.Join(runErr, err)
	}
	if err := dir.Finish(time.Now(), s); err != nil && !errors.Is(runErr, err) {
		runErr = errors.Join(runErr, err)
	}
	return s, runErr
}

// retried says whether another try counts: it went to its end, and its fidelity is no worse than that of the run before.
func retried(r record.Retry, s *record.Summary) *record.Retry {
	r.Counts = s.Complete() && s.Fidelity != nil && emulate.Worse(s.Fidelity.Verdict, r.Verdict) == r.Verdict
	return &r
}

// expectations returns the lines of the lab's expect section.
func expectations(l *lab.Lab) []string {
	lines := make([]string, len(l.Expect))
	for i, e := range l.Expect {
		lines[i] = e.Text
	}
	return lines
}

func manifest(x *experiment.Experiment, e engine, o Options) record.Manifest {
	m := record.Manifest{
		Lab: x.Lab.Name, Point: x.Lab.Point, Set: x.Lab.Set, Seed: x.Lab.Seed, Version: o.Version, Program: o.Program, Go: runtime.Version(),
		Engine: e.name, EngineWhy: e.why, Datapath: e.datapath, Runtime: e.place.runtime, Dilation: e.dilation,
		Machine: machine(), Faults: summary.FaultRows(x),
	}
	for _, t := range x.Lab.Traces {
		m.Traces = append(m.Traces, record.Trace{File: t.File, Text: string(t.Text)})
	}
	for _, s := range x.Lab.Sources {
		m.Settings = append(m.Settings, record.Setting{Path: s.Path, Value: s.Value, From: s.From})
	}
	return m
}

func machine() record.Machine {
	m := record.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	m.Host, _ = os.Hostname() // a machine without a name is still a machine
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
		if uml.Inside() != "" {
			m.Kernel = "uml " + m.Kernel
		}
	}
	return m
}
