package table

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weft/internal/plural"
	"weft/results/record"
	"weft/units"
)

// Summary writes one run in full.
func Summary(w io.Writer, s *record.Summary, st Style) error {
	if _, err := fmt.Fprintf(w, "%s  %s\n", st.paint(bold, title(s)), verdict(s, st)); err != nil {
		return err
	}
	facts := Table{}
	add := func(name string, text string) { facts.Add(Row(name), Left(text)) }
	for i, line := range strings.Split(s.Error, "\n") {
		switch {
		case line == "":
		case i == 0:
			add("error", units.Spaced(line)) // the others may have values for a lab
		default:
			add("", line)
		}
	}
	if s.Run != "" {
		add("run", s.Run)
	}
	if text := outputs(s); text != "" {
		add("output", text)
	}
	if s.Flows.Count == 0 && s.Error != "" && len(s.Programs) == 0 {
		return facts.Write(w, st, "  ") // the run never began: all else is zero
	}
	for _, f := range Facts(s) {
		add(f[0], f[1])
	}
	for _, row := range Trust(s) {
		add(row.Name, row.Text)
		if row.Advice {
			facts.Rows[len(facts.Rows)-1][0].Mark = MarkDoubt
		}
	}
	if s.Retry != nil {
		add("retry", Retry(s.Retry))
	}
	for _, text := range s.Notes {
		add("note", units.Spaced(text))
	}
	for _, text := range s.Warnings {
		add("warning", units.Spaced(text))
	}
	if err := facts.Write(w, st, "  "); err != nil {
		return err
	}
	for _, t := range []Table{Distributions(s, maxCompletions), Collectives(s, maxCollectives), Programs(s), Metrics(s),
		Clocks(s), Stability(s), Expectations(s.Expect)} {
		if err := t.Below(w, st, "  "); err != nil {
			return err
		}
	}
	return nil
}

// Facts lists in words what a run did, as pairs of a name and a text: what no table has.
func Facts(s *record.Summary) (all [][2]string) {
	add := func(name, text string) {
		if text != "" {
			all = append(all, [2]string{name, text})
		}
	}
	if s.Flows.Count > 0 || s.Clocks.Samples == 0 && len(s.Programs) == 0 {
		add("flows", Flows(s))
	}
	if m := s.Module; m != nil {
		add("module", moduleText(m))
	}
	add("lab time", fmt.Sprintf("%s, in %s of wall time", known(s.LabTimeUS > 0, micros(s.LabTimeUS)),
		micros(s.WallS*1e6)))
	n := &s.Network
	add("network", packets(s))
	add("links", links(n))
	if k := s.LinkCheck; k != nil {
		add("measured", LinkCheck(k))
	}
	add("trimming", trimming(n))
	if a := n.After; a != nil {
		add("from", fmt.Sprintf("%s on: %s, largest queue %s; other counts and completion times are of the "+
			"whole run", micros(a.FromUS), plural.Count(int(a.Drops), "drop"),
			record.Select("max_queue_after")[0].Text(s)))
	}
	if s.Unadjusted {
		add("control", "congestion control changed no window and no rate")
	}
	if s.Memo != nil {
		add("memo", Memo(s.Memo))
	}
	add("clocks", synchronization(&s.Clocks))
	if r := s.Rates; r != nil {
		add("rates", fmt.Sprintf("%s over %d connections, %s to %s each, Jain's index %s, from %s to %s",
			gbps(r.TotalGbps), r.Conns,
			gbps(r.MinGbps), gbps(r.MaxGbps), units.Number(r.Jain), micros(r.FromUS), micros(r.UntilUS)))
	}
	return all
}

// Flows says how many of the started messages finished. Others may have waited for one that did
// not.
func Flows(s *record.Summary) string {
	started := units.Count(s.Flows.Count)
	if !complete(s) {
		started += " started"
	}
	if !ended(s) {
		return "0 done of " + started
	}
	return fmt.Sprintf("%s done of %s, %s", units.Count(s.Flows.Count-s.Flows.Unfinished), started, size(s.Flows.Bytes))
}

// A TrustRow is a row of Trust.
type TrustRow struct {
	Name, Text string
	Advice     bool // it says what to do about a fidelity that is not ok
}

// Trust lists how far the numbers of an emulated run can be trusted: its fidelity, further reasons
// without a name, and what to do. It is empty for a simulation.
func Trust(s *record.Summary) (rows []TrustRow) {
	f := s.Fidelity
	if f == nil {
		return nil
	}
	rows = append(rows, TrustRow{Name: "fidelity", Text: Fidelity(s)})
	for _, r := range f.Reasons {
		rows = append(rows, TrustRow{Text: units.Spaced(r)})
	}
	if f.Advice != "" {
		rows = append(rows, TrustRow{Name: "advice", Text: units.Spaced(f.Advice), Advice: true})
	}
	return rows
}

// Doubt says what a fidelity that is not ok means for the numbers of a run; "" if it is ok, or the
// run has none.
func Doubt(s *record.Summary) string {
	switch o := s.Outcome(); {
	case s.Fidelity.Invalid():
		return "fidelity invalid; " + doNotUse
	case o.Doubtful():
		return "fidelity " + o.Fidelity
	}
	return ""
}

// Fidelity says how late an emulated run was against its limit, what that means for its tails, and
// what it lost without order.
// Busy processors decide nothing by themselves, but explain lateness.
func Fidelity(s *record.Summary) string {
	f, text := s.Fidelity, s.Fidelity.Verdict
	switch {
	case f.Unjudged() != "":
		text = "not judged: " + f.Unjudged()
	case f.OfNothing():
	case f.BaseRTTNS > 0:
		which := "99 % of events"
		if f.Events > 0 && f.Events < 100 { // the latest decides
			which = "all of " + plural.Count(f.Events, "event")
		}
		text += fmt.Sprintf(": %s at most %s late, %s of the base round trip of %s (ok: up to %s, degraded: up to %s)",
			which, micros(f.LatenessP99NS/1e3), percent(f.LatenessP99NS/f.BaseRTTNS), micros(f.BaseRTTNS/1e3),
			percent(record.OKLateness), percent(record.DegradedLateness))
		if share := f.RoundTripP99NS / f.BaseRTTNS; share > record.DegradedLateness {
			text += fmt.Sprintf("; 1 %% of round trips may be more than %s late, so p99 and maxima need --twice",
				micros(f.RoundTripP99NS/1e3))
		}
		late, mean := f.LatenessP99NS/1e3, record.Select("queue_delay.mean")[0].Value(s)
		if f.Verdict == record.OK && late > record.OKLateness*mean { // not if the mean is not known
			text += fmt.Sprintf("; the mean time in switch queues is %s, so queues and marks need --twice",
				micros(mean))
		}
	}
	switch {
	case f.LateCrossings > 0:
		text += fmt.Sprintf("; %d of %d packets between parts of the network came too late", f.LateCrossings,
			f.Crossings)
	case f.Crossings > 0:
		text += fmt.Sprintf("; exact cut: none of %d packets between parts of the network came too late", f.Crossings)
	}
	if f.Verdict == "ok" {
		return text
	}
	if f.UnorderedDrops > 0 { // 0 may be that nobody reported any
		text += fmt.Sprintf("; %d packets lost that the model did not drop (ok: 0)", f.UnorderedDrops)
	}
	return text + fmt.Sprintf("; processors up to %s busy", percent(f.CPUMax))
}

// Retry gives the reason of another try, and says whether it counts.
func Retry(r *record.Retry) string {
	counts := "it counts"
	if !r.Counts {
		counts = "it does not count"
	}
	return fmt.Sprintf("%s times as slow as %s, whose fidelity was %s at dilation %s: %s; %s", units.Number(r.Factor),
		r.Of, r.Verdict, units.Number(r.Dilation), r.Why, counts)
}

// title names the run: lab, point of the sweep, engine, transport and seed.
func title(s *record.Summary) string {
	parts := []string{s.Lab}
	if p := Point(s.Point); p != "" {
		parts = append(parts, p)
	}
	engine := s.Engine
	if s.Runtime != "" {
		engine += " (" + s.Runtime + ", " + s.Datapath
		if s.NIC != "" {
			engine += ", nic " + s.NIC
		}
		engine += ", dilation " + units.Number(s.Dilation) + ")"
	}
	parts = append(parts, engine, record.Sender(s.Transport, s.Carried), fmt.Sprintf("seed %d", s.Seed))
	return strings.Join(parts, "  ")
}

// Point formats the values of a sweep point in the order of their paths: "seed=2
// workload.0.ranks=8".
func Point(point map[string]any) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(point)) {
		parts = append(parts, fmt.Sprintf("%s=%v", path, point[path]))
	}
	return strings.Join(parts, " ")
}

// verdict says in a few words how the run ended. An invalid fidelity comes first, and then nothing
// is green or ok, and no expectation is met by numbers of use.
func verdict(s *record.Summary, st Style) string {
	if !s.Complete() {
		return st.paint(red, s.Status)
	}
	invalid, o := s.Fidelity.Invalid(), s.Outcome()
	checked := s.Lacks("verified") == "" && // there was a workload
		(len(s.Collectives) > 0 || s.Clocks.Samples == 0 && len(s.Programs) == 0)
	var out []string
	switch {
	case s.Status != record.OK:
		out = append(out, st.paint(red, s.Status))
	case checked && o.Grade() != record.Good:
		out = append(out, "data verified")
	case checked:
		out = append(out, st.paint(green, "ok, data verified"))
	case o.Grade() == record.Good:
		out = append(out, st.paint(green, "ok"))
	}
	switch {
	case o.Missed > 0:
		out = append(out, st.paint(red, fmt.Sprintf("missed %d of %d expectations", o.Missed, o.Expected)))
	case o.Unproven > 0 && !invalid:
		out = append(out, st.paint(yellow, o.String()))
	case o.Expected > 0 && !invalid:
		out = append(out, st.paint(green, "every expectation met"))
	}
	if o.Skipped > 0 {
		out = append(out, st.paint(yellow, Skipped(o.Skipped)))
	}
	if o.Doubtful() && !invalid {
		out = append(out, st.paint(yellow, doubt(s)))
	}
	text := strings.Join(out, ", ")
	if invalid {
		text = strings.TrimSuffix(st.paint(red, doubt(s)+"; "+doNotUse)+"; "+text, "; ")
	}
	return text
}

// doNotUse is the meaning of an invalid fidelity.
const doNotUse = "do not use its numbers"

// doubt says that a fidelity is not ok.
func doubt(s *record.Summary) string {
	text := "fidelity " + s.Outcome().Fidelity
	if f := s.Fidelity; f != nil && f.Advice != "" {
		text += ": see advice"
	}
	return text
}

// Skipped says how many expectations were not judged.
func Skipped(n int) string { return plural.Count(n, "expectation") + " skipped" }

// Missed counts the missed expectations.
func Missed(s *record.Summary) int { return s.Outcome().Missed }

// links says how often and how long links were paused, and what they lost. It is empty if nothing
// happened.
func links(n *record.Network) string {
	var parts []string
	add := func(count int64, what string) {
		if count > 0 {
			parts = append(parts, units.Count(count)+" "+what)
		}
	}
	add(n.Pauses, "pauses")
	if n.PausedUS > 0 {
		parts = append(parts, micros(n.PausedUS)+" in all")
	}
	add(n.Lost, "packets lost")
	add(n.Cut, "packets cut off")
	add(n.Unreceived, "packets at stopped hosts")
	add(n.Late, "packets late")
	add(n.Duplicated, "packets duplicated")
	return strings.Join(parts, ", ")
}

// LinkCheck says how much the measured links of the kernel datapath differed from the lab.
func LinkCheck(k *record.LinkCheck) string {
	text := fmt.Sprintf("%d of %d directions of links before lab time", k.Measured, k.Directions)
	if k.Unrated < k.Measured {
		text += fmt.Sprintf(": rates within %s, delays within %s of the lab's", percent(k.RateError),
			micros(k.DelayErrorNS/1e3))
	}
	if k.Unrated > 0 {
		text += fmt.Sprintf("; rates and delays of %d not, since these delay packets at random", k.Unrated)
	}
	return text + fmt.Sprintf(", %s of %s probes lost", units.Count(k.Lost), units.Count(k.Probes))
}

// trimming returns in words what trimming switches and receivers that grant credit did; "" if there
// were none.
func trimming(n *record.Network) string {
	var parts []string
	if n.Trims > 0 {
		parts = append(parts, fmt.Sprintf("%s packets cut to their headers, which took away %s",
			units.Count(n.Trims), size(n.TrimmedBytes)))
	}
	if n.Credits > 0 {
		parts = append(parts, units.Count(n.Credits)+" credit messages")
	}
	return strings.Join(parts, ", ")
}

// Distributions returns the table of everything with a mean and quantiles, without rows if nothing
// was sent. It has the completion times of each item of the workload if there are at most most.
func Distributions(s *record.Summary, most int) Table {
	t := Table{Head: []string{"", "mean", "p50", "p99", "max"}}
	if s.Flows.Count == 0 {
		return t
	}
	// The quantiles of flows are those of the ones that finished.
	finished := func(name, path string, q record.Quantiles, is bool, write func(float64) string, note string) {
		value := func(part string, v float64) Cell { return Right(known(is && s.Lacks(path+part) == "", write(v))) }
		t.Add(Row(name), value(".mean", q.Mean), value(".p50", q.P50), value(".p99", q.P99), value(".max", q.Max),
			Left(note))
	}
	measured := func(name, distribution, note string) {
		row := []Cell{Row(name)}
		for _, n := range record.Select(quantiles(distribution)...) {
			row = append(row, Right(n.Text(s)))
		}
		t.Add(append(row, Left(note))...)
	}
	some := "" // of the flows
	if ended(s) && s.Flows.Unfinished > 0 {
		some = done(s) + " flows"
	}
	finished("flow completion", "flows.fct_us", s.Flows.FCT, ended(s), micros, some)
	if all := Completions(s); len(all) <= most {
		for _, c := range all {
			finished("  of "+c.Name, "", *c.FCT, true, micros, "")
		}
	}
	finished("slowdown", "flows.slowdown", s.Flows.Slowdown, ended(s), units.Number, "")
	measured("round trip", "rtt", "base "+micros(s.BaseRTTUS)+" (longest path)")
	measured("queueing", "queue_delay", "")
	if s.Network.QueueEventDelay != nil {
		measured("queue events", "queue_event_delay", "")
	}
	return t
}

// maxCompletions is the number of workload items up to which the terminal shows the completion
// times of each. The report shows all.
const maxCompletions = 8

// Completions returns the items of the workload with flow completion times of their own, by the
// names of record.Summary.CollectiveNames.
func Completions(s *record.Summary) (all []record.Collective) {
	for i, name := range s.CollectiveNames() {
		if c := s.Collectives[i]; c.FCT != nil {
			c.Name = name
			all = append(all, c)
		}
	}
	return all
}

// Collectives returns the table of the workload's items. Beyond most, those that differ only in
// size and group share a row.
func Collectives(s *record.Summary, most int) (t Table) {
	if len(s.Collectives) == 0 {
		return t
	}
	repeats := slices.ContainsFunc(s.Collectives, func(c record.Collective) bool { return c.Repeat > 1 })
	t.Head = []string{"collective", "algorithm", "ranks", "size", "repeat"}
	if repeats {
		t.Head = append(t.Head, "time, mean", "max")
	} else {
		t.Head = append(t.Head, "time")
	}
	t.Head = append(t.Head, "algbw", "busbw", "checked", "wrong")
	names := s.CollectiveNames()
	for _, row := range joined(s.Collectives, most) {
		first := s.Collectives[row[0]]
		name := names[row[0]]
		if len(row) > 1 {
			name = fmt.Sprintf("%s, %d sizes or groups", first.Name, len(row))
		}
		all := make([]record.Collective, len(row))
		repeat, checked, alike, wrong := 0, int64(0), int64(0), int64(0)
		for k, i := range row {
			all[k] = s.Collectives[i]
			repeat, checked, wrong = repeat+all[k].Repeat, checked+all[k].Checked, wrong+all[k].Wrong
			alike += all[k].Alike
		}
		done := !slices.ContainsFunc(all, func(c record.Collective) bool { return c.TimeUS <= 0 })
		sized := done && first.Bytes > 0 // a job that only calls collectives has no bytes of its own
		bad := Right(known(checked > 0, units.Count(wrong)))
		if wrong > 0 {
			bad.Mark = MarkBad
		}
		cells := []Cell{Left(name), Left(first.Algorithm), Right(ranks(first)),
			Right(span(all, func(c record.Collective) float64 { return float64(c.Bytes) },
				func(n float64) string { return size(int64(n)) })),
			Right(units.Count(int64(repeat))),
			Right(known(done, span(all, func(c record.Collective) float64 { return c.TimeUS }, micros)))}
		if repeats {
			timed := !slices.ContainsFunc(all, func(c record.Collective) bool { return c.Longest() <= 0 })
			cells = append(cells, Right(known(timed, span(all, record.Collective.Longest, micros))))
		}
		t.Add(append(cells,
			Right(known(sized, span(all, func(c record.Collective) float64 { return c.AlgBWGbps }, gbps))),
			Right(known(sized, span(all, func(c record.Collective) float64 { return c.BusBWGbps }, gbps))),
			Right(Checked(checked, alike)), bad)...)
	}
	return t
}

// maxCollectives is the number of collectives up to which the terminal has a row for each. The
// report and summary.json have all.
const maxCollectives = 20

// joined returns the rows of a table of collectives, as indexes. Beyond most, those that differ
// only in size and group share a row.
func joined(all []record.Collective, most int) (rows [][]int) {
	type kind struct {
		name, algorithm string
		ranks, groups   int
	}
	at := map[kind]int{}
	for i, c := range all {
		k := kind{c.Name, c.Algorithm, c.Ranks, c.Groups}
		row, ok := at[k]
		if !ok || len(all) <= most {
			at[k] = len(rows)
			rows = append(rows, []int{i})
			continue
		}
		rows[row] = append(rows[row], i)
	}
	return rows
}

// span formats a number of collectives, or the least and the greatest if they differ.
func span(all []record.Collective, of func(record.Collective) float64, format func(float64) string) string {
	least, most := of(all[0]), of(all[0])
	for _, c := range all[1:] {
		least, most = min(least, of(c)), max(most, of(c))
	}
	if least == most {
		return format(least)
	}
	return format(least) + "–" + format(most)
}

// ranks says how many ranks take part, and in how many groups.
func ranks(c record.Collective) string {
	n := units.Count(int64(c.Ranks))
	if c.Groups > 0 {
		n = units.Count(int64(c.Groups)) + " x " + n
	}
	return n
}

// Got formats the value that an expectation found: "3.2 us", or "3.2 us, and 1.2 * rtt.p50 is 4 us"
// if the other side was computed: its value alone would read as that of rtt.p50.
func Got(e record.Expect) string {
	switch {
	case e.Unmeasured || e.Skipped:
		return ""
	case e.Word != "":
		return e.Word
	case e.Want == nil:
		return sideText(e.Got, e.Unit)
	}
	return sideText(e.Got, e.Unit) + ", and " + rightSide(e.That) + " is " + sideText(*e.Want, e.Unit)
}

// rightSide returns the right side of a comparison, whose selections in brackets have = too.
func rightSide(text string) string {
	depth := 0
	for i, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '<', '>', '=', '!':
			if depth == 0 {
				return strings.TrimSpace(strings.TrimLeft(text[i:], "<>=!"))
			}
		}
	}
	return "the right side"
}

// sideText formats one side of an expectation.
func sideText(v float64, unit string) string {
	if record.Unit(unit) == record.Truth {
		return strconv.FormatBool(v != 0)
	}
	return units.Shown(v, unit)
}

// Found formats the value that an expectation found, or why it was missed and what else may be the
// reason.
func Found(e record.Expect) string {
	found := units.Spaced(e.Note)
	if e.OK {
		found = strings.Trim("got "+Got(e)+"; "+e.Note, "; ")
	}
	if e.Doubt != "" {
		found += "; " + e.Doubt
	}
	return found
}

// Expectations returns the table of expectations, without a head: the result of each, its text, and
// what was found.
func Expectations(all []record.Expect) (t Table) {
	for _, e := range all {
		word, found := "missed", Found(e)
		switch {
		case e.OK:
			word = "met"
		case e.Skipped:
			word, found = "skipped", e.Note
		}
		t.Add(Result(word, e.Grade()), Left(e.That), Left(found))
	}
	return t
}

// Memo tells what became of the steps of a simulated workload.
func Memo(m *record.Memo) string {
	if m.Why != "" {
		return "no step is skipped: " + m.Why
	}
	text := fmt.Sprintf("%d of %d steps skipped, as they were executed before from the same state", m.Skipped, m.Steps)
	var why []string
	for reason, n := range m.Executed {
		why = append(why, fmt.Sprintf("%d (%s)", n, reason))
	}
	slices.Sort(why)
	return text + "; executed: " + strings.Join(why, ", ")
}
