package summary

import (
	"fmt"
	"slices"

	"weft/host"
	"weft/internal/plural"
	"weft/orchestrator/experiment"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// decisive is the share of its time that a message must wait for timeouts before they count as
// decisive. Ours.
const decisive = 0.1

// tail returns what timeouts contribute to the slowest messages, those that take at least p99, the
// 99th percentile in microseconds. It returns nil if they are less than a tenth of the time of
// each. A timeout that several messages of a connection wait for counts once. It sorts o.TimedOut.
func tail(x *experiment.Experiment, o *Outcome, p99 float64) *record.Tail {
	if len(o.TimedOut) == 0 || p99 == 0 {
		return nil
	}
	slices.SortFunc(o.TimedOut, func(a, b transport.TimedOut) int {
		return cmpSeq(int64(a.Conn), int64(b.Conn), int64(a.At), int64(b.At))
	})
	var t record.Tail
	counted := make([]bool, len(o.TimedOut))
	for i := range o.Flows {
		f := &o.Flows[i]
		took := f.Acked - f.Start
		if f.Acked == 0 || took.Microseconds() < p99 {
			continue
		}
		first, _ := slices.BinarySearchFunc(o.TimedOut, f, func(a transport.TimedOut, f *host.Flow) int {
			return cmpSeq(int64(a.Conn), int64(f.Conn), int64(a.At), int64(f.Start))
		})
		end, waited := first, units.Time(0)
		for ; end < len(o.TimedOut) && o.TimedOut[end].Conn == f.Conn && o.TimedOut[end].At <= f.Acked; end++ {
			waited += min(o.TimedOut[end].Waited, o.TimedOut[end].At-f.Start)
		}
		if float64(waited) < decisive*float64(took) {
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
	if t.Messages == 0 {
		return nil
	}
	return &t
}

// decided returns the warning that timeouts decide the tail of a run, and names the key of their
// minimum.
func decided(x *experiment.Experiment, s *record.Summary) string {
	took := units.Time(s.Flows.FCT.P99 * float64(units.Microsecond))
	waited := units.Time(s.Tail.WaitedUS * float64(units.Microsecond))
	path := x.RTOKey
	value, _ := x.Lab.Scope().Setting(path)
	return fmt.Sprintf("%s %s the p99 flow completion time, %s: %s of a message's time are waiting; the minimum "+
		"timeout is %s (%s, %s: %s)",
		plural.Count(s.Tail.Timeouts, "timeout"), verb(s.Tail.Timeouts, "decides", "decide"), experiment.Short(took),
		experiment.Short(waited), experiment.Short(x.RTOMin), s.Transport, path, value)
}

// verb returns the form of a verb for n things.
func verb(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
