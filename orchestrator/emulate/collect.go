package emulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/nodeimg/agent"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/stats"
)

func newOutcome(nodes int) *Outcome {
	return &Outcome{RTT: stats.NewDist(), OneWay: stats.NewDist(), QueueDelay: stats.NewDist(),
		Results: make([]*agent.Results, nodes)}
}

// bootNotes returns what the machine did not grant to the processes, each once. What only programs
// in nodes lack is there if programs says so.
func bootNotes(c runtime.Cluster, carrier *carrier, programs bool) (notes []string) {
	add := func(from []string) {
		for _, n := range from {
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	addOf := func(p *runtime.Proc) {
		add(p.Report.Notes)
		if programs {
			add(p.Report.Lacks)
		}
	}
	add(carrier.notes)
	for i := range c.Switches() {
		addOf(c.Switch(i))
	}
	for i := range c.Agents() {
		addOf(c.Agent(i))
	}
	for i := range c.Nodes() {
		addOf(c.Node(i))
	}
	return notes
}

// collect asks every process that is still there for its results. Nodes come first, so that the
// fabric's report covers everything they sent. failed is the reason why the run ended, or nil; then
// collect returns an error if results are missing.
func (r *run) collect(ctx context.Context, failed error) error {
	r.endCPU()
	limit := collectTime
	if failed != nil {
		limit = rescue()
		r.outcome.Elapsed = r.labNow()
	}
	for i := range r.nodes {
		if err := r.crew.conns[i].SendValue(agent.KindStop, nil); err != nil {
			r.nodes[i].lose(err)
		}
	}
	if failed != nil {
		ctx = context.WithoutCancel(ctx) // its end is known, and must not hide what there is
	}
	r.await(ctx, limit, func() bool {
		for i := range r.nodes {
			if !r.nodes[i].told && r.nodes[i].lost == nil {
				return false
			}
		}
		return true
	})
	if err := r.carrier.conn.SendValue(realtime.KindStop, nil); err != nil {
		r.fabric.lose(err)
	}
	r.await(ctx, limit, func() bool { return r.fabric.told || r.fabric.lost != nil })
	lost := r.merge()
	r.shareCPU()
	switch {
	case len(lost) == 0:
		return nil
	case failed != nil:
		r.outcome.Warnings = append(r.outcome.Warnings, lost...)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	missing := "results are missing: " + strings.Join(lost, "; ")
	if err := r.died(); err != nil {
		return fmt.Errorf("%w; so %s", err, missing)
	}
	return errors.New(missing)
}

// died returns how a process ended that did not end well; nil: none did. It waits for the news for
// a while.
func (r *run) died() error {
	e, ok := r.ends.first(context.Background(), func(e *runtime.Exit) bool { return e.Err.State != runtime.Succeeded })
	if !ok {
		return nil
	}
	return r.at(e)
}

// await handles news until enough returns true, no part of any results has come for the limit, or
// collectTimes as long has passed. When ctx ends, the rest must come within the time for a rescue.
func (r *run) await(ctx context.Context, limit time.Duration, enough func() bool) {
	last := time.After(collectTimes * limit)
	quiet := time.NewTimer(limit)
	defer quiet.Stop()
	interrupted := ctx.Done()
	for !enough() {
		select {
		case n := <-r.news:
			// a process that fails now is marked as lost
			_ = r.take(n)
			if k := n.message.Kind; k == agent.KindRows || k == agent.KindResults {
				quiet.Reset(limit)
			}
		case <-interrupted:
			interrupted = nil
			limit = rescue()
			last = time.After(limit)
		case <-quiet.C:
			return
		case <-last:
			return
		}
	}
}

// merge combines the results of all processes. It returns a line about those that are missing for
// each reason.
func (r *run) merge() (lost []string) {
	o := r.outcome
	var missing []string // nodes by reason, in the order of the first node of each
	at := map[string][]string{}
	for i, n := range o.Results {
		if n == nil {
			why := r.nodes[i].why()
			if at[why] == nil {
				missing = append(missing, why)
			}
			at[why] = append(at[why], r.name(i))
			continue
		}
		o.Flows = append(o.Flows, n.Flows...)
		o.Dones = append(o.Dones, n.Dones...)
		o.Windows = append(o.Windows, n.Windows...)
		o.Transport.Add(n.Counters)
		o.TimedOut = append(o.TimedOut, n.TimedOut...)
		o.RTT.Merge(n.RTT)
		o.OneWay.Merge(n.OneWay)
	}
	for _, why := range missing {
		lost = append(lost, fmt.Sprintf("%s sent no results: %s", firstNames(at[why]), why))
	}
	if o.Report == nil {
		lost = append(lost, r.carrier.who+" sent no report: "+r.fabric.why())
	}
	if o.Report == nil {
		return lost
	}
	o.Fabric = o.Report.Network
	if n := o.Report.Uncaptured; n > 0 {
		o.Warnings = append(o.Warnings, fmt.Sprintf("captures lack %d packets, which arrived faster than they could "+
			"be written; use a higher dilation", n))
	}
	if r.x.Kernel != nil {
		// as measured by receivers: nobody sees a packet in the kernel's queues
		o.QueueDelay.Merge(o.OneWay)
		return lost
	}
	o.QueueDelay.Merge(o.Report.QueueDelay)
	return lost
}

// why says why a process did not answer.
func (p *peerState) why() string {
	if p.lost == nil {
		return "it did not answer in time"
	}
	return p.lost.Error()
}

// judge computes the verdict on the run.
func (r *run) judge() {
	o := r.outcome
	e := evidence{baseRTT: r.x.BaseRTT, target: r.x.DelayTarget, cpu: o.Fidelity.CPUMax, late: latenessOf(o),
		dilation: r.x.Dilation, behind: r.allStalls(), rto: r.x.minRTO()}
	if len(e.behind) > 0 {
		e.work = r.work()
	}
	var sockets int64
	ours, others := unsent{}, unsent{}
	var silent []string
	for i, n := range o.Results {
		if n == nil {
			silent = append(silent, r.name(i))
			continue
		}
		sockets += n.Dropped
		if r.strange(i) {
			others.add(r.name(i), n.Unsent)
		} else {
			ours.add(r.name(i), n.Unsent)
		}
	}
	if len(silent) > 0 {
		e.broken = append(e.broken, fmt.Sprintf("no report how late they were from %s", firstNames(silent)))
	}
	e.drops = []drops{{where: "receive buffers of nodes", n: sockets}, {where: "send queues of " + ours.names(),
		n: ours.n}}
	if others.n > 0 {
		e.drops = append(e.drops, drops{
			where: "send queues of " + others.names() + ", among packets that are not part of the workload",
			n:     others.n, foreign: true,
		})
	}
	into := "the fabric's path into nodes"
	if r.x.Kernel != nil {
		into = "the kernel's path between nodes"
	}
	if f := o.Report; f == nil {
		e.broken = append(e.broken, r.carrier.who+" did not report what it lost")
	} else {
		e.drops = append(e.drops, drops{where: into, n: f.Refused}, drops{where: "a network that began late",
			n: f.Unborn})
		if f.Broken != "" {
			e.broken = append(e.broken, f.Broken)
		}
		e.crossings = f.Crossings
	}
	e.waits, e.waiting, _ = o.waits(r.x.Groups)
	o.Refused, e.disturbed = r.refused()
	e.opened = openedSockets(o.Results)
	o.Fidelity = judge(e)
}

// openedSockets returns the share of data packets for which nodes had to open a socket.
func openedSockets(nodes []*agent.Results) float64 {
	var opened, packets int64
	for _, n := range nodes {
		if n != nil {
			opened += n.Opened
			packets += n.Counters.DataPackets
		}
	}
	if packets == 0 {
		return 0
	}
	return float64(opened) / float64(packets)
}

// unsent counts losses in the send queues of some nodes.
type unsent struct {
	n    int64
	from []string // nodes with losses
}

func (u *unsent) add(node string, n int64) {
	if n > 0 {
		u.n += n
		u.from = append(u.from, node)
	}
}

// names lists the nodes, or the first of many.
func (u *unsent) names() string { return firstNames(u.from) }

// firstNames lists names, or the first of many.
func firstNames(names []string) string {
	const shown = 4
	if more := len(names) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// latenessOf returns each kind of lateness that was measured.
func latenessOf(o *Outcome) []lateness {
	timers, reactions := stats.NewDist(), stats.NewDist()
	for _, n := range o.Results {
		if n != nil {
			timers.Merge(n.Timer)
			reactions.Merge(n.Reaction)
		}
	}
	late := []lateness{
		{what: "timers of nodes", dist: timers}, {what: "reactions of nodes", dist: reactions, twice: true},
	}
	if f := o.Report; f != nil && f.Delivery != nil {
		late = append(late, lateness{"deliveries", f.Delivery, true, true},
			lateness{"departures", f.Departure, true, true})
		if c := f.Crossings; c != nil {
			late = append(late, lateness{"packets from one part of the network to another", c.Lateness, true, true})
		}
	}
	if f := o.Report; f != nil && f.Decisions != nil {
		late = append(late, lateness{what: "decisions of switches", dist: f.Decisions})
	}
	return late
}
