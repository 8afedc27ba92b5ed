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

// maxPlateaus is the maximum number of plateaus of a run. Ours: if connections come and go more
// often, there are none.
const maxPlateaus = 64

// Plateaus returns the times in which the set of open connections stays the same: from the start of
// a first message, or the end of a last one, to the next. There are none if connections come and go
// too often, or never at two different instants.
func (r *Rates) Plateaus(flows []host.Flow) []record.Plateau {
	open, over := lives(flows)
	changes := map[units.Time]bool{}
	for c, begin := range open {
		changes[begin], changes[over[c]] = true, true
	}
	at := slices.Sorted(maps.Keys(changes))
	if len(at) < 3 || len(at) > maxPlateaus+1 {
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

// plateau sums up what conns, which are sorted, received in the whole sampling intervals between
// two instants. Data of a connection stops arriving a round trip before its last acknowledgement,
// so the last base RTT is left out. ok is false if fewer than four intervals remain.
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
	// A row has the end of its interval, so the first one ends after begin.
	first, _ := slices.BinarySearchFunc(r.Rows, begin+1,
		func(row record.Rate, at units.Time) int { return cmp.Compare(row.At, at) })
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

// settles returns the first interval from which a few intervals together are fair and full, or the
// number of intervals if there is none. carried has the bytes by connection and interval, total
// their sum. The numbers are our own choice: few is four, because what arrives is whole packets;
// fair is a Jain's index of 0.99, which is 45 to 55 for two connections, as PC4's fairness is
// judged; full is 95 % of the plateau's mean throughput.
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
		// sums has the last few intervals.
		if i >= few-1 && stats.Jain(sums) >= fair && float64(all) >= full*few*float64(total)/float64(n) {
			return i - (few - 1)
		}
	}
	return n
}
