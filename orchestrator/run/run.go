package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/failure"
	"weft/orchestrator/lab"
	"weft/orchestrator/runtime"
	"weft/orchestrator/summary"
	"weft/orchestrator/topology"
	"weft/orchestrator/uml"
	"weft/results/expect"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/store"
	"weft/transport"
	"weft/units"
)

// Options are the settings of a run beside its lab. The zero value runs the lab as its file says.
type Options struct {
	// Engine is auto, sim or emu. Empty means the lab's engine.
	Engine string
	// Why is the reason for a simulation that the user did not request. It may be empty.
	Why string
	// DatapathWhy is the reason for the datapath of an emulation that the user did not request. It
	// may be empty.
	DatapathWhy string
	// Self is the path of the weft binary that nodes re-execute. Empty means this program.
	Self string
	// Root is the directory of all runs. Empty means runs.
	Root string
	// As is the path that the files of the run, and its summary, have of its directory, if it moves
	// there once it is finished. Empty means where it is.
	As string
	// LabText is the text of the lab file. The run directory keeps it.
	LabText []byte
	// Inputs are the files that the lab names. The run directory keeps them.
	Inputs store.Inputs
	// Version is the version of weft. The run directory keeps it.
	Version string
	// Program distinguishes this program from others of its version. The run directory keeps it. It
	// may be empty.
	Program string
	// Series is the place of this run among those of its command line. It names the directory.
	Series store.Series

	// Subnet is that of a lab that stays up. 0 means the default subnet.
	Subnet topology.Subnet
	// Dilation was chosen earlier for a lab that stays up and leaves it open. 0 means to choose it
	// now.
	Dilation float64

	// Machines are other machines for the parts of an emulated lab; nil: all on this one. On is
	// what the user called them.
	Machines Machines
	On       string

	// Captures need an emulated run.
	Captures []Capture

	// Retry describes the previous try if this run is another try of it. Run decides whether it
	// counts.
	Retry *record.Retry
	// Retries says that the caller makes another try on its own where that helps.
	Retries bool

	// Announced says that Announce has already told the user about this run if it is emulated. Say
	// is then not called for it.
	Announced bool

	// Wall is about how long emulating this run takes; 0: Say needs a forecast of it.
	Wall time.Duration

	// Workers is the number of processors that a simulation may use. 0 means all. It makes no
	// difference to the results.
	Workers int

	// Say receives, before anything runs, the chosen engine and the reason, and at the end what was
	// captured. It may be nil.
	Say func(line string)
	// Parts receives at the end the part of every rank, also of a run that failed. It may be nil.
	Parts func([]record.Part)
	// Step receives every step of starting and ending an emulated lab: see runtime.Spec. It may be
	// nil.
	Step func(step string)
	// Lines receives each line that programs of the workload print, one at a time. It may be nil.
	Lines func(host string, errors bool, line []byte)
	// Frames is called after each frame of a run that records frames, from one goroutine, with the
	// run's directory and all frames so far. They are valid during the call. It may be nil.
	Frames func(x *experiment.Experiment, dir string, n *record.NetworkMap, all []frames.Frame)
	// Kept receives at the end what a run with frames has in memory. It may be nil.
	Kept func(Kept)
	// Progress is called a few times per second from one goroutine. It may be nil.
	Progress func(Progress)

	framed func([]frames.Frame) // called after each frame; nil: the lab wants none
}

// Machines are other machines than this one, each for one part of an emulated lab.
type Machines interface {
	// Launches returns the launches of the parts of one run: see emulate.Processes.
	Launches(ctx context.Context) ([]runtime.Launch, error)
	// Capacities returns what each machine can carry.
	Capacities(ctx context.Context) ([]emulate.Capacity, error)
	// Names says which machine is which, once Launches or Capacities has returned.
	Names() []string
}

func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return goruntime.GOMAXPROCS(0)
}

// Kept holds data that a run wrote to its files, so that its pages need not read it
// again.
type Kept struct {
	Network *record.NetworkMap
	Frames  []frames.Frame
	Conns   []record.Conn // by connection
	Parts   []record.Part
}

// Phases before anything runs.
const (
	// Measuring is the phase that measures the load that the machine can carry: once for a program
	// on a machine.
	Measuring = "measuring the machine"
	// Forecasting is the phase that simulates the beginning of an emulation.
	Forecasting = "estimating how long it takes"
)

// Progress is the progress of a run.
type Progress struct {
	Phase       string      // Measuring, Forecasting or running
	Done, Total units.Bytes // before anything runs: steps
	LabTime     units.Time
}

// Before reports whether nothing runs yet.
func (p Progress) Before() bool { return p.Phase == Measuring || p.Phase == Forecasting }

// Run runs an experiment, leaves its run directory and returns the summary. A nil summary means
// that nothing ran and no directory is left. A run that failed or was interrupted has both a
// summary that says so and an error.
func Run(ctx context.Context, x *experiment.Experiment, o Options) (*record.Summary, error) {
	l := x.Lab
	captures, err := createCaptures(x, o)
	if err != nil {
		return nil, err
	}
	defer captures.discard()
	e, err := chooseEngine(ctx, x, o)
	if err != nil {
		return nil, err
	}
	e.captures = captures
	if e.name == "sim" && len(captures) > 0 {
		return nil, fmt.Errorf("--capture: the simulator's packets have no bytes to write, "+
			"and the lab would be simulated: %s; --engine emu captures where the machine can", e.why)
	}
	if o.Say != nil && !(o.Announced && e.name == "emu") {
		o.Say(fmt.Sprintf("engine %s: %s%s", e.name, e.why, forecast(ctx, x, e, o)))
	}
	start := time.Now()
	dir, err := store.Open(store.Options{
		Root: o.Root, Now: start, Series: o.Series, As: o.As, LabText: o.LabText, Inputs: o.Inputs,
		Manifest: manifest(x, e, o),
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Abandon(time.Now(), errors.New("the run ended without a summary")) }()

	network, err := storeNetwork(x, dir, &o)
	if err != nil {
		return nil, err
	}
	out, runErr := e.run(ctx, x, e, dir, o)
	s := &record.Summary{
		Lab: l.Name, Point: l.Point, Engine: e.name, Datapath: e.datapath, Runtime: e.placement.runtime,
		NIC: e.placement.nic(), Dilation: cmp.Or(out.Dilation, e.dilation), Seed: l.Seed, Transport: l.Sends(),
		Module: moduleOf(l), Status: record.OK,
		Collectives: []record.Collective{}, Expect: []record.Expect{},
	}
	summary.Summarize(x, out, s, after(ctx, summaryTime))
	if f := s.Fidelity; f != nil {
		f.Advice = emulate.Advice(f, s.Dilation, o.Retries)
	}
	by := out.End()
	s.Warnings = append(warnings(x, out, s), s.Warnings...)
	if ctx.Err() == nil && noProgress(runErr) {
		runErr = failure.Explain(x, runErr, out, e.datapath == lab.DatapathKernel, by)
	}
	s.Warnings = append(s.Warnings, failure.Untold(failure.Halted(x, by), runErr)...)
	s.WallS = time.Since(start).Seconds()
	switch {
	case runErr == nil:
		s.Status, s.Error = summary.Settle(x, out.Dones, &s.Flows)
		if text := summary.Unreached(x, by); text != "" {
			s.Warnings = append(s.Warnings, text)
		}
		in := l.In(e.name)
		s.Expect = append(expect.All(expectations(in), s, l.Scope()), skipped(in)...)
	case ctx.Err() != nil:
		s.Status, s.Error = record.Interrupted, context.Cause(ctx).Error()
	default:
		s.Status, s.Error = record.Failed, runErr.Error()
	}
	update := func(change func(*record.Manifest)) {
		if err := dir.Update(change); err != nil && runErr == nil {
			runErr = err
		}
	}
	if o.Retry != nil {
		s.Retry = judgeRetry(*o.Retry, s)
		update(func(m *record.Manifest) { m.Retry = s.Retry })
	}
	if o.Machines != nil {
		update(func(m *record.Manifest) { m.Machines = o.Machines.Names() })
	}
	if faults := summary.Happened(x, out); faults != nil {
		update(func(m *record.Manifest) { m.Faults = faults })
	}
	parts := summary.Parts(x, out)
	if o.Parts != nil {
		o.Parts(parts)
	}
	if o.Kept != nil && network != nil {
		o.Kept(Kept{Network: network, Frames: out.Frames, Conns: summary.Conns(x, out), Parts: parts})
	}
	short, err := storeAll(x, out, parts, dir, after(ctx, summaryTime))
	if s.Warnings = append(s.Warnings, short...); err == nil || runErr == nil {
		runErr = errors.Join(runErr, err)
	}
	if err := dir.Finish(time.Now(), s); err != nil && !errors.Is(runErr, err) {
		runErr = errors.Join(runErr, err)
	}
	return s, runErr
}

// warnings returns what the lab says and the run did not do, and conditions of its transport that
// did not hold. Marks are none to warn of where a port sent for nine tenths of the run: nothing can
// end much sooner than that.
func warnings(x *experiment.Experiment, out *summary.Outcome, s *record.Summary) (all []string) {
	took, marks := units.Time(s.LabTimeUS*float64(units.Microsecond)), s.Network.CEMarks
	if 10*out.Busiest >= 9*took {
		marks = 0
	}
	for _, p := range append(x.Lab.Notes(), x.Outside(took, marks)...) {
		all = append(all, p.Path+": "+p.Message)
	}
	return all
}

// storeNetwork writes the network that frames are of, and has o.Frames called with it. The network
// is nil if the lab wants no frames.
func storeNetwork(x *experiment.Experiment, dir *store.Run, o *Options) (*record.NetworkMap, error) {
	if x.Lab.Measure.View == 0 {
		return nil, nil
	}
	network := networkMap(x)
	keep := frameKeeper{dir: dir, ports: x.PortNames()}
	show := o.Frames
	o.framed = func(all []frames.Frame) {
		keep.add(all)
		if show != nil {
			show(x, dir.Dir(), network, all)
		}
	}
	return network, dir.Network(network)
}

// summaryTime is how long the summary of an interrupted run may take, and the writing of its data
// files: who has asked for the end waits for it. Ours.
const summaryTime = 300 * time.Millisecond

// after returns a function that reports whether ctx has been done for some time since the first
// call that saw it.
func after(ctx context.Context, some time.Duration) func() bool {
	var since time.Time
	return func() bool {
		if since.IsZero() && ctx.Err() != nil {
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > some
	}
}

// judgeRetry returns r with Counts set. Another try counts if it ran to its end with a fidelity
// that is no worse than the previous one's.
func judgeRetry(r record.Retry, s *record.Summary) *record.Retry {
	r.Counts = s.Complete() && s.Fidelity != nil && record.Worse(s.Fidelity.Verdict, r.Verdict) == r.Verdict
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

// skipped returns the expectations whose condition a lab without a sweep does not meet. In a sweep,
// a condition selects points.
func skipped(l *lab.Lab) (out []record.Expect) {
	for i := range l.Unmet {
		if e := &l.Unmet[i]; len(l.Point) == 0 {
			out = append(out, record.Expect{That: e.That(), Skipped: true, Note: e.Why})
		}
	}
	return out
}

func manifest(x *experiment.Experiment, e engine, o Options) record.Manifest {
	m := record.Manifest{
		Lab: x.Lab.Name, Point: x.Lab.Point, Set: x.Lab.Set, Command: x.Lab.Command, Seed: x.Lab.Seed,
		Version: o.Version, Program: o.Program, Go: goruntime.Version(),
		Engine: e.name, EngineWhy: e.why, Datapath: e.datapath, Runtime: e.placement.runtime, Dilation: e.dilation,
		Machine: machine(), On: o.On, Faults: summary.FaultRows(x), Module: moduleOf(x.Lab),
		Sends: x.Lab.Sends(), Control: transport.FactsOf(x.Lab.Sends()).Control,
	}
	for _, t := range x.Lab.Traces {
		m.Traces = append(m.Traces, record.Trace{File: t.File, SHA256: t.Sum})
	}
	if e.name == "emu" {
		m.ProgramFiles = programFiles(x.Lab)
	}
	for _, s := range x.Lab.Sources {
		m.Settings = append(m.Settings, record.Setting{Path: s.Path, Value: s.Value, From: s.From})
	}
	return m
}

// moduleOf returns the module that is the lab's congestion control, or nil.
func moduleOf(l *lab.Lab) *record.Module {
	m, file := transport.ModuleOf(l.Transport.Section)
	if m == nil {
		return nil
	}
	return &record.Module{File: file, Name: m.Name, SHA256: m.Hash}
}

func machine() record.Machine {
	m := record.Machine{OS: goruntime.GOOS, Arch: goruntime.GOARCH, CPUs: goruntime.NumCPU()}
	m.Host, _ = os.Hostname() // the name is optional
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
		if uml.Inside() != "" {
			m.Kernel = "uml " + m.Kernel
		}
	}
	return m
}
