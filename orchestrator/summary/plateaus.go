package summary

import (
	"cmp"
	"fmt"
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

// fewIntervals is the least number of whole sampling intervals of a plateau whose shares are known,
// and the number of those that are judged together: what arrives is whole packets. Ours.
const fewIntervals = 4

// Plateaus returns the times in which the set of open connections stays the same: from the start of
// a first message, or the end of a last one, to the next, if that is more than a base RTT later.
// There are none if connections come and go too often, or never at two different instants.
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
		until := min(at[i+1], r.lastTick())
		if len(conns) > 0 && until-from > r.Rtt {
			out = append(out, r.plateau(from, until, conns))
		}
	}
	return out
}

// plateau sums up what conns, which are sorted, received in the whole sampling intervals between
// two instants. Data of a connection stops arriving a round trip before its last acknowledgement,
// so the last base RTT is left out. The plateau is short if fewer than fewIntervals remain.
func (r *Rates) plateau(from, until units.Time, conns []transport.ConnID) record.Plateau {
	begin := (from + r.Every - 1) / r.Every * r.Every
	end := (until - r.Rtt) / r.Every * r.Every
	n := int((end - begin) / r.Every)
	if n < fewIntervals {
		return record.Plateau{FromUS: from.Microseconds(), UntilUS: until.Microseconds(), Conns: len(conns),
			Short: true}
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
	p := record.Plateau{
		FromUS: from.Microseconds(), UntilUS: end.Microseconds(), Conns: len(conns), Jain: stats.Jain(sums),
		TotalGbps: float64(units.Rate(total, end-begin)) / float64(units.Gbps),
	}
	if first, ok := settles(carried, total); ok {
		us := (begin + units.Time(first)*r.Every - from).Microseconds()
		p.SettledUS = &us
	}
	return p
}

// A plateau is settled once a few intervals together are fair and full. Our own choices.
const (
	fair = 0.99 // Jain's index: 45 to 55 for two connections, as PC4's fairness is judged
	full = 0.95 // of the plateau's mean throughput
)

// lackPlateaus says why numbers of plateaus have no value.
func lackPlateaus(all []record.Plateau, every units.Time, s *record.Summary) {
	for i := range all {
		at := fmt.Sprintf("plateaus.%d.", i)
		switch p := &all[i]; {
		case p.Short:
			s.Lack(fmt.Sprintf("the plateau, %.4g to %.4g us, has fewer than %d whole intervals of measure.rates "+
				"(%v) before its last base RTT", p.FromUS, p.UntilUS, fewIntervals, every), at+"jain", at+"total_gbps",
				at+"settled_us")
		case p.SettledUS == nil:
			s.Lack(fmt.Sprintf("the plateau, %.4g to %.4g us, did not settle: no %d intervals together have Jain's "+
				"index of %g and %g %% of its throughput", p.FromUS, p.UntilUS, fewIntervals, fair, 100*full),
				at+"settled_us")
		}
	}
}

// settles returns the first interval from which a few intervals together are fair and full; ok is
// false if there is none. carried has the bytes by connection and interval, total their sum.
func settles(carried [][]units.Bytes, total units.Bytes) (first int, ok bool) {
	n := len(carried[0])
	sums := make([]units.Bytes, len(carried))
	for i := range n {
		var all units.Bytes
		for c, intervals := range carried {
			sums[c] += intervals[i]
			if i >= fewIntervals {
				sums[c] -= intervals[i-fewIntervals]
			}
			all += sums[c]
		}
		// sums has the last few intervals.
		enough := full * fewIntervals * float64(total) / float64(n)
		if i >= fewIntervals-1 && stats.Jain(sums) >= fair && float64(all) >= enough {
			return i - (fewIntervals - 1), true
		}
	}
	return 0, false
}
