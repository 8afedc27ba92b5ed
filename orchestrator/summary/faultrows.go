package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/record"
	"weft/units"
)

// FaultRows describes the lab's faults for readers of the run.
func FaultRows(x *experiment.Experiment) []record.Fault {
	var rows []record.Fault
	for i := range x.Faults.All {
		f := &x.Faults.All[i]
		row := record.Fault{Path: fmt.Sprintf("faults.%d", i), Host: f.Host, What: WhatHappens(f),
			FromUS: f.At.Microseconds()}
		switch {
		case f.Corrupt != "":
			row.Host, row.Once = f.Corrupt, true
		case f.Clock != nil:
			row.Host, row.Once = f.Clock.Host, !f.Clock.Down
		case f.Link != "":
			row.Link = f.Link
			if id, ok := x.Graph.LinkNamed(f.Link); ok {
				row.Link = x.Graph.Links[id].Name
			}
		}
		if f.For > 0 {
			row.UntilUS = (f.At + f.For).Microseconds()
		}
		row.RerouteUS = f.Reroute.Microseconds()
		rows = append(rows, row)
	}
	return rows
}

// CutRows returns rows, those of the lab's faults, with the number of packets that each fault cut
// off. cutBy holds them by port, for each time that its link was down. The faults of a link do not
// overlap, so its n-th time down is its n-th fault by time.
func CutRows(x *experiment.Experiment, rows []record.Fault, cutBy [][]int64) []record.Fault {
	rows = slices.Clone(rows)
	var downs []int
	for i := range rows {
		if rows[i].What == record.LinkDown && rows[i].Link != "" {
			downs = append(downs, i)
		}
	}
	slices.SortStableFunc(downs, func(a, b int) int { return cmp.Compare(x.Faults.All[a].At, x.Faults.All[b].At) })
	before := map[string]int{} // by link: the number of earlier times down
	for _, i := range downs {
		nth := before[rows[i].Link]
		before[rows[i].Link]++
		id, ok := x.Graph.LinkNamed(rows[i].Link)
		for port := 2 * int(id); ok && port < 2*int(id)+2 && port < len(cutBy); port++ {
			if nth < len(cutBy[port]) {
				rows[i].Cut += cutBy[port][nth]
			}
		}
	}
	return rows
}

// Happened returns the rows of the lab's faults with what became of them in a run; nil if o says
// nothing about it.
func Happened(x *experiment.Experiment, o *Outcome) []record.Fault {
	if o.CutBy == nil && len(o.Spared) == 0 {
		return nil
	}
	return CutRows(x, sparedRows(x, FaultRows(x), o), o.CutBy)
}

// sparedRows returns rows with Spared set for the corruptions that found no data: the last
// o.Spared of each host.
func sparedRows(x *experiment.Experiment, rows []record.Fault, o *Outcome) []record.Fault {
	rows = slices.Clone(rows)
	for host, n := range o.Spared {
		var of []int
		for i := range rows {
			if x.Faults.All[i].Corrupt != "" && rows[i].Host == host {
				of = append(of, i)
			}
		}
		slices.SortStableFunc(of, func(a, b int) int { return cmp.Compare(rows[a].FromUS, rows[b].FromUS) })
		for _, i := range of[max(0, len(of)-n):] {
			rows[i].Spared = true
		}
	}
	return rows
}

// Unreached returns a warning about the faults that were to begin after the end of a run, or "".
func Unreached(x *experiment.Experiment, end units.Time) string {
	var named []string
	more := 0
	for i := range x.Faults.All {
		f := &x.Faults.All[i]
		switch {
		case f.At <= end:
		case len(named) == MaxNamed:
			more++
		default:
			named = append(named, fmt.Sprintf("faults.%d (at %s)", f.Index, f.At))
		}
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	if n := len(named); n > 1 {
		named = []string{strings.Join(named[:n-1], ", ") + " and " + named[n-1]}
	}
	if len(named) == 0 {
		return ""
	}
	return named[0] + " never happened: the run ended before"
}

// MaxNamed is the maximum number of things that a sentence names one by one. Ours.
const MaxNamed = 6

// WhatHappens names a fault in a few words: "down", "killed", "loss 5%, delay 10us".
func WhatHappens(f *lab.Fault) string {
	switch {
	case f.Corrupt != "":
		return "a byte is corrupted"
	case f.Clock != nil:
		return clockFault(f.Clock)
	case f.Down:
		return record.LinkDown
	case f.Kill:
		return "killed"
	case f.Pause:
		return "paused"
	}
	var parts []string
	if f.Rate != nil {
		parts = append(parts, "rate "+f.Rate.String())
	}
	if f.Delay != nil {
		parts = append(parts, "delay "+f.Delay.String())
	}
	if f.Loss != nil {
		parts = append(parts, "loss "+units.FormatPercent(*f.Loss))
	}
	if f.BitErrors != nil {
		parts = append(parts, fmt.Sprintf("bit errors %g", *f.BitErrors))
	}
	what := strings.Join(parts, ", ")
	if f.Toward != "" {
		what += " towards " + f.Toward
	}
	return what
}

// clockFault names a fault of a clock.
func clockFault(c *lab.ClockFault) string {
	switch {
	case c.Down:
		return "synchronization off"
	case c.Lies:
		return "tells a time with an error of " + c.Lie.String()
	case c.Step != 0:
		return "clock steps by " + c.Step.String()
	}
	return fmt.Sprintf("clock skew changes by %g ppm", c.Skew*1e6)
}
