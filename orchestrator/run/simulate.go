package run

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"weft/collectives/symbolic"
	"weft/fabric"
	"weft/host"
	"weft/internal/clip"
	"weft/internal/crew"
	"weft/internal/plural"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/results/record"
	"weft/results/stats"
	"weft/results/store"
	"weft/sim"
	"weft/units"
)

// progressEvery is the number of simulator events between two reports of progress: a few reports
// per second.
const progressEvery = 1 << 20

// minStall is the minimum of stallLimit. Our own choice.
const minStall = 100 * units.Millisecond

// stallLimit returns how long packets may wait in a paused port without a resume before the run
// fails: twice the time in which all buffers of the network drain.
func stallLimit(x *experiment.Experiment) units.Time {
	longest := minStall
	for i := range x.Conns {
		longest = max(longest, 2*x.Drain(&x.Conns[i]))
	}
	return longest
}

// simOptions returns the options that every simulation of the experiment needs, whatever it
// measures.
func simOptions(x *experiment.Experiment) sim.Options {
	opts := sim.Options{Transparent: x.Lab.Clocks.Transparent, Stall: stallLimit(x)}
	if x.Fabric.Stations != 0 {
		opts.PeerDelay, opts.Control = x.Lab.Clocks.LinkInterval(), x.Lab.Clocks.Control
	}
	for i := range x.Faults.Changes {
		opts.Actions = append(opts.Actions, sim.Action{At: x.Faults.Changes[i].At, Do: x.Faults.Changes[i].Make})
	}
	return opts
}

// simulate runs the experiment in virtual time. On an error the outcome has the results up to it.
func simulate(
	ctx context.Context, x *experiment.Experiment, _ engine, dir *store.Run, o Options,
) (*summary.Outcome, error) {
	out := summary.NewOutcome()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := &x.Lab.Measure
	parts, count := x.Fabric.Partition()
	files := &writer{dir: dir, stop: stop}
	observers := newObservers(count, x, files)
	observers.diary = summary.NewDiary(x, dir.Event)
	exchange := symbolic.New(x.Lab.Seed)
	hosts := make([]*host.Host, len(x.Plans))
	names := make([]string, len(x.Plans))
	for i, p := range x.Plans {
		h, err := host.New(p, exchange.Memory(), observers.parts[parts[i]])
		if err != nil {
			return out, err
		}
		h.Interrupt(func() bool { return ctx.Err() != nil })
		hosts[i], names[i] = h, p.Name
	}
	opts := simOptions(x)
	opts.Names, opts.ProgressEvery, opts.From = names, progressEvery, x.Measure.From
	opts.Parts, opts.Count, opts.After = parts, count, observers.flush
	if observers.diary != nil {
		opts.Steps = func(part int, s fabric.Step) {
			w := observers.parts[part]
			w.steps = append(w.steps, summary.Step{At: s.At, Fabric: s})
		}
	}
	if workers := min(count, o.workers()); workers > 1 {
		c := crew.New(workers)
		defer c.Close()
		opts.Each = c.Each
	}
	if o.Progress != nil {
		opts.Progress = func(now units.Time, _ int64) { o.Progress(simProgress(hosts, now)) }
	}
	after := countAfter(x.Measure.From, &opts)
	rates := newRateSampler(x, hosts, files)
	if m.Rates > 0 {
		opts.TickEvery, opts.Tick = m.Rates, rates.tick
	}
	framer := newFramer(x, hosts, observers, o.framed)
	if x.Measure.Watched >= 0 {
		out.Events = stats.NewDist()
		opts.WatchPort, opts.Watch = x.Measure.Watched, queueEventRecorder(x, out.Events, x.Measure.From)
	}
	var s *sim.Sim
	sample := queueSampler(x, files)
	if every := m.Queues; every > 0 {
		opts.SampleEvery = every
		opts.Sample = func(now units.Time, port int, queued units.Bytes) {
			sample(now, port, queued, s.PortCounters(port))
		}
	}
	samples := newMemoSamples(x, hosts, sample, rates, framer)
	opts.Memo = newMemo(x, hosts, observers, samples)
	if framer != nil {
		opts.FrameAt, opts.Frame = framer.First(), func(now units.Time) units.Time { return framer.record(s, now) }
	}
	s, err := sim.New(x.Fabric, hosts, opts)
	if err != nil {
		return out, err
	}
	samples.of(s)
	err = s.Run(ctx)
	observers.merge(out)
	out.Frames = framer.all()
	files.check(dir.Frames(out.Frames, x.PortNames()))
	files.check(observers.diary.End(s.End()))
	out.Diary = observers.diary
	files.check(addHosts(out, hosts, dir.Dir()))
	out.Fabric, out.SimEvents, out.Ended = s.Counters(), s.Events(), s.End()
	for _, h := range hosts {
		if r, ok := h.Clock(s.End()); ok {
			out.Clocks = append(out.Clocks, r)
		}
	}
	out.Bridges = s.Bridges()
	out.Memo = memoOf(x, opts.Memo)
	out.After = after.result(out.Fabric)
	if err != nil {
		out.Elapsed = s.End()
	}
	addRefusals(out, s, hosts)
	if m.Rates > 0 {
		out.Rates, out.Plateaus = rates.Summary(x.Measure.From, out.Flows), rates.Plateaus(out.Flows)
	}
	files.check(dir.Ports(portRows(x, s.PortCounters, out)))
	out.CutBy = cutBy(x, s.PortCounters)
	addDelays(out, s.QueueDelay())
	if files.err != nil {
		err = files.err
	}
	return out, addWaiting(err, hosts)
}

// addDelays adds the queueing delays of a run.
func addDelays(o *summary.Outcome, d *stats.Dist) {
	o.Delays = d
	o.Queued = record.Quantiles{
		Mean: d.Mean().Microseconds(), P50: d.Quantile(0.50).Microseconds(),
		P99: d.Quantile(0.99).Microseconds(), Max: d.Max().Microseconds(),
	}
}

// queueSampler returns a function that handles a sample of a queue.
func queueSampler(
	x *experiment.Experiment, files *writer,
) func(units.Time, int, units.Bytes, fabric.PortCounters) {
	ports := x.PortNames()
	return func(now units.Time, port int, queued units.Bytes, c fabric.PortCounters) {
		row := record.Queue{At: now, Port: ports[port], Queued: queued, Marks: c.Marks, Drops: c.Drops}
		files.check(files.dir.Queue(row))
	}
}

// cutBy returns, for each port, the packets cut off in each of its outages.
func cutBy(x *experiment.Experiment, counters func(port int) fabric.PortCounters) [][]int64 {
	all := make([][]int64, len(x.Fabric.Ports))
	for p := range all {
		all[p] = counters(p).CutBy
	}
	return all
}

// addRefusals adds the packets that hosts refused.
func addRefusals(o *summary.Outcome, s *sim.Sim, hosts []*host.Host) {
	for h := range hosts {
		o.Refused = append(o.Refused, emulate.Refusals(hosts[h].Name(), "", s.RefusedBy(h))...)
	}
	if n, first := s.Refused(); n > 0 {
		o.Warnings = append(o.Warnings, fmt.Sprintf("the first of %d packets that hosts refused: %v", n, first))
	}
}

// addHosts adds the flows, counters and warnings of all hosts, and writes printedFile into the
// directory of the run.
func addHosts(o *summary.Outcome, hosts []*host.Host, dir string) error {
	flows := 0
	for _, h := range hosts {
		flows += h.FlowCount()
	}
	o.Flows = make([]host.Flow, 0, flows)
	for _, h := range hosts {
		o.Flows = h.TakeFlows(o.Flows)
		o.Dones = append(o.Dones, h.Dones()...)
		o.Transport.Add(h.Counters())
		o.TimedOut = append(o.TimedOut, h.TimedOut()...)
		o.Unreceived += h.Unreceived()
		if n := h.Uncorrupted(); n > 0 {
			o.Spare(h.Name(), n)
		}
	}
	var all []printed
	for _, h := range hosts {
		h.Printed(func(to int, first []string, more int) {
			all = append(all, printed{h.Name(), hosts[to].Name(), first, more})
		})
	}
	return writePrinted(o, filepath.Join(dir, printedFile), all)
}

// printedFile has what the congestion control of the run printed, if that is a module.
const printedFile = "printed.log"

// maxPrinted bounds the lines of printedFile.
const maxPrinted = 10_000

// printed is what the congestion control of a connection between two hosts printed: see
// cc.Printing.
type printed struct {
	from, to string
	first    []string
	more     int
}

// writePrinted writes printedFile, if there is anything to write, and says so.
func writePrinted(o *summary.Outcome, file string, all []printed) error {
	var b bytes.Buffer
	lines, left := 0, 0
	for _, p := range all {
		keep := min(len(p.first), maxPrinted-lines)
		lines, left = lines+keep, left+len(p.first)-keep+p.more
		for _, line := range p.first[:keep] {
			fmt.Fprintf(&b, "%s -> %s  %s\n", p.from, p.to, clip.Line(line))
		}
	}
	if lines == 0 {
		return nil
	}
	text := fmt.Sprintf("the congestion control printed: %s in the run's directory has %s", printedFile,
		plural.Count(lines, "line"))
	if left > 0 {
		text += fmt.Sprintf(", the first of each connection; %d more are lost", left)
	}
	o.Warnings = append(o.Warnings, text)
	return os.WriteFile(file, b.Bytes(), 0o644)
}

func simProgress(hosts []*host.Host, now units.Time) Progress {
	p := Progress{Phase: "running", LabTime: now}
	for _, h := range hosts {
		done, total := h.Progress()
		p.Done += done
		p.Total += total
	}
	return p
}

// queueEventRecorder returns a function that records how long the queue of the watched port takes
// to drain, from an instant on.
func queueEventRecorder(x *experiment.Experiment, into *stats.Dist, from units.Time) func(units.Time, units.Bytes) {
	rate := x.Fabric.Ports[x.Measure.Watched].Rate
	return func(now units.Time, queued units.Bytes) {
		if now >= from {
			into.Record(rate.TransmitTime(queued))
		}
	}
}

// fastest returns, by port, the highest rate that the port has in a run.
func fastest(x *experiment.Experiment) []units.Bandwidth {
	rates := make([]units.Bandwidth, len(x.Fabric.Ports))
	for i := range rates {
		rates[i] = x.Fabric.Ports[i].Rate
	}
	for _, c := range x.Faults.Changes {
		if c.Link == nil {
			continue
		}
		for _, port := range c.Ports {
			if rates[port] = max(rates[port], c.Link.Rate); c.At == 0 {
				rates[port] = c.Link.Rate
			}
		}
	}
	return rates
}

// portRows returns the counters of every port that was used. It adds up in out how long ports were
// paused, and takes how long the busiest sent.
func portRows(
	x *experiment.Experiment, counters func(port int) fabric.PortCounters, out *summary.Outcome,
) (rows []record.Port) {
	fastest := fastest(x)
	for i, name := range x.PortNames() {
		c := counters(i)
		row := record.Port{
			Port: name, Packets: c.Packets, Bytes: c.Bytes, Drops: c.Drops, Marks: c.Marks, Trims: c.Trims,
			MaxQueue: c.MaxQueue, Lost: c.Lost, Cut: c.Cut, MaxHeadroom: c.MaxHeadroom,
		}
		for class := range c.Pauses {
			row.Pauses += c.Pauses[class]
			row.Paused += c.Paused[class]
		}
		out.Paused += row.Paused
		out.Busiest = max(out.Busiest, fastest[i].TransmitTime(c.Bytes))
		if c.Drops > 0 {
			out.Overflowed = max(out.Overflowed, x.Fabric.Ports[i].Buffer)
		}
		if row != (record.Port{Port: name}) {
			row.Rate = x.Fabric.Ports[i].Rate
			rows = append(rows, row)
		}
	}
	return rows
}
