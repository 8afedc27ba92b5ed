package summary

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/clocksync"
	"weft/clocksync/node"
	"weft/collectives/schedule"
	"weft/fabric"
	"weft/host"
	"weft/internal/clip"
	"weft/internal/plural"
	"weft/orchestrator/experiment"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// Outcome has an engine's measurements of a run.
type Outcome struct {
	Flows     []host.Flow      // messages, in any order
	Dones     []host.Done      // results of ranks, one for each repetition, in any order
	RTT       *stats.Dist      // of every acknowledged data packet
	Queued    record.Quantiles // queueing delay of delivered data packets, in microseconds
	Delays    *stats.Dist      // the same as a distribution; nil: not measured
	Transport transport.Counters
	TimedOut  []transport.TimedOut // every timeout
	Fabric    fabric.Counters
	Uncounted bool // what carried the packets sent no counters: Fabric is not known
	Sampled   bool // Fabric.MaxQueue is the largest of samples, not of what every packet found
	// packets among Fabric.Delivered that their hosts did not take: they were paused or had ended
	Unreceived int64
	Overflowed units.Bytes        // the largest buffer of a port that dropped packets; 0: none did, or it has none
	CutBy      [][]int64          // by port: packets cut off each time that it was down; nil: not known
	SimEvents  int64              // events of the simulator
	Memo       *record.Memo       // of the simulator; nil: nothing to tell
	Events     *stats.Dist        // delays at the port that is recorded event by event; nil: there is none
	After      *record.After      // network counters from measure.from on; nil: the lab does not set it
	Rates      *record.Rates      // nil: not measured, or at no time were all connections open
	Plateaus   []record.Plateau   // nil: not measured, or there are none
	Heard      *record.Acks       // acknowledgements one by one; nil: not measured
	Paused     units.Time         // time that PFC paused ports, added up
	Busiest    units.Time         // the longest that a port sent, at least: at the highest rate that it had
	Elapsed    units.Time         // lab time reached
	Clocks     []node.Report      // by host; nil: clocks are perfect
	Bridges    clocksync.Counters // of switches that are peer-to-peer transparent clocks
	Ended      units.Time         // when the last host was done
	Fidelity   *record.Fidelity   // of an emulated run; nil: simulated
	Frames     []frames.Frame     // of the network; nil: not recorded
	Diary      *Diary             // of coordinated congestion management; nil: there is none
	Spared     map[string]int     // by host: planned corruptions, the last ones, that found no data
	Warnings   []string
	Refused    []record.Refused // packets that hosts or the network refused
	Beside     int64            // packets carried that are no part of the workload
	Programs   []record.Program
	LinkCheck  *record.LinkCheck  // of the kernel datapath; nil: no link was measured
	Carrier    string             // see record.Summary.Carried; "": not known
	Metrics    []record.MetricRow // in the output of programs
	Unkept     map[string]int64   // matches of metrics that were not kept, by name
	Dilation   float64            // the dilation that the run ended with; 0: the engine's
}

// completed returns the instant of the last completion, or that of the end of a run that failed.
func (o *Outcome) completed() units.Time {
	last := o.Elapsed
	for i := range o.Flows {
		last = max(last, o.Flows[i].Acked)
	}
	for i := range o.Dones {
		last = max(last, o.Dones[i].End)
	}
	return last
}

// Spare adds planned corruptions of a host that found no data.
func (o *Outcome) Spare(host string, n int) {
	if o.Spared == nil {
		o.Spared = map[string]int{}
	}
	o.Spared[host] += n
}

// Unkeep adds matches of a metric that were not kept.
func (o *Outcome) Unkeep(metric string, n int64) {
	if o.Unkept == nil {
		o.Unkept = map[string]int64{}
	}
	o.Unkept[metric] += n
}

// End returns the instant at which the run ended: with its last completion, or later because clocks
// or programs went on.
func (o *Outcome) End() units.Time { return max(o.Ended, o.completed()) }

// Summarize fills in the measured part of a summary. It sorts the rows of o. It leaves out the
// statistics of clocks, which take as long as their samples are many, once stopped returns true.
func Summarize(x *experiment.Experiment, o *Outcome, s *record.Summary, stopped func() bool) {
	sortOutcome(o)
	s.BaseRTTUS = x.BaseRTT.Microseconds()
	s.Flows = flowsOf(x, o.Flows)
	s.RTT = o.RTT.Describe(units.Microsecond)
	s.Collectives = collectivesOf(x, o)
	completionByItem(x, o.Flows, s.Collectives)
	s.Fidelity = o.Fidelity
	for _, host := range slices.Sorted(maps.Keys(o.Spared)) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %s not applied: no data arrived", host,
			plural.Count(o.Spared[host], "planned corruption")))
	}
	s.Warnings = append(s.Warnings, o.Warnings...)
	s.Memo, s.LinkCheck = o.Memo, o.LinkCheck
	s.Events, s.Rates, s.Plateaus, s.Acks = o.SimEvents, o.Rates, o.Plateaus, o.Heard
	s.Network = record.Network{
		Packets: o.Fabric.Injected, DataPackets: o.Transport.DataPackets,
		Delivered: o.Fabric.Delivered - o.Unreceived, Unreceived: o.Unreceived,
		CEMarks: o.Fabric.Marks, Drops: o.Fabric.Dropped,
		Retransmits: o.Transport.Retransmits, Timeouts: o.Transport.Timeouts,
		Lost: o.Fabric.Lost, Cut: o.Fabric.Cut, Pauses: o.Fabric.Pauses, PausedUS: o.Paused.Microseconds(),
		After: o.After, Duplicated: o.Fabric.Duplicated, Late: o.Fabric.Late,
		Reordered: o.Transport.Reordered + o.Transport.OutOfOrder,
		Switched:  o.Fabric.PathSwitches + o.Transport.Repaths, CCM: coordination(x, o),
		Trims: o.Fabric.Trimmed, TrimmedBytes: int64(o.Fabric.TrimmedBytes), Credits: o.Transport.Credits,
		QueueDelay: o.Queued, MaxQueue: int64(o.Fabric.MaxQueue),
	}
	s.Refused, s.Network.Beside = o.Refused, o.Beside
	for _, r := range o.Refused {
		s.Network.Refused += r.Packets
	}
	s.Warnings = append(s.Warnings, refusals(o.Refused)...)
	if o.Events != nil && o.Events.Count() > 0 {
		q := o.Events.Describe(units.Microsecond)
		s.Network.QueueEventDelay = &q
	}
	if s.RTOMinUS = x.RTOMin.Microseconds(); s.RTOMinUS > 0 {
		s.RTOMinKey = x.RTOKey
	}
	if text := overflowed(x, o, &s.Network); text != "" {
		s.Warnings = append(s.Warnings, text)
	}
	if s.Tail = tail(o, s.Flows.FCT); s.Tail != nil && s.Flows.Unfinished == 0 {
		s.Warnings = append(s.Warnings, decided(x, s))
	}
	s.Unadjusted = o.Transport.DataPackets > 0 && o.Transport.Adjusted == 0 && o.Transport.Credits == 0
	var cut bool
	s.Clocks, cut = clocksOf(x, o, stopped)
	if cut {
		s.Warnings = append(s.Warnings, "clocks: their errors were not evaluated, since the run was interrupted")
	}
	corrected, _ := corrections(x, o)
	judgeClocks(s.Fidelity, &s.Clocks, x.Lab.Clocks.Kind(), corrected)
	if text := undecided(o); text != "" {
		s.Warnings = append(s.Warnings, text)
	}
	if text := unsynchronized(x, o); text != "" {
		s.Warnings = append(s.Warnings, text)
	}
	if text := unbounded(&s.Clocks, x.Lab.Clocks.Kind(), o.Fabric.Dropped); text != "" {
		s.Warnings = append(s.Warnings, text)
	}
	completed := o.completed()
	if len(x.Items) == 0 {
		completed = max(completed, o.Ended)
	}
	s.LabTimeUS = completed.Microseconds()
	if end := o.End(); end > completed {
		s.EndUS = end.Microseconds()
	}
	addPrograms(x, o, s)
	s.Verified = len(x.Items) > 0 && verified(x, o.Dones)
	s.Warnings = append(s.Warnings, wrong(x, o.Dones)...)
	lack(x, o, s)
	if paths := s.DropNonFinite(); len(paths) > 0 {
		s.Warnings = append(s.Warnings, "without a value, because they are infinite or no numbers: "+
			clip.Text(strings.Join(paths, ", ")))
	}
}

// sortOutcome sorts the rows, so that no engine's scheduling shows in their order.
func sortOutcome(o *Outcome) {
	slices.SortFunc(o.Flows, func(a, b host.Flow) int {
		return cmp.Or(cmp.Compare(a.Conn, b.Conn), cmp.Compare(a.Repeat, b.Repeat), cmp.Compare(a.Message, b.Message))
	})
	slices.SortFunc(o.Dones, func(a, b host.Done) int {
		return cmp.Or(cmp.Compare(a.Item, b.Item), cmp.Compare(a.Repeat, b.Repeat), cmp.Compare(a.Rank, b.Rank))
	})
}

// checks counts the results of ranks, one for each rank and repetition.
type checks struct {
	due       int // results that there should be
	wrong     int // results with wrong elements
	unchecked int // results that were not compared in full
	missing   int
}

// checksOf counts the results of a run.
func checksOf(x *experiment.Experiment, dones []host.Done) checks {
	var c checks
	for i := range x.Plans {
		for _, it := range x.Plans[i].Items {
			c.due += it.Repeat
		}
	}
	for _, d := range dones {
		switch {
		case d.Wrong != 0:
			c.wrong++
		case d.Checked != schedule.Due(x.Item(d.Item).Spec(), d.Rank):
			c.unchecked++
		}
	}
	c.missing = c.due - len(dones)
	return c
}

// verified reports whether every rank finished every repetition with a result that was compared in
// full and is right. Without a workload, nothing is wrong.
func verified(x *experiment.Experiment, dones []host.Done) bool {
	c := checksOf(x, dones)
	return c.wrong == 0 && c.unchecked == 0 && c.missing == 0 && (c.due > 0 || len(x.Items) == 0)
}

// Settle returns the status of a run that ended without an error, and why it is not ok.
func Settle(x *experiment.Experiment, dones []host.Done, flows *record.Flows) (status, why string) {
	c := checksOf(x, dones)
	var reasons []string
	say := func(is string, n, of int64, what string) {
		if n == 0 {
			return
		}
		if status == "" {
			status = is
		}
		reasons = append(reasons, fmt.Sprintf("%d of %d %s", n, of, what))
	}
	say(record.Unverified, int64(c.wrong), int64(c.due), "results of ranks have wrong elements")
	say(record.Unfinished, flows.Unfinished, flows.Count, "messages did not finish")
	say(record.Unfinished, int64(c.missing), int64(c.due), "results of ranks are missing")
	say(record.Unverified, int64(c.unchecked), int64(c.due), "results of ranks were not fully checked")
	if status == "" && !verified(x, dones) {
		return record.Unverified, "no rank had a result to check"
	}
	return cmp.Or(status, record.OK), strings.Join(reasons, "; ")
}

// maxWrong is the maximum number of wrong results that warnings name.
const maxWrong = 8

// wrong returns a warning for each rank with a wrong result, with where the wrong data came from.
func wrong(x *experiment.Experiment, dones []host.Done) []string {
	var lines []string
	n := 0
	for _, d := range dones {
		if d.Wrong == 0 {
			continue
		}
		if n++; n > maxWrong {
			continue
		}
		it := x.Item(d.Item)
		line := fmt.Sprintf("wrong: %s (%s by %s), repetition %d, rank %d on %s: %d of %d elements", it.Name,
			it.Collective, it.Algorithm,
			d.Repeat, d.Rank, x.Graph.Nodes[it.Ranks[d.Rank]].Name, d.Wrong, max(d.Wrong, d.Checked))
		switch b := d.Blame; {
		case b == nil:
		case b.Step < 0:
			line += fmt.Sprintf(", the first at byte %d of the result, which no rank sent", b.Off)
		default:
			line += fmt.Sprintf(", the first at byte %d of the result: step %d received it from rank %d on %s", b.Off,
				b.Step, b.Peer,
				x.Graph.Nodes[it.Ranks[b.Peer]].Name)
		}
		lines = append(lines, line)
	}
	if n > maxWrong {
		lines = append(lines, fmt.Sprintf("wrong: %d more ranks and repetitions", n-maxWrong))
	}
	return lines
}

// flowsOf sums up the messages.
func flowsOf(x *experiment.Experiment, flows []host.Flow) record.Flows {
	f := record.Flows{Count: int64(len(flows))}
	fct, slowdown := make([]units.Time, 0, len(flows)), make([]float64, 0, len(flows))
	for _, r := range flows {
		if r.Acked == 0 {
			f.Unfinished++
			continue
		}
		f.Bytes += int64(r.Size)
		took := r.Acked - r.Start
		fct = append(fct, took)
		slowdown = append(slowdown, float64(took)/float64(x.Ideal(r.Conn, r.Size)))
	}
	f.FCT = stats.Describe(fct, float64(units.Microsecond))
	f.Slowdown = stats.Describe(slowdown, 1)
	return f
}

// completionByItem describes the flow completion times of each row of the workload, if it has
// several. The distribution of all flows is mostly that of the row with the most messages.
func completionByItem(x *experiment.Experiment, flows []host.Flow, rows []record.Collective) {
	if len(rows) < 2 {
		return
	}
	took := make([][]units.Time, len(rows))
	for _, f := range flows {
		if f.Acked > 0 {
			row := x.Lab.Workload[f.Item].Row
			took[row] = append(took[row], f.Acked-f.Start)
		}
	}
	for i := range rows {
		if len(took[i]) > 0 {
			q := stats.Describe(took[i], float64(units.Microsecond))
			rows[i].FCT = &q
		}
	}
}

// coordination returns the counters of coordinated congestion management, or nil if the lab has
// none.
func coordination(x *experiment.Experiment, o *Outcome) *record.CCM {
	if x.Fabric.CCM == nil {
		return nil
	}
	c := &o.Fabric.CCM
	out := &record.CCM{
		NeedsCC: c.Notes[fabric.NeedsCC], Released: c.Notes[fabric.Released], NeedsPath: c.Notes[fabric.NeedsPath],
		Lost:    c.Notes[0],
		Handled: o.Transport.Notices, Refused: o.Transport.Refused, Ignored: c.Ignored, BadTags: c.BadTags,
		Repaths:    o.Transport.Repaths,
		LastResort: c.LastResort, Forgotten: c.Forgotten, MostFlows: c.MostFlows,
	}
	if o.Diary != nil {
		out.Steps, out.Unkept = o.Diary.kept, o.Diary.unkept
	}
	return out
}

// Parts returns a row for each rank's part in each item of the workload.
func Parts(x *experiment.Experiment, o *Outcome) []record.Part {
	parts := make([]record.Part, len(o.Dones))
	for i, d := range o.Dones {
		it := x.Item(d.Item)
		parts[i] = record.Part{
			Item: d.Item, Repeat: d.Repeat, Collective: it.Collective, Algorithm: it.Algorithm, Rank: d.Rank,
			Host: x.Graph.Nodes[it.Ranks[d.Rank]].Name, Start: d.Start, End: d.End, Checked: d.Checked, Wrong: d.Wrong,
		}
	}
	return parts
}

// Conns returns all connections with what their messages were.
func Conns(x *experiment.Experiment, o *Outcome) []record.Conn {
	all := make([]record.Conn, len(x.Conns))
	for i := range all {
		all[i].Src, all[i].Dst = x.Graph.Nodes[x.Conns[i].Src].Name, x.Graph.Nodes[x.Conns[i].Dst].Name
	}
	for i := range o.Flows {
		f := &o.Flows[i]
		c := &all[f.Conn]
		if c.Messages == 0 || f.Start < c.Start {
			c.Start = f.Start
		}
		c.Messages++
		c.Bytes += f.Size
	}
	return all
}

// NewOutcome returns an Outcome without measurements.
func NewOutcome() *Outcome { return &Outcome{RTT: stats.NewDist()} }
