package emulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/internal/plural"
	"weft/internal/stalls"
	"weft/results/record"
	"weft/units"
)

// minStall returns the length of the shortest stall that processes record: half of the lateness
// that is still ok. Processes of a busy machine are behind by less all the time, which the
// distributions of lateness judge.
func (x *Experiment) minStall() units.Time {
	return units.Time(record.OKLateness / 2 * float64(x.BaseRTT))
}

// behind is when a process was behind.
type behind struct {
	who string // in a sentence
	// others noticed it: packets that should have left some hosts came late
	noticed bool
	stalls.Log
}

// work is the time that a number of the summary is made of.
type work struct {
	what  string // in a sentence: "flows of all-reduce"
	spans []stalls.Span
	// they are of a collective, each from the first rank's begin to the last one's end
	ranks bool
}

// stalled is what the stalls of all processes mean for the work of a run.
type stalled struct {
	share float64 // of the time of the work that they cover most
	what  string  // that work
	spans stalls.Set
	rest  units.Time // stalls of unknown instants
}

// A stall of deepStall base round trips or more is taken for a queue or a loss, and senders need
// recovery of them, or its length if that is more, until they send as before. Measured: an incast
// of 1 ms with RoCE lost 129 us by a stall of 21 us, and the median of HPCC moved by 120 us.
const (
	deepStall = 2
	recovery  = 50
)

// recovery returns how long senders send less after a stall.
func (e *evidence) recovery(s stalls.Span) units.Time {
	if s.Len() < deepStall*e.baseRTT {
		return 0
	}
	return max(s.Len(), recovery*e.baseRTT)
}

// weigh returns how much of the time of each work some process was behind. It is the share of the
// mean or of the median, whichever is larger. Stalls whose instants are not known may have been in
// any work, and count for each. after returns how long senders send less after a stall, which
// counts as well.
func weigh(all []behind, work []work, after func(stalls.Span) units.Time) (s stalled) {
	var spans []stalls.Span
	for i := range all {
		s.rest += all[i].Rest
		for _, p := range all[i].Spans {
			p.To += after(p)
			spans = append(spans, p)
		}
	}
	s.spans = stalls.Union(spans...)
	if s.spans.Empty() {
		return s
	}
	for i := range work {
		if share := s.of(work[i].spans, s.cover); share > s.share {
			s.share, s.what = share, work[i].what
		}
	}
	return s
}

func (s *stalled) cover(w stalls.Span) units.Time { return s.spans.Cover(w.From, w.To) }

// apart returns the largest share of a collective's time by which stalls may have drawn its ranks
// apart, and which collective that is. A rank begins once it has what it needs, and is late for all
// that follow if it was late once: those that are ahead wait for its data, and it waits for its
// acknowledgements, so they stay apart by up to half a base round trip, and each repeat, from the
// first rank's begin to the last one's end, takes as much longer. Measured: a stall of 11 us in the
// first of 60 repeats moved their median from 13 us to 18.
func (s *stalled) apart(all []work, baseRTT units.Time) (share float64, what string) {
	for _, w := range all {
		if !w.ranks {
			continue
		}
		if part := s.of(w.spans, func(w stalls.Span) units.Time {
			return s.cover(w) + min(baseRTT/2, s.rest+s.spans.Cover(0, w.From))
		}); part > share {
			share, what = part, w.what
		}
	}
	return share, what
}

// of returns the share of stalls in the mean and in the median of spans, whichever is larger. lost
// returns what a span has of them.
func (s *stalled) of(work []stalls.Span, lost func(stalls.Span) units.Time) float64 {
	if len(work) == 0 {
		return 0
	}
	whole, without := make([]units.Time, len(work)), make([]units.Time, len(work))
	var all, rest units.Time
	first, last := units.Never, units.Time(0)
	for i, w := range work {
		whole[i], without[i] = w.Len(), max(0, w.Len()-lost(w))
		all += whole[i]
		rest += without[i]
		first, last = min(first, w.From), max(last, w.To)
	}
	if all <= 0 {
		return 0
	}
	slices.Sort(whole)
	slices.Sort(without)
	share := float64(all-rest) / float64(all)
	if half := len(work) / 2; whole[half] > 0 {
		share = max(share, float64(whole[half]-without[half])/float64(whole[half]))
	}
	return min(1, share+float64(s.rest)/float64(last-first))
}

// allStalls returns when each process was behind.
func (r *run) allStalls() (all []behind) {
	if f := r.outcome.Report; f != nil {
		for i := range f.Stalls {
			s := &f.Stalls[i]
			all = append(all, behind{who: cmp.Or(s.Who, r.carrier.who), Log: s.Log},
				behind{who: "a process of some host", noticed: true, Log: s.Late})
		}
	}
	for i, n := range r.outcome.Results {
		if n != nil && n.Stalls != nil && (len(n.Stalls.Spans) > 0 || n.Stalls.More > 0) {
			all = append(all, behind{who: r.drives(i), Log: *n.Stalls})
		}
	}
	for i := range r.outcome.Groups {
		all = append(all, r.outcome.Groups[i].behind...)
	}
	return all
}

// stood returns when a program was stopped, and when nobody looked at it.
func (r *run) stood(who string, s *sightings) []behind {
	lab := func(l stalls.Log) stalls.Log {
		for i, p := range l.Spans {
			l.Spans[i] = stalls.Span{From: r.labAt(s.begun.Add(p.From.Duration())),
				To: r.labAt(s.begun.Add(p.To.Duration()))}
		}
		l.Rest = units.Time(float64(l.Rest) / r.x.Dilation)
		return l
	}
	return []behind{{who: who, Log: lab(s.Stood)}, {who: "weft, which watches programs,", Log: lab(s.Unseen)}}
}

// drives names the process that drives a host's node, by its hosts.
func (r *run) drives(host int) string {
	names := []string{r.name(host)}
	if r.cluster.Agents() > 0 {
		of, _ := driver(r.cluster, host)
		names = names[:0]
		for i := range r.nodes {
			if k, _ := driver(r.cluster, i); k == of {
				names = append(names, r.name(i))
			}
		}
	}
	return "the process of " + firstNames(names)
}

// work returns the times that the summary's numbers are made of: of flows, collectives and
// programs, and the whole.
func (r *run) work() (all []work) {
	o, rows := r.outcome, r.rows()
	whole := stalls.Span{From: units.Never}
	var flows []stalls.Span
	flowsOf, collectives := make([]work, rows.n), make([]work, rows.n)
	for i := range rows.n {
		flowsOf[i].what, collectives[i].what = "the messages of "+rows.names[i], rows.names[i]
		collectives[i].ranks = true
	}
	add := func(to *[]stalls.Span, s stalls.Span) {
		*to = append(*to, s)
		whole = stalls.Span{From: min(whole.From, s.From), To: max(whole.To, s.To)}
	}
	for i := range o.Flows {
		if f := &o.Flows[i]; f.Acked > 0 {
			add(&flows, stalls.Span{From: f.Start, To: f.Acked})
			if row := rows.of(int(f.Item)); row >= 0 {
				flowsOf[row].spans = append(flowsOf[row].spans, flows[len(flows)-1])
			}
		}
	}
	type once struct{ item, repeat int }
	done := map[once]stalls.Span{}
	for i := range o.Dones {
		d := &o.Dones[i]
		s, ok := done[once{d.Item, d.Repeat}]
		if !ok {
			s.From = units.Never
		}
		done[once{d.Item, d.Repeat}] = stalls.Span{From: min(s.From, d.Start), To: max(s.To, d.End)}
	}
	for key, s := range done {
		if row := rows.of(key.item); row >= 0 {
			add(&collectives[row].spans, s)
		}
	}
	all = append(all, work{what: "messages", spans: flows})
	all = append(append(all, flowsOf...), collectives...)
	for i := range o.Groups {
		w := work{what: r.x.Groups[i].Name}
		for _, h := range o.Groups[i].Hosts {
			add(&w.spans, stalls.Span{From: h.Begin, To: max(h.Begin, h.End)})
		}
		all = append(all, w)
	}
	switch until := r.x.until(); {
	case until > 0:
		whole = stalls.Span{To: max(whole.To, until)}
	case whole.To == 0:
		whole = stalls.Span{To: o.Elapsed}
	}
	return append(all, work{what: "the workload", spans: []stalls.Span{whole}})
}

// until returns until when hosts stay for the sake of their clocks; 0: none does.
func (x *Experiment) until() (last units.Time) {
	for i := range x.Plans {
		last = max(last, x.Plans[i].Until)
	}
	return last
}

// rows are the rows of the summary.
type rows struct {
	n     int
	by    []int // row by item
	names []string
}

// of returns the row of an item; -1: there is none.
func (r *rows) of(item int) int {
	if item < 0 || item >= len(r.by) {
		return -1
	}
	return r.by[item]
}

// rows returns the rows of the run's items.
func (r *run) rows() (all rows) {
	for h := range r.x.Plans {
		for k := range r.x.Plans[h].Items {
			it := &r.x.Plans[h].Items[k]
			row := it.Index
			if it.Index < len(r.x.Rows) {
				row = r.x.Rows[it.Index]
			}
			for len(all.by) <= it.Index {
				all.by = append(all.by, -1)
			}
			all.by[it.Index], all.n = row, max(all.n, row+1)
			for len(all.names) < all.n {
				all.names = append(all.names, "")
			}
			name := it.Collective
			if it.Name != "" {
				name = it.Name + " (" + name + ")"
			}
			all.names[row] = cmp.Or(all.names[row], name)
		}
	}
	return all
}

// shownStalls is the number of stalls that a verdict lists, the longest. Ours.
const shownStalls = 8

// judgeStalls judges how much of the time of the work some process was behind. Events cannot tell:
// a process that stands still has few.
func (e *evidence) judgeStalls(f *record.Fidelity) {
	s := weigh(e.behind, e.work, func(stalls.Span) units.Time { return 0 })
	senders := weigh(e.behind, e.work, e.recovery)
	f.Stalled, f.StalledWork = s.share, s.what
	f.Stalls = longest(e.behind, e.dilation)
	if len(f.Stalls) == 0 {
		return
	}
	top := &f.Stalls[0]
	which := fmt.Sprintf("%s stood or ran late for %.2g s from %.3g s after the start on, which is %v of lab time "+
		"from %v on", top.Process, top.RealS, top.FromUS*e.dilation/1e6, micros(top.ForUS), micros(top.FromUS))
	verdict := verdictOf(s.share)
	if verdict != record.OK {
		n := 0
		for i := range e.behind {
			if !e.behind[i].noticed {
				n += len(e.behind[i].Spans) + int(e.behind[i].More)
			}
		}
		if n > 1 {
			which = plural.Count(n, "stall") + ", in the longest of which " + which
		}
		f.Reasons = append(f.Reasons, fmt.Sprintf("processes stood or ran late during %.1f %% of the time of %s; ok "+
			"is up to %g %%: %s", 100*s.share, s.what, 100*record.OKLateness, which))
	}
	if verdict == record.OK && verdictOf(senders.share) != record.OK {
		verdict, f.Slowed = record.Degraded, true
		f.Reasons = append(f.Reasons, fmt.Sprintf("senders may have taken a stall for a queue: with the %d round "+
			"trips that they may need to send as before, it is %.1f %% of the time of %s, and ok is up to %g %%: %s",
			recovery, 100*senders.share, senders.what, 100*record.OKLateness, which))
	}
	if apart, what := s.apart(e.work, e.baseRTT); verdict == record.OK && verdictOf(apart) != record.OK {
		verdict, f.Slowed = record.Degraded, true
		f.Reasons = append(f.Reasons, fmt.Sprintf("ranks may have stayed apart after a stall: with what each repeat "+
			"takes longer then, up to half a base round trip, it is %.1f %% of the time of %s, and ok is up to %g %%: "+
			"%s", 100*apart, what, 100*record.OKLateness, which))
	}
	if e.rto > 0 && top.ForUS >= e.rto.Microseconds() {
		verdict, f.Slowed = record.Worse(verdict, record.Degraded), true
		f.Reasons = append(f.Reasons, fmt.Sprintf("senders may have taken a stall for a loss, with a retransmission "+
			"timeout of %v: %s", e.rto, which))
	}
	f.Verdict = record.Worse(f.Verdict, verdict)
}

func micros(us float64) units.Time { return units.Time(us * float64(units.Microsecond)).Rounded() }

// longest returns the longest stalls. Those of several processes at once, of which each is at least
// half as long, are one.
func longest(all []behind, dilation float64) (top []record.Stall) {
	type stall struct {
		stalls.Span
		who     []string
		noticed bool
	}
	var each []stall
	for i := range all {
		for _, s := range all[i].Spans {
			each = append(each, stall{s, []string{all[i].who}, all[i].noticed})
		}
	}
	slices.SortStableFunc(each, func(a, b stall) int { return cmp.Compare(b.Len(), a.Len()) })
	var kept []*stall
	for i := range each {
		s := &each[i]
		k := slices.IndexFunc(kept, func(t *stall) bool { return s.From < t.To && t.From < s.To })
		switch {
		case k < 0 && len(kept) < shownStalls:
			kept = append(kept, s)
		case k < 0 || s.noticed && !kept[k].noticed || 2*s.Len() < kept[k].Len():
		case kept[k].noticed && !s.noticed: // whose it was is known
			kept[k].who, kept[k].noticed = s.who, false
		case !slices.Contains(kept[k].who, s.who[0]):
			kept[k].who = append(kept[k].who, s.who[0])
		}
	}
	for _, s := range kept {
		top = append(top, record.Stall{Process: strings.Join(s.who, " and "), FromUS: s.From.Microseconds(),
			ForUS: s.Len().Microseconds(), RealS: s.Len().Microseconds() * dilation / 1e6})
	}
	return top
}
