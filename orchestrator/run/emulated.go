package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weft/fabric"
	"weft/orchestrator/capture"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/realtime"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/store"
	"weft/tc-shaping/qdisc"
	"weft/transport"
	"weft/units"
)

// LinksFile compares the measured links of the kernel datapath with the requested ones.
const LinksFile = "links.txt"

// TCFile is what tc says of a switch of the kernel datapath in the middle of the run.
const TCFile = "tc.txt"

// emulated runs the experiment in real time. On an error the outcome has the results up to it.
func emulated(
	ctx context.Context, x *experiment.Experiment, e engine, dir *store.Run, o Options,
) (*summary.Outcome, error) {
	out := summary.NewOutcome()
	ports := x.PortNames()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var writeErr error // the first failure to write, which ends the run
	check := func(err error) {
		if writeErr == nil && err != nil {
			writeErr = err
			stop()
		}
	}
	spec := emulation(x, e.dilation, e.placement.processes(o), e.placement.kernel)
	spec.Samples = func(samples []realtime.Sample) {
		for _, s := range samples {
			row := record.Queue{At: s.At, Port: ports[s.Port], Queued: s.Queued, Marks: s.Marks, Drops: s.Drops}
			check(dir.Queue(row))
		}
	}
	recorder := recordFrames(x, &spec, o)
	var shown *emulate.Shown
	if k := spec.Kernel; k != nil {
		k.Shown = func(s emulate.Shown) { shown = &s }
		k.Slower, k.Slowed = e.slower, func(r realtime.Ready) { check(recordSlowdown(out, r, dir, o.Say)) }
	}
	diary := summary.NewDiary(x, dir.Event)
	var steps []summary.Step
	spec.Steps = func(all []fabric.Step) {
		for _, s := range all {
			steps = append(steps, summary.Step{At: s.At, Fabric: s})
		}
	}
	if o.Progress != nil {
		spec.Progress = func(p emulate.Progress) {
			o.Progress(Progress{Phase: "running", Done: p.Done, Total: p.Total, LabTime: p.At})
		}
	}
	workload, err := newPrograms(x, &spec, dir.Dir(), o.Lines)
	if err != nil {
		return out, err
	}
	spec.Captures = e.captures.start(stop, func(c *captureFile) capture.Of {
		return capture.Of{
			Lab: x.Lab.Name, Name: c.Point, Port: c.source.Port >= 0,
			Dilation: e.dilation, Program: "weft " + o.Version,
		}
	})
	got, err := runOn(ctx, spec, o)
	if recorder != nil {
		out.Frames = recorder.Frames()
		check(dir.Frames(out.Frames, ports))
	}
	check(workload.close())
	check(writeShown(shown, dir))
	check(e.captures.finish(err != nil, o.Say))
	if writeErr != nil {
		err = writeErr
	}
	if got == nil {
		return out, err
	}
	workload.report(got, out)
	out.Flows, out.Dones, out.Transport, out.Fabric = got.Flows, got.Dones, got.Transport, got.Fabric
	out.TimedOut, out.Uncounted = got.TimedOut, got.Report == nil
	if err != nil {
		out.Elapsed = got.Elapsed // a run that succeeds ends with its last completion
	}
	out.Fidelity, out.Warnings = &got.Fidelity, append(out.Warnings, got.Warnings...)
	for h, n := range got.Results {
		if n != nil && n.Uncorrupted > 0 {
			out.Spare(x.Plans[h].Name, n.Uncorrupted)
		}
	}
	out.Refused, out.Beside = got.Refused, got.Beside
	out.Ended = got.Elapsed
	check(errors.Join(addReport(x, got, dir, out), addPrinted(x, got, dir, out)))
	for _, r := range got.Results {
		if r == nil || r.Clock == nil {
			out.Clocks = nil
			break
		}
		out.Clocks = append(out.Clocks, *r.Clock)
	}
	addDistributions(out, got)
	if diary != nil {
		check(diary.Add(append(steps, sourceSteps(got)...)))
		check(diary.End(got.Elapsed))
		out.Diary = diary
	}
	for _, w := range got.Windows {
		check(dir.Window(record.Window{
			At: w.At, Conn: uint32(w.Conn), Window: w.Window, Rate: w.Rate, Credited: w.Credited, Credit: w.Credit,
		}))
	}
	if err == nil {
		err = writeErr
	}
	return out, err
}

// runOn runs an emulation, on other machines if the options name some.
func runOn(ctx context.Context, spec emulate.Experiment, o Options) (got *emulate.Outcome, err error) {
	if o.Machines != nil {
		if spec.Processes.Machines, err = o.Machines.Launches(ctx); err != nil {
			return nil, err
		}
	}
	return emulate.Run(ctx, spec)
}

// addDistributions adds what packets needed to the outcome, if it was measured.
func addDistributions(out *summary.Outcome, got *emulate.Outcome) {
	if got.RTT != nil {
		out.RTT = got.RTT
	}
	if got.QueueDelay != nil {
		out.Queued, out.Delays = got.QueueDelay.Describe(units.Microsecond), got.QueueDelay
	}
}

// sourceSteps returns the steps of coordinated congestion management at sources.
func sourceSteps(got *emulate.Outcome) (steps []summary.Step) {
	for _, r := range got.Results {
		for i := 0; r != nil && i < len(r.Steps); i++ {
			s := &r.Steps[i]
			steps = append(steps, summary.Step{At: s.At, Conn: s.Conn, Source: true, Cc: s.CC, Moved: s.Moved})
		}
	}
	return steps
}

// addPrinted writes what the congestion control of each node printed into the run directory.
func addPrinted(x *experiment.Experiment, got *emulate.Outcome, dir *store.Run, out *summary.Outcome) error {
	var all []printed
	for i, r := range got.Results {
		for k := 0; r != nil && k < len(r.Printed); k++ {
			p := &r.Printed[k]
			all = append(all, printed{x.Plans[i].Name, x.Plans[p.To].Name, p.First, p.More})
		}
	}
	return writePrinted(out, filepath.Join(dir.Dir(), printedFile), all)
}

// addReport adds the final report of the network, if there is one, to the outcome and the run
// directory, and what hosts did not take of the packets in it.
func addReport(x *experiment.Experiment, got *emulate.Outcome, dir *store.Run, out *summary.Outcome) error {
	r := got.Report
	if r == nil {
		return nil
	}
	out.Unreceived, out.Sampled, out.LinkCheck = r.Unreceived, r.Sampled, r.Checked
	for _, n := range got.Results {
		if n != nil {
			out.Unreceived += n.Unreceived
		}
	}
	if r.Bridges != nil {
		out.Bridges = *r.Bridges
	}
	if len(r.Ports) == len(x.Fabric.Ports) {
		counters := func(p int) fabric.PortCounters { return r.Ports[p] }
		if !x.Lab.Engine.OnKernel() { // the kernel drops in netem, by port and not by fault
			out.CutBy = cutBy(x, counters)
		}
		if err := dir.Ports(portRows(x, counters, out)); err != nil {
			return err
		}
	}
	if r.Links == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir.Dir(), LinksFile), []byte(r.Links), 0o644)
}

// writeShown writes what tc said of a switch, unless it is nil, into the directory of a run.
func writeShown(s *emulate.Shown, dir *store.Run) error {
	if s == nil {
		return nil
	}
	text := fmt.Sprintf("%s once half of the data had arrived, %v after the start of lab time. Dilation %s: rates are "+
		"those of the lab divided by it.\n\n%s", s.Switch, s.At.Rounded(), units.Number(s.Dilation), s.Text)
	return os.WriteFile(filepath.Join(dir.Dir(), TCFile), []byte(text), 0o644)
}

// recordFrames has an emulation record frames, and returns their recorder; nil: the lab wants none.
func recordFrames(x *experiment.Experiment, spec *emulate.Experiment, o Options) *frames.Recorder {
	least := minFrameWall * time.Duration(1+len(x.Fabric.Ports)/framePorts)
	r := newRecorder(x, units.Time(float64(units.FromDuration(least))/spec.Dilation), 0)
	if r == nil {
		return nil
	}
	spec.FrameSchedule = r.Schedule()
	spec.Frames = func(all []frames.Frame) {
		for _, f := range all {
			r.Add(f)
		}
		if o.framed != nil {
			o.framed(r.Frames())
		}
	}
	if len(x.Conns) <= frameConns {
		spec.Conns = func(all []frames.Frame) {
			for _, f := range all {
				r.AddConns(f.At, f.Conns)
			}
		}
	}
	return r
}

// recordSlowdown records that a run has another dilation than was chosen, and calls say at once
// unless it is nil.
func recordSlowdown(o *summary.Outcome, r realtime.Ready, dir *store.Run, say func(string)) error {
	why := fmt.Sprintf("dilation %.15g: %s", r.Dilation, slowdownReason(r))
	o.Dilation = r.Dilation
	o.Warnings = append(o.Warnings, why)
	if say != nil {
		say(why)
	}
	return dir.Update(func(m *record.Manifest) { m.Dilation, m.EngineWhy = r.Dilation, m.EngineWhy+"; "+why })
}

// slowdownReason says why the kernel datapath has another dilation than was chosen.
func slowdownReason(r realtime.Ready) string {
	at := make([]string, len(r.Tried))
	for i, t := range r.Tried {
		at[i] = fmt.Sprintf("%.15g", t.Dilation)
	}
	return fmt.Sprintf("at %s links differed from the lab", strings.Join(at, ", at "))
}

// emulation returns the experiment in the form that package emulate runs.
func emulation(x *experiment.Experiment, dilation float64, p emulate.Processes, kernel qdisc.Capabilities,
) emulate.Experiment {
	module, _ := transport.ModuleOf(x.Lab.Transport.Section)
	spec := emulate.Experiment{
		Lab: x.Lab.Name, Fabric: x.Fabric, Changes: x.Faults.Changes, Plans: x.Plans, Module: module,
		Prefix:   x.Subnet.Prefix().Bits(),
		Dilation: dilation, BaseRTT: x.BaseRTT, DelayTarget: x.DelayTarget(),
		SampleQueues: x.Lab.Measure.Queues, Windows: x.Lab.Measure.CWND,
		Processes: p, Transparent: x.Lab.Clocks.Transparent, Addrs: x.Addrs(), Programs: hostPrograms(x),
		TCP: x.Lab.Engine.TCP,
	}
	for i := range x.Lab.Workload {
		spec.Rows = append(spec.Rows, x.Lab.Workload[i].Row)
	}
	spec.Parts, _ = x.Parts() // Emulable has returned the errors
	spec.Sockets, _ = x.Sockets()
	if x.Lab.Engine.OnKernel() {
		spec.Kernel = &emulate.Kernel{Net: x.Subnet.Prefix(), Can: kernel}
		for s := range x.Fabric.Switches {
			spec.Kernel.Switches = append(spec.Kernel.Switches, x.Subnet.SwitchAddr(s))
		}
	}
	if x.Fabric.Stations != 0 {
		spec.PeerDelay, spec.Control = x.Lab.Clocks.LinkInterval(), x.Lab.Clocks.Control
	}
	if x.Fabric.CCM != nil || x.Fabric.Stations != 0 {
		for s := range x.Fabric.Switches {
			spec.Switches = append(spec.Switches, x.Subnet.SwitchAddr(s))
		}
	}
	return spec
}
