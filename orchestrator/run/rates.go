package run

import (
	"weft/host"
	"weft/results/record"
	"weft/results/store"
	"weft/transport"
	"weft/units"
)

// rates samples what connections carry.
type rates struct {
	every units.Time
	rtt   units.Time // of the idle network
	hosts []*host.Host
	dir   *store.Run
	last  []units.Bytes // by connection: what had arrived at the last sample
	rows  []record.Rate
}

func newRates(x *Experiment, hosts []*host.Host, dir *store.Run) *rates {
	return &rates{every: x.Lab.Measure.Rates, rtt: x.BaseRTT, hosts: hosts, dir: dir, last: make([]units.Bytes, len(x.Conns))}
}

// tick takes a sample.
func (r *rates) tick(now units.Time) error {
	var err error
	for _, h := range r.hosts {
		h.Arrived(func(c transport.ConnID, bytes units.Bytes) {
			n := bytes - r.last[c]
			if n == 0 || err != nil {
				return
			}
			r.last[c] = bytes
			row := record.Rate{At: now, Conn: uint32(c), Bytes: n, Rate: units.Rate(n, r.every)}
			r.rows = append(r.rows, row)
			err = r.dir.Rate(row)
		})
	}
	return err
}

// summary sums up the samples of the time from a given instant on in which every connection was open, by the flows of
// the run; nil when there is no such time.
func (r *rates) summary(from units.Time, flows []host.Flow) *record.Rates {
	begin, end := window(from, flows)
	begin = (begin + r.every - 1) / r.every * r.every
	end = min(end, r.lastTick()) / r.every * r.every
	if begin >= end {
		return nil
	}
	carried := make([]units.Bytes, len(r.last))
	for _, row := range r.rows {
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
func (r *rates) lastTick() units.Time {
	if len(r.rows) == 0 {
		return 0
	}
	return r.rows[len(r.rows)-1].At
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
