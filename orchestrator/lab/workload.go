package lab

import (
	"weft/collectives/schedule"
	"weft/params"
	"weft/units"
)

// Bounds of the workload section.
const (
	maxItems    = 1000
	maxRepeat   = 100_000
	maxFlows    = 10_000
	maxSize     = 1000 * units.GB
	maxStart    = 1000 * units.Second
	maxMessages = 1 << 26 // of one repetition of one collective, over all ranks: an all-to-all of 8192

	// maxRankMessages is maxMessages for one rank, whose program is made at once: in a second.
	maxRankMessages = 1 << 21
)

// workload reads the workload section.
type workload struct {
	d     *decoder // nil: the keys are only listed
	hosts hosts
	at    []int // position of each item in the file; holes count
	items []itemReader
}

// key declares the section.
func (w *workload) key() params.Key {
	return params.List("workload", &params.Items{
		Most: maxItems, Make: func(n int) { w.items = make([]itemReader, n) }, Len: func() int { return len(w.items) },
		Item: func(i int) params.Key {
			w.items[i] = itemReader{d: w.d, hosts: w.hosts}
			if w.at != nil {
				w.items[i].Index = w.at[i]
			}
			return params.Each(&w.items[i])
		},
	}, "Collectives, jobs and programs, concurrent unless start says otherwise.")
}

// all returns the items: one for each collective of a trace, each arrival and each group of ranks.
func (w *workload) all() (items []Item) {
	rows := 0
	for i := range w.items {
		r := &w.items[i]
		it := r.Item
		it.Row = rows
		switch {
		case r.programmed:
		case r.traced || r.flowing:
			for k := range r.lines {
				r.lines[k].Row += rows
			}
			items = append(items, r.lines...)
		case r.poisson != nil:
			items = append(items, r.poisson.arrivals(it, w.d.seed)...)
		default:
			for it.Ranks.Group = range max(1, it.Ranks.Groups) {
				items = append(items, it)
			}
		}
		rows = rowsOf(items)
	}
	return items
}

// programs returns the programs.
func (w *workload) programs() (all []Program) {
	for i := range w.items {
		if w.items[i].programmed {
			all = append(all, w.items[i].program.Program)
		}
	}
	return all
}

// rowsOf returns the number of rows of a workload's summary.
func rowsOf(items []Item) int {
	rows := 0
	for i := range items {
		rows = max(rows, items[i].Row+1)
	}
	return rows
}

// RootApart reports whether the root is a host besides the ranks, which send to it.
func (it *Item) RootApart() bool {
	return schedule.Of(it.Collective).RootApart
}
