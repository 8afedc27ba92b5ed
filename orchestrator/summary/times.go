package summary

import (
	"slices"
	"strconv"
	"strings"

	"weft/collectives/bench"
	"weft/host"
	"weft/orchestrator/experiment"
	"weft/results/record"
	"weft/units"
)

// collectivesOf sums up every row of the workload: an item of the lab file, or a collective of a
// trace. Groups of ranks and arrivals count together, with the time of the slowest. The steps of a
// trace are repetitions.
func collectivesOf(x *experiment.Experiment, o *Outcome) []record.Collective {
	dones, starts := o.Dones, firstStarts(x, o.Flows)
	rows := make([]row, x.Lab.Rows())
	for i := range x.Items {
		of := func(d host.Done, i int) int { return d.Item - i } // they are sorted
		from, _ := slices.BinarySearchFunc(dones, i, of)
		to, _ := slices.BinarySearchFunc(dones, i+1, of)
		c := collectiveOf(&x.Items[i], dones[from:to], starts)
		it := &x.Lab.Workload[i]
		step := 0
		if groups := max(1, it.Ranks.Groups, it.Arrivals); it.Line != nil {
			c.Label, step = it.Line.Name, it.Line.Step
			c.Groups = groups * it.Line.Groups
		} else {
			c.Label, c.Groups = it.Label, groups
		}
		c.FastestUS = c.TimeUS
		rows[it.Row].add(step, &c)
		rows[it.Row].items.add(i)
	}
	out := make([]record.Collective, len(rows))
	for i := range rows {
		out[i] = rows[i].sum()
		out[i].Items = rows[i].items.String()
		if out[i].Groups == 1 {
			out[i].Groups, out[i].FastestUS = 0, 0
		}
	}
	return out
}

// row is a row of the summary, by steps of a trace.
type row struct {
	steps []record.Collective
	items ranges
}

// ranges are numbers that were added in ascending order, each range as its first and last.
type ranges [][2]int

func (r *ranges) add(n int) {
	if last := len(*r) - 1; last >= 0 && (*r)[last][1] == n-1 {
		(*r)[last][1] = n
		return
	}
	*r = append(*r, [2]int{n, n})
}

// String returns the numbers as record.Collective.Items has them.
func (r ranges) String() string {
	parts := make([]string, len(r))
	for i, of := range r {
		if parts[i] = strconv.Itoa(of[0]); of[1] > of[0] {
			parts[i] += "-" + strconv.Itoa(of[1])
		}
	}
	return strings.Join(parts, ",")
}

// add adds what a group of ranks did in a step.
func (r *row) add(step int, c *record.Collective) {
	for len(r.steps) <= step {
		r.steps = append(r.steps, record.Collective{})
	}
	if s := &r.steps[step]; s.Ranks == 0 {
		*s = *c
	} else {
		join(s, c)
	}
}

// sum returns the mean over the steps that every group finished.
func (r *row) sum() record.Collective {
	all := r.steps[0]
	if len(r.steps) == 1 {
		return all
	}
	all.Repeat *= len(r.steps)
	all.TimeUS, all.FastestUS, all.AlgBWGbps, all.BusBWGbps, all.Wrong, all.Checked, all.Alike = 0, 0, 0, 0, 0, 0, 0
	all.TimeMaxUS = 0
	finished, alg, bus := 0.0, 0.0, 0.0 // the bandwidths of a step of 1 us
	for i := range r.steps {
		c := &r.steps[i]
		all.Wrong += c.Wrong
		all.Checked += c.Checked
		all.Alike += c.Alike
		if c.TimeUS > 0 {
			finished++
			all.TimeUS += c.TimeUS
			all.TimeMaxUS = max(all.TimeMaxUS, c.Longest())
			all.FastestUS += c.FastestUS
			alg, bus = c.AlgBWGbps*c.TimeUS, c.BusBWGbps*c.TimeUS
		}
	}
	if finished > 0 {
		all.TimeUS /= finished
		all.FastestUS /= finished
		all.AlgBWGbps, all.BusBWGbps = alg/all.TimeUS, bus/all.TimeUS
	}
	if slices.ContainsFunc(r.steps, func(c record.Collective) bool { return c.Longest() <= 0 }) {
		all.TimeMaxUS = 0
	}
	return all
}

// join adds a group to those of the same item. If one group did not finish, the item did not.
func join(all, c *record.Collective) {
	unfinished := all.TimeMaxUS == 0 || c.TimeMaxUS == 0 // some repetition
	all.Wrong += c.Wrong
	all.Checked += c.Checked
	all.Alike += c.Alike
	all.FastestUS = min(all.FastestUS, c.TimeUS)
	if all.FastestUS == 0 {
		all.TimeUS, all.AlgBWGbps, all.BusBWGbps = 0, 0, 0
		all.TimeMaxUS = 0
		return
	}
	if all.TimeMaxUS = max(all.TimeMaxUS, c.TimeMaxUS); min(all.Repeat, c.Repeat) > 1 && unfinished {
		all.TimeMaxUS = 0
	}
	if c.TimeUS > all.TimeUS {
		all.TimeUS, all.AlgBWGbps, all.BusBWGbps = c.TimeUS, c.AlgBWGbps, c.BusBWGbps
	}
}

// collectiveOf sums up one item. Its time is from the first rank's start to the last rank's end,
// the mean over the repetitions that every rank finished. Repetitions overlap, since no rank waits
// for others before the next one: their times may add up to more than the run's. So a bandwidth is
// never more than the network had: a rank that starts early (start: previous, without a part in the
// item before) and waits for the others counts. The bandwidth of a list of flows is from its first
// flow on: the time before, from which the file counts, sends nothing.
func collectiveOf(it *host.Item, dones []host.Done, starts map[repetition]units.Time) record.Collective {
	c := record.Collective{
		Name: it.Collective, Algorithm: it.Algorithm, Ranks: len(it.Ranks), Bytes: int64(it.Size), Repeat: it.Repeat,
	}
	var total, idle, longest units.Time
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
			if d.Alike {
				c.Alike += d.Checked
			}
		}
		if parts == len(it.Ranks) {
			total += last - first
			longest = max(longest, last-first)
			idle += max(first, starts[repetition{dones[0].Item, dones[0].Repeat}]) - first
			finished++
		}
		dones = dones[parts:]
	}
	if finished > 0 {
		took := total / units.Time(finished)
		c.TimeUS = took.Microseconds()
		if it.Repeat > 1 && finished == it.Repeat {
			c.TimeMaxUS = longest.Microseconds()
		}
		size := bench.Size(it.Collective, len(it.Ranks), units.Bytes(max(1, it.Flows))*it.Size)
		sending := (total - idle) / units.Time(finished)
		if alg, bus, err := bench.Bandwidth(it.Collective, len(it.Ranks), size, sending); err == nil {
			c.AlgBWGbps, c.BusBWGbps = float64(alg)/float64(units.Gbps), float64(bus)/float64(units.Gbps)
		}
	}
	return c
}

// repetition is one of an item of the workload.
type repetition struct{ item, repeat int }

// firstStarts returns when the first flow of each repetition of the lists of flows starts.
func firstStarts(x *experiment.Experiment, flows []host.Flow) map[repetition]units.Time {
	starts := map[repetition]units.Time{}
	for i := range flows {
		f := &flows[i]
		if !x.Lab.Workload[f.Item].Listed {
			continue
		}
		at := repetition{int(f.Item), int(f.Repeat)}
		if start, known := starts[at]; !known || f.Start < start {
			starts[at] = f.Start
		}
	}
	return starts
}
