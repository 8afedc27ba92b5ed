package run

import (
	"slices"

	"weft/collectives/bench"
	"weft/collectives/schedule"
	"weft/fabric"
	"weft/host"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// outcome is what an engine brings back, before it is put into words.
type outcome struct {
	Flows     []host.Flow
	Dones     []host.Done
	RTT       *stats.Dist
	Queued    record.Quantiles // queueing delay of delivered data packets, in microseconds
	Transport transport.Counters
	Fabric    fabric.Counters
	SimEvents int64
	Events    *stats.Dist   // of the queue that is followed event by event; nil: none is
	Rates     *record.Rates // nil: not measured, or at no time were all connections open
	Paused    units.Time
	Elapsed   units.Time // lab time reached
	Fidelity  *record.Fidelity
	Warnings  []string
}

// summarize fills the measured part of a summary.
func (x *Experiment) summarize(o *outcome, s *record.Summary) {
	x.sortOutcome(o)
	s.BaseRTTUS = x.BaseRTT.Microseconds()
	s.Flows = x.flowsOf(o.Flows)
	s.RTT = o.RTT.Describe(units.Microsecond)
	s.Collectives = x.collectivesOf(o.Dones)
	s.Fidelity, s.Warnings = o.Fidelity, o.Warnings
	s.Events, s.Rates = o.SimEvents, o.Rates
	s.Network = record.Network{
		Packets: o.Fabric.Injected, DataPackets: o.Transport.DataPackets, Delivered: o.Fabric.Delivered,
		CEMarks: o.Fabric.Marks, Drops: o.Fabric.Dropped,
		Retransmits: o.Transport.Retransmits, Timeouts: o.Transport.Timeouts,
		Lost: o.Fabric.Lost, Cut: o.Fabric.Cut, Pauses: o.Fabric.Pauses, PausedUS: o.Paused.Microseconds(),
		Duplicated: o.Fabric.Duplicated, Late: o.Fabric.Late,
		QueueDelay: o.Queued, MaxQueue: int64(o.Fabric.MaxQueue),
	}
	if o.Events != nil {
		q := o.Events.Describe(units.Microsecond)
		s.Network.QueueEventDelay = &q
	}
	s.Clocks = record.Clocks{Sync: x.Lab.Clocks.Sync}
	s.LabTimeUS = o.Elapsed.Microseconds()
	for _, f := range o.Flows {
		s.LabTimeUS = max(s.LabTimeUS, f.Acked.Microseconds())
	}
	for _, d := range o.Dones {
		s.LabTimeUS = max(s.LabTimeUS, d.End.Microseconds())
	}
	s.Verified = x.verified(o.Dones)
}

// sortOutcome puts the rows in an order that no engine's scheduling can change.
func (x *Experiment) sortOutcome(o *outcome) {
	slices.SortFunc(o.Flows, func(a, b host.Flow) int {
		return cmpSeq(int64(a.Conn), int64(b.Conn), int64(a.Repeat), int64(b.Repeat), int64(a.Message), int64(b.Message))
	})
	slices.SortFunc(o.Dones, func(a, b host.Done) int {
		return cmpSeq(int64(a.Item), int64(b.Item), int64(a.Repeat), int64(b.Repeat), int64(a.Rank), int64(b.Rank))
	})
}

// cmpSeq compares pairs of numbers, the first pair that differs deciding.
func cmpSeq(pairs ...int64) int {
	for i := 0; i < len(pairs); i += 2 {
		switch {
		case pairs[i] < pairs[i+1]:
			return -1
		case pairs[i] > pairs[i+1]:
			return 1
		}
	}
	return 0
}

// verified says whether every rank finished every repetition with a result that was checked and is right.
func (x *Experiment) verified(dones []host.Done) bool {
	parts := 0
	for i := range x.Plans {
		for _, it := range x.Plans[i].Items {
			parts += it.Repeat
		}
	}
	for _, d := range dones {
		if d.Wrong != 0 || (d.Checked == 0 && x.mustCheck(d)) {
			return false
		}
	}
	return len(dones) == parts && parts > 0
}

// mustCheck says whether a rank's part leaves a result to check: who only sends has none.
func (x *Experiment) mustCheck(d host.Done) bool {
	l, err := schedule.Shape(x.item(d.Item).Spec(), d.Rank)
	return err != nil || len(l.Result) > 0
}

// item returns an item of the workload, by its position.
func (x *Experiment) item(index int) *host.Item { return &x.items[index] }

func (x *Experiment) flowsOf(flows []host.Flow) record.Flows {
	f := record.Flows{Count: int64(len(flows))}
	var fct []units.Time
	var slowdown []float64
	for _, r := range flows {
		if r.Acked == 0 {
			f.Unfinished++
			continue
		}
		f.Bytes += int64(r.Size)
		took := r.Acked - r.Start
		fct = append(fct, took)
		slowdown = append(slowdown, float64(took)/float64(x.ideal(r.Conn, r.Size)))
	}
	f.FCT = stats.Describe(fct, float64(units.Microsecond))
	f.Slowdown = stats.Describe(slowdown, 1)
	return f
}

// collectivesOf sums up every item of the lab file's workload, the groups of one together: its time is that of the
// slowest.
func (x *Experiment) collectivesOf(dones []host.Done) []record.Collective {
	out := make([]record.Collective, 0, written(x.Lab))
	for i := range x.items {
		of := func(d host.Done, i int) int { return d.Item - i } // they are sorted
		from, _ := slices.BinarySearchFunc(dones, i, of)
		to, _ := slices.BinarySearchFunc(dones, i+1, of)
		c := collectiveOf(&x.items[i], dones[from:to])
		if r := x.Lab.Workload[i].Ranks; r.Groups > 0 {
			c.Groups, c.FastestUS = r.Groups, c.TimeUS
		}
		if x.Lab.Workload[i].Ranks.Group == 0 {
			out = append(out, c)
		} else {
			join(&out[len(out)-1], &c)
		}
	}
	return out
}

// join adds a group to those of an item before it. What one group did not finish was not finished.
func join(all, c *record.Collective) {
	all.Wrong += c.Wrong
	all.Checked += c.Checked
	all.FastestUS = min(all.FastestUS, c.TimeUS)
	if all.FastestUS == 0 {
		all.TimeUS, all.AlgBWGbps, all.BusBWGbps = 0, 0, 0
	} else if c.TimeUS > all.TimeUS {
		all.TimeUS, all.AlgBWGbps, all.BusBWGbps = c.TimeUS, c.AlgBWGbps, c.BusBWGbps
	}
}

// collectiveOf sums up one item by what its ranks did: its time is from the first rank's start to the last rank's end,
// the mean over its repetitions that every rank finished. So a bandwidth is never more than there was; a rank that
// starts early (start: previous, with no part in the item before) and waits for the others counts.
func collectiveOf(it *host.Item, dones []host.Done) record.Collective {
	c := record.Collective{
		Name: it.Collective, Algorithm: it.Algorithm, Ranks: len(it.Ranks), Bytes: int64(it.Size), Repeat: it.Repeat,
	}
	var total units.Time
	var finished int
	for len(dones) > 0 { // by repetition
		parts := slices.IndexFunc(dones, func(d host.Done) bool { return d.Repeat != dones[0].Repeat })
		if parts < 0 {
			parts = len(dones)
		}
		first, last := units.Never, units.Time(0)
		for _, d := range dones[:parts] {
			first, last = min(first, d.Start), max(last, d.End)
			c.Wrong += d.Wrong
			c.Checked += d.Checked
		}
		if parts == len(it.Ranks) {
			total += last - first
			finished++
		}
		dones = dones[parts:]
	}
	if finished > 0 {
		took := total / units.Time(finished)
		c.TimeUS = took.Microseconds()
		size := bench.Size(it.Collective, len(it.Ranks), units.Bytes(max(1, it.Flows))*it.Size)
		if alg, bus, err := bench.Bandwidth(it.Collective, len(it.Ranks), size, took); err == nil {
			c.AlgBWGbps, c.BusBWGbps = float64(alg)/float64(units.Gbps), float64(bus)/float64(units.Gbps)
		}
	}
	return c
}
