package summary

import (
	"weft/host"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// Rates are samples of what connections carry.
type Rates struct {
	Every units.Time
	Rtt   units.Time // of the idle network
	Conns int        // of the experiment
	Rows  []record.Rate
}

// Summary sums up the samples of the time from a given instant on in which every connection was open, by the flows of
// the run; nil when there is no such time.
func (r *Rates) Summary(from units.Time, flows []host.Flow) *record.Rates {
	begin, end := window(from, flows)
	begin = (begin + r.Every - 1) / r.Every * r.Every
	end = min(end, r.lastTick()) / r.Every * r.Every
	if begin >= end {
		return nil
	}
	carried := make([]units.Bytes, r.Conns)
	for _, row := range r.Rows {
		if row.At > begin && row.At <= end {
			carried[row.Conn] += row.Bytes
		}
	}
	out := &record.Rates{FromUS: begin.Microseconds(), UntilUS: end.Microseconds(), Conns: len(carried)}
	var sum, squares float64
	for i, n := range carried {
		rate := float64(units.Rate(n, end-begin)) / float64(units.Gbps)
		sum += rate
		squares += float64(rate * rate)
		if i == 0 || rate < out.MinGbps {
			out.MinGbps = rate
		}
		out.MaxGbps = max(out.MaxGbps, rate)
	}
	out.TotalGbps, out.MeanGbps = sum, sum/float64(len(carried))
	if squares > 0 {
		out.Jain = float64(sum*sum) / (float64(len(carried)) * squares)
	}
	return out
}

// lastTick is the last instant at which something was seen to have arrived.
func (r *Rates) lastTick() units.Time {
	if len(r.Rows) == 0 {
		return 0
	}
	return r.Rows[len(r.Rows)-1].At
}

// window is the time in which every connection was open: from its first message's start to its last one's end.
func window(from units.Time, flows []host.Flow) (begin, end units.Time) {
	starts, ends := lives(flows)
	begin, end = from, units.Never
	for c, s := range starts {
		begin, end = max(begin, s), min(end, ends[c])
	}
	return begin, end
}

// lives are when connections had their first message and were done with their last.
func lives(flows []host.Flow) (open, over map[transport.ConnID]units.Time) {
	open, over = map[transport.ConnID]units.Time{}, map[transport.ConnID]units.Time{}
	for _, f := range flows {
		if s, ok := open[f.Conn]; !ok || f.Start < s {
			open[f.Conn] = f.Start
		}
		acked := f.Acked
		if acked == 0 {
			acked = units.Never
		}
		over[f.Conn] = max(over[f.Conn], acked)
	}
	return open, over
}
