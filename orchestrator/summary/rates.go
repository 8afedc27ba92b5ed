package summary

import (
	"weft/host"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// Rates are samples of the throughput of connections.
type Rates struct {
	Every units.Time    // sampling interval
	Rtt   units.Time    // base RTT of the network
	Conns int           // connections of the experiment
	Rows  []record.Rate // samples, by time
}

// Summary sums up the samples of the time in which every connection was open, from the given
// instant on. flows are those of the run. It returns nil if there is no such time.
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

// lastTick returns the instant of the last sample.
func (r *Rates) lastTick() units.Time {
	if len(r.Rows) == 0 {
		return 0
	}
	return r.Rows[len(r.Rows)-1].At
}

// window returns the time in which every connection was open: from the start of its first message
// to the end of its last one.
func window(from units.Time, flows []host.Flow) (begin, end units.Time) {
	starts, ends := lives(flows)
	begin, end = from, units.Never
	for c, s := range starts {
		begin, end = max(begin, s), min(end, ends[c])
	}
	return begin, end
}

// lives returns when each connection started its first message and when its last one was
// acknowledged; units.Never if it was not.
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
