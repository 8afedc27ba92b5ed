package table

import (
	"fmt"
	"io"
	"math"

	"weft/results/record"
)

// Points writes several runs, one row each: the points of a sweep, or several labs. Runs whose clocks were measured are
// in a table of their own, after that of those with a workload.
func Points(w io.Writer, runs []*record.Summary, st Style) error {
	var busy, clocked []*record.Summary
	for _, s := range runs {
		if s.Clocks.Samples > 0 {
			clocked = append(clocked, s)
		}
		if s.Clocks.Samples == 0 || s.Flows.Count > 0 {
			busy = append(busy, s)
		}
	}
	if len(busy) > 0 {
		if err := workloads(w, busy, st); err != nil {
			return err
		}
	}
	if len(busy) > 0 && len(clocked) > 0 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	if len(clocked) > 0 {
		return clockPoints(w, clocked, st)
	}
	return nil
}

// workloads is the table of what workloads did.
func workloads(w io.Writer, runs []*record.Summary, st Style) error {
	var g grid
	g.row(header("lab"), header("point"), header("engine"), header("flows"), header("FCT p50"), header("FCT p99"),
		header("slowdown p99"), header("RTT mean"), header("queue p99"), header("marks"), header("drops"), header("status"))
	for _, s := range runs {
		done, sent := ended(s), s.Network.Packets > 0
		g.row(left(s.Lab), left(Point(s.Point)), left(s.Engine), right(known(s.Flows.Count > 0, count(s.Flows.Count))),
			right(known(done, micros(s.Flows.FCT.P50))), right(known(done, micros(s.Flows.FCT.P99))),
			right(known(done, digits(s.Flows.Slowdown.P99))),
			right(known(answered(s), micros(s.RTT.Mean))), right(known(delivered(s), micros(s.Network.QueueDelay.P99))),
			right(known(sent, count(s.Network.CEMarks))), right(known(sent, count(s.Network.Drops))), outcome(s))
	}
	return g.write(w, st, "")
}

// Across writes what was expected across the points of sweeps; nothing without any.
func Across(w io.Writer, judged []*record.Summary, st Style) error {
	for _, s := range judged {
		if _, err := fmt.Fprintf(w, "\n%s\n", st.paint(bold, s.Lab)); err != nil {
			return err
		}
		if err := expectations(s).write(w, st, "  "); err != nil {
			return err
		}
	}
	return nil
}

// outcome is the last column: how the run went, in a word or two.
func outcome(s *record.Summary) cell {
	switch missed := Missed(s); {
	case s.Status != "ok":
		return cell{text: s.Status, colour: red}
	case missed > 0:
		return cell{text: fmt.Sprintf("missed %d of %d", missed, len(s.Expect)), colour: red}
	case s.Fidelity != nil && s.Fidelity.Verdict != "ok":
		return cell{text: "fidelity " + s.Fidelity.Verdict, colour: yellow}
	case !s.Verified:
		return cell{text: "not verified", colour: yellow}
	}
	return cell{text: "ok", colour: green}
}

// Compare writes the same lab in two engines side by side with the difference of the second from the first.
func Compare(w io.Writer, a, b *record.Summary, st Style) error {
	var g grid
	g.row(header(a.Lab), header(a.Engine), header(b.Engine), header("difference"))
	for _, r := range comparison(a, b) {
		c := right("")
		if !math.IsNaN(r.share) {
			c = right(fmt.Sprintf("%+.1f %%", 100*r.share))
			if math.Abs(r.share) > 0.10 {
				c.colour = yellow
			}
		}
		g.row(left(r.name), right(known(!math.IsNaN(r.a), micros(r.a))), right(known(!math.IsNaN(r.b), micros(r.b))), c)
	}
	return g.write(w, st, "")
}

type difference struct {
	name  string
	a, b  float64 // microseconds; NaN where there is no value
	share float64 // (b - a) / a; NaN when a is 0, or one of them is no value
}

func comparison(a, b *record.Summary) []difference {
	var out []difference
	add := func(name string, x, y float64) {
		share := math.NaN()
		if x != 0 {
			share = (y - x) / x
		}
		out = append(out, difference{name, x, y, share})
	}
	for _, d := range []struct {
		name string
		a, b record.Quantiles
	}{
		{"flow completion", only(ended(a), a.Flows.FCT), only(ended(b), b.Flows.FCT)},
		{"round trip", only(answered(a), a.RTT), only(answered(b), b.RTT)},
		{"switch queues", only(delivered(a), a.Network.QueueDelay), only(delivered(b), b.Network.QueueDelay)},
	} {
		add(d.name+" mean", d.a.Mean, d.b.Mean)
		add(d.name+" p50", d.a.P50, d.b.P50)
		add(d.name+" p99", d.a.P99, d.b.P99)
	}
	if a.Clocks.Samples > 0 && b.Clocks.Samples > 0 {
		add("clock error p50", a.Clocks.Error.P50/1e3, b.Clocks.Error.P50/1e3)
		add("clock error p99", a.Clocks.Error.P99/1e3, b.Clocks.Error.P99/1e3)
	}
	for i := range min(len(a.Collectives), len(b.Collectives)) {
		add(fmt.Sprintf("%s %d", a.Collectives[i].Name, i), positive(a.Collectives[i].TimeUS), positive(b.Collectives[i].TimeUS))
	}
	return out
}

// only is q where there are such values, else quantiles that are none.
func only(is bool, q record.Quantiles) record.Quantiles {
	if is {
		return q
	}
	none := math.NaN()
	return record.Quantiles{Mean: none, P50: none, P99: none, Max: none}
}

// positive is v, or NaN for a time that was not measured.
func positive(v float64) float64 {
	if v > 0 {
		return v
	}
	return math.NaN()
}

// Misses lists, below the table of several runs, what was missed and why runs failed; nothing when all is well.
func Misses(w io.Writer, runs []*record.Summary, st Style) error {
	var g grid
	for _, s := range runs {
		name := s.Lab
		if p := Point(s.Point); p != "" {
			name += " " + p
		}
		if s.Error != "" {
			g.row(cell{text: s.Status, colour: red}, left(name), left(s.Error))
		}
		for _, e := range s.Expect {
			if !e.OK {
				g.row(cell{text: "missed", colour: red}, left(name), left(e.That), left(e.Note))
			}
		}
	}
	if len(g.rows) == 0 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return g.write(w, st, "")
}
