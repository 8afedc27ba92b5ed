package summary

import (
	"testing"

	"weft/host"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

func TestRanges(t *testing.T) {
	var r ranges
	for _, n := range []int{0, 2, 3, 4, 9} {
		r.add(n)
	}
	if got := r.String(); got != "0,2-4,9" {
		t.Errorf("%q", got)
	}
}

// The time of a collective is the mean over its repetitions, which may overlap; the longest is
// known where each of them was finished, whatever makes the repetitions: a number, groups, or the
// steps of a trace.
func TestLongestRepetition(t *testing.T) {
	type span [2]units.Time // of a repetition, in microseconds
	item := func(repeat int, spans ...span) record.Collective {
		it := &host.Item{Collective: "all-to-all", Ranks: make([]transport.HostID, 2), Repeat: repeat, Size: 1000}
		var dones []host.Done
		for i, s := range spans {
			for rank := range 2 { // the second starts last, the first ends first
				start, end := s[0]*units.Microsecond, s[1]*units.Microsecond
				dones = append(dones, host.Done{Rank: rank, Repeat: i, Start: start + units.Time(rank), End: end - 1 + units.Time(rank)})
			}
		}
		c := collectiveOf(it, dones, nil)
		c.FastestUS = c.TimeUS
		return c
	}
	sum := func(steps ...[]record.Collective) record.Collective {
		var r row
		for step, groups := range steps {
			for i := range groups {
				r.add(step, &groups[i])
			}
		}
		return r.sum()
	}
	type groups = []record.Collective
	for name, c := range map[string]struct {
		got           record.Collective
		mean, longest float64
	}{
		"one":                {sum(groups{item(1, span{0, 9})}), 9, 9},
		"three that overlap": {sum(groups{item(3, span{0, 4}, span{2, 10}, span{5, 11})}), 6, 8},
		"one is missing":     {sum(groups{item(3, span{0, 4}, span{2, 10})}), 6, 0},
		"two groups": {
			sum(groups{item(2, span{0, 4}, span{4, 8}), item(2, span{0, 1}, span{1, 7})}), 4, 6,
		},
		"a group lacks one": {sum(groups{item(2, span{0, 4}, span{4, 8}), item(2, span{0, 9})}), 9, 0},
		"a group lacks all": {sum(groups{item(2), item(2, span{0, 4}, span{4, 8})}), 0, 0},
		"steps":             {sum(groups{item(1, span{0, 4})}, groups{item(1, span{4, 14})}), 7, 10},
		"a step is missing": {sum(groups{item(1, span{0, 4})}, groups{item(1)}), 4, 0},
	} {
		if c.got.TimeUS != c.mean || c.got.Longest() != c.longest {
			t.Errorf("%s: mean %v us, longest %v us; want %v and %v", name, c.got.TimeUS, c.got.Longest(), c.mean, c.longest)
		}
	}
}
