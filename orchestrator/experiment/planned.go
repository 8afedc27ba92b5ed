package experiment

import (
	"slices"

	"weft/collectives/schedule"
	"weft/host"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/units"
)

// plannedRates returns, by rank, the rate at which a controller that knows the collective would
// start connections to it: its line rate, shared among the flows that arrive there at once (PC4,
// Table I); with base_rate: table, among all that arrive there.
func (x *compiler) plannedRates(it *host.Item) ([]units.Bandwidth, error) {
	rates, spec := make([]units.Bandwidth, len(it.Ranks)), it.Spec()
	if x.ratesByTable() {
		spec.Parallel = len(it.Ranks) // nobody waits for its turn
	}
	for r, h := range it.Ranks {
		n := 1
		if !checkedBefore(&spec, r) {
			var err error
			if n, err = schedule.Inflow(spec, r); err != nil {
				return nil, err
			}
		}
		rates[r] = x.NICRate(topology.NodeID(h)) / units.Bandwidth(max(1, n)*max(1, it.QPs))
	}
	return rates, nil
}

// ratesByTable reports whether base rates are those of Table I even while fewer flows are active
// than a collective has.
func (x *compiler) ratesByTable() bool {
	_, section := transport.InsideOf(x.Lab.Transport.Section)
	p, ok := section.Control().(interface{ RatesByTable() bool })
	return ok && p.RatesByTable()
}

// planAcross shares the planned rates of connections among all items that send to a host when one
// begins. Controllers tell hosts about them: "each host is aware of all incoming and outgoing
// traffic" (PC4, section II-A, line 55 of the text). With base_rate: table a flow starts at the
// rate of its own collective, as in Table I. With observed and off no host knows the other items.
func (x *compiler) planAcross() error {
	_, section := transport.InsideOf(x.Lab.Transport.Section)
	if len(x.Items) < 2 || !transport.RatesByController(section.Control()) {
		return nil
	}
	for h := range x.Plans {
		if len(x.Plans[h].Items) < 2 {
			continue
		}
		line := x.NICRate(topology.NodeID(h))
		jobs, err := jobsOf(x.Plans[h].Items, line)
		if err != nil {
			return err
		}
		shareOver(jobs, line)
		for i := len(jobs) - 1; i >= 0; i-- { // the first of the items of a trace that share a connection decides
			for _, p := range x.Plans[h].Items[i].Expect {
				x.Conns[p.Conn].Initial = line / units.Bandwidth(max(1, jobs[i].shared))
			}
		}
	}
	return nil
}

// job is an item of one host, as a controller sees it.
type job struct {
	flows   int        // flows that arrive at once
	left    float64    // bytes that have yet to arrive
	sending units.Time // how long the host sends at its line rate
	start   units.Time // earliest start; units.Never until the previous item is over
	after   bool       // starts when the item before is over
	delay   units.Time // computation before the first repetition
	shared  int        // flows of all items that arrive when this one begins
	begun   bool
}

// jobsOf returns the jobs of a host's items, none of which has begun.
func jobsOf(items []host.Item, line units.Bandwidth) ([]job, error) {
	jobs := make([]job, len(items))
	for i := range items {
		it := &items[i]
		spec := it.Spec()
		n, err := schedule.Inflow(spec, it.Rank)
		if err != nil {
			return nil, err
		}
		v, err := schedule.Volume(spec, it.Rank)
		if err != nil {
			return nil, err
		}
		times := units.Bytes(it.Repeat)
		jobs[i] = job{flows: n * max(1, it.QPs), left: float64(v.Received * times),
			sending: line.TransmitTime(v.Sent * times), start: it.Start, delay: it.Compute,
			after: it.Previous && i > 0}
		if v.Received == 0 {
			jobs[i].flows = 0
		}
	}
	return jobs, nil
}

// shareOver sets shared of all jobs: it lets them run with the line divided evenly among the flows
// that arrive, as base rates divide it. Headers, round trips and the network do not count, so a job
// ends a little early.
func shareOver(jobs []job, line units.Bandwidth) {
	rate := float64(line) / 8 / float64(units.Second) // bytes per ps
	for i := range jobs {
		if jobs[i].after {
			jobs[i].start = units.Never
		} else {
			jobs[i].start += jobs[i].delay
		}
	}
	var now units.Time
	var active []int
	for {
		flows := 0
		for _, i := range active {
			flows += jobs[i].flows
		}
		next, ends := units.Never, -1 // the next event: a job ends, or with ends < 0 some begin
		for i := range jobs {
			if !jobs[i].begun {
				next = min(next, jobs[i].start)
			}
		}
		for _, i := range active {
			if at := now + jobs[i].duration(flows, rate); at < next {
				next, ends = at, i
			}
		}
		if next == units.Never {
			return
		}
		for _, i := range active {
			jobs[i].advance(next-now, flows, rate)
		}
		now = next
		if ends >= 0 {
			active = slices.DeleteFunc(active, func(i int) bool { return i == ends })
			if k := ends + 1; k < len(jobs) && jobs[k].after {
				jobs[k].start = now + jobs[k].delay
			}
			continue
		}
		first := len(active)
		for i := range jobs {
			if !jobs[i].begun && jobs[i].start == now {
				jobs[i].begun = true
				active = append(active, i)
				flows += jobs[i].flows
			}
		}
		for _, i := range active[first:] {
			jobs[i].shared = flows
		}
	}
}

// duration returns how long an active job still takes if nothing changes.
func (j *job) duration(flows int, rate float64) units.Time {
	if j.flows == 0 {
		return j.sending
	}
	return max(j.sending, units.Time(j.left*float64(flows)/float64(float64(j.flows)*rate)))
}

// advance lets an active job run for a time.
func (j *job) advance(d units.Time, flows int, rate float64) {
	j.sending = max(0, j.sending-d)
	if j.flows > 0 {
		j.left = max(0, j.left-float64(float64(d)*rate)*float64(j.flows)/float64(flows))
	}
}
