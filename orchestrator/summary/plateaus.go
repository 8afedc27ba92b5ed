package summary

import (
	"cmp"
	"maps"
	"slices"

	"weft/host"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// mostPlateaus is of how many plateaus a summary tells. Ours: a run in which connections come and go more often has no plateaus.
const mostPlateaus = 64

// Plateaus are the times between two changes of which connections are open: from a first message's start, or a last one's end, to
// the next. There are none where connections come and go too often, or never two at different instants.
func (r *Rates) Plateaus(flows []host.Flow) []record.Plateau {
	open, over := lives(flows)
	changes := map[units.Time]bool{}
	for c, begin := range open {
		changes[begin], changes[over[c]] = true, true
	}
	at := slices.Sorted(maps.Keys(changes))
	if len(at) < 3 || len(at) > mostPlateaus+1 {
		return nil
	}
	var out []record.Plateau
	for i, from := range at[:len(at)-1] {
		var conns []transport.ConnID
		for c, begin := range open {
			if begin <= from && over[c] > from {
				conns = append(conns, c)
			}
		}
		slices.Sort(conns)
		if p, ok := r.plateau(from, at[i+1], conns); ok {
			out = append(out, p)
		}
	}
	return out
}

// plateau sums up the whole sampling intervals between two instants. A connection that ends has stopped arriving a round trip before
// its last acknowledgement, so that the last base RTT is left out. ok is false where fewer than four intervals remain.
func (r *Rates) plateau(from, until units.Time, conns []transport.ConnID) (p record.Plateau, ok bool) {
	begin := (from + r.Every - 1) / r.Every * r.Every
	end := (min(until, r.lastTick()) - r.Rtt) / r.Every * r.Every
	n := int((end - begin) / r.Every)
	if len(conns) == 0 || n < 4 {
		return p, false
	}
	carried := make([][]units.Bytes, len(conns)) // by connection and interval
	for i := range carried {
		carried[i] = make([]units.Bytes, n)
	}
	first, _ := slices.BinarySearchFunc(r.Rows, begin+1, func(row record.Rate, at units.Time) int { return cmp.Compare(row.At, at) })
	for _, row := range r.Rows[first:] {
		if row.At > end {
			break
		}
		if i, found := slices.BinarySearch(conns, transport.ConnID(row.Conn)); found {
			carried[i][(row.At-begin)/r.Every-1] += row.Bytes
		}
	}
	var total units.Bytes
	sums := make([]units.Bytes, len(conns))
	for i, intervals := range carried {
		for _, b := range intervals {
			sums[i] += b
		}
		total += sums[i]
	}
	return record.Plateau{
		FromUS: from.Microseconds(), UntilUS: end.Microseconds(), Conns: len(conns), Jain: stats.Jain(sums),
		TotalGbps: float64(units.Rate(total, end-begin)) / float64(units.Gbps),
		SettledUS: (begin + units.Time(settles(carried, total))*r.Every - from).Microseconds(),
	}, true
}

// settles is the first interval at which a few intervals together are fair and carry what the plateau does: four, since what arrives is
// whole packets; a Jain's index of 0.99, which is 45 to 55 of two connections, as PC4's fairness is judged; 95 % of the throughput.
// Where there is none it is the number of intervals. Ours.
func settles(carried [][]units.Bytes, total units.Bytes) int {
	const few, fair, full = 4, 0.99, 0.95
	n := len(carried[0])
	sums := make([]units.Bytes, len(carried))
	for i := range n {
		var all units.Bytes
		for c, intervals := range carried {
			sums[c] += intervals[i]
			if i >= few {
				sums[c] -= intervals[i-few]
			}
			all += sums[c]
		}
		if i >= few-1 && stats.Jain(sums) >= fair && float64(all) >= full*few*float64(total)/float64(n) {
			return i - (few - 1)
		}
	}
	return n
}
