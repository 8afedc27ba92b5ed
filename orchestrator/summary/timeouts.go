package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weft/host"
	"weft/internal/plural"
	"weft/orchestrator/experiment"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// decisive is the share of its time that a message must wait for timeouts before they count as
// decisive. Ours.
const decisive = 0.1

// tail returns what timeouts contribute to the slowest messages, those that take at least the 99th
// percentile of all. It returns nil if neither that percentile nor the maximum would be less by
// decisive or more without the waiting, or if no slow message waits for that share of its time. A
// timeout that several messages of a connection wait for counts once. It sorts o.TimedOut.
func tail(o *Outcome, all record.Quantiles) *record.Tail {
	if len(o.TimedOut) == 0 || all.P99 == 0 {
		return nil
	}
	slices.SortFunc(o.TimedOut, func(a, b transport.TimedOut) int {
		return cmp.Or(cmp.Compare(a.Conn, b.Conn), cmp.Compare(a.At, b.At))
	})
	var t record.Tail
	counted := make([]bool, len(o.TimedOut))
	without := make([]units.Time, 0, len(o.Flows)) // completion times without the waiting
	for i := range o.Flows {
		f := &o.Flows[i]
		if f.Acked == 0 {
			continue
		}
		first, end := during(o.TimedOut, f)
		took, waited := f.Acked-f.Start, waitedFor(o.TimedOut[first:end], f.Start)
		without = append(without, took-waited)
		if took.Microseconds() < all.P99 || float64(waited) < decisive*float64(took) {
			continue
		}
		t.Messages++
		for k := first; k < end; k++ {
			if !counted[k] {
				counted[k] = true
				t.Timeouts++
			}
		}
		t.WaitedUS = max(t.WaitedUS, waited.Microseconds())
	}
	left := stats.Describe(without, float64(units.Microsecond))
	switch {
	case t.Messages == 0:
		return nil
	case left.P99 <= (1-decisive)*all.P99:
		t.Decide = record.DecideP99
	case left.Max <= (1-decisive)*all.Max:
		t.Decide = record.DecideMax
	default:
		return nil
	}
	return &t
}

// during returns the range of the timeouts of a flow's connection while it was under way. The
// timeouts are sorted by connection and time.
func during(all []transport.TimedOut, f *host.Flow) (first, end int) {
	at := func(when units.Time) int {
		n, _ := slices.BinarySearchFunc(all, when, func(a transport.TimedOut, when units.Time) int {
			return cmp.Or(cmp.Compare(a.Conn, f.Conn), cmp.Compare(a.At, when))
		})
		return n
	}
	return at(f.Start), at(f.Acked + 1)
}

// waitedFor returns how long a message that starts at an instant waits for the timeouts of its
// connection, in order. Packets may wait at the same time: that time counts once.
func waitedFor(timeouts []transport.TimedOut, start units.Time) (waited units.Time) {
	from := units.Time(math.MaxInt64) // of the waiting that has been counted
	for _, t := range slices.Backward(timeouts) {
		if begin := max(t.At-t.Waited, start); begin < from {
			waited += min(t.At, from) - begin
			from = begin
		}
	}
	return waited
}

// decided returns the warning that timeouts decide the tail of a run, and names the key of their
// minimum.
func decided(x *experiment.Experiment, s *record.Summary) string {
	number, value := "p99", s.Flows.FCT.P99
	if s.Tail.Decide == record.DecideMax {
		number, value = "maximum", s.Flows.FCT.Max
	}
	short := func(us float64) units.Time { return experiment.Short(units.Time(us * float64(units.Microsecond))) }
	setting, _ := x.Lab.Scope().Setting(x.RTOKey)
	return fmt.Sprintf("%s %s the %s flow completion time, %s: a message waits for up to %s; the minimum "+
		"timeout is %s (%s, %s: %s)",
		plural.Count(s.Tail.Timeouts, "timeout"), verb(s.Tail.Timeouts, "decides", "decide"), number, short(value),
		short(s.Tail.WaitedUS), experiment.Short(x.RTOMin), s.Transport, x.RTOKey, setting)
}

// verb returns the form of a verb for n things.
func verb(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
