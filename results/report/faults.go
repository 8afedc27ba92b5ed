package report

import (
	"fmt"
	"math"
	"strings"

	"weft/results/plot"
	"weft/results/record"
	"weft/results/table"
	"weft/units"
)

// Limits of marks, texts and tables. Our choice: more cannot be distinguished.
const (
	maxLocations = 8   // in drawings and charts of a run
	maxListed    = 3   // faults of a location in its text
	maxRows      = 100 // faults in a table
)

// A FaultLocation is a link or a host with faults. Drawings and charts mark it with its number.
type FaultLocation struct {
	Number     int // from 1
	Link, Host string
	Faults     []record.Fault
	endUS      float64 // end of the run
}

// FaultLocations groups the faults of a run that ended at endUS by link or host, in the order of
// their first faults. more is the number of locations beyond maxLocations. Faults that the run did
// not reach have no location.
func FaultLocations(faults []record.Fault, endUS float64) (locations []FaultLocation, more int) {
	index := map[[2]string]int{}
	for _, f := range faults {
		if !f.Began(endUS) {
			continue
		}
		at := [2]string{f.Link, f.Host}
		i, ok := index[at]
		switch {
		case ok:
		case len(locations) == maxLocations:
			index[at], i = -1, -1
			more++
		default:
			i = len(locations)
			index[at] = i
			locations = append(locations, FaultLocation{Number: i + 1, Link: f.Link, Host: f.Host, endUS: endUS})
		}
		if i >= 0 {
			locations[i].Faults = append(locations[i].Faults, f)
		}
	}
	return locations, more
}

// Name returns the name of the link or host.
func (p *FaultLocation) Name() string { return p.Link + p.Host }

// String describes the faults of the location: "edge0-agg1: down from 50us to 1ms, routed around
// after 100us".
func (p *FaultLocation) String() string {
	var parts []string
	for i, f := range p.Faults {
		if i == maxListed {
			parts = append(parts, fmt.Sprintf("and %d more", len(p.Faults)-i))
			break
		}
		parts = append(parts, f.What+" "+table.When(f, p.endUS))
		if text := table.Routing(f, p.endUS); text != "" {
			parts = append(parts, text)
		}
	}
	return p.Name() + ": " + strings.Join(parts, ", ")
}

// span returns the faults of the location as ranges of a time axis.
func (p *FaultLocation) span() plot.Span {
	s := plot.Span{Label: fmt.Sprint(p.Number), Name: p.String()}
	for _, f := range p.Faults {
		until := f.UntilUS
		switch {
		case f.Once:
			until = f.FromUS
		case until == 0:
			until = math.Inf(1)
		}
		s.Ranges = append(s.Ranges, [2]float64{f.FromUS, until})
		if f.RerouteUS == 0 {
			continue
		}
		for _, at := range []float64{f.FromUS, until} {
			if at += f.RerouteUS; at <= p.endUS && !math.IsInf(at, 1) {
				s.Instants = append(s.Instants, at)
			}
		}
	}
	return s
}

// endUS returns the lab time at which the run ended, in microseconds; infinite if unknown, so that
// every fault may have happened.
func (r *Run) endUS() float64 {
	if r.Summary == nil {
		return math.Inf(1)
	}
	return r.Summary.End()
}

// maxNotes is the number of places of faults that a page names at its top. Our choice.
const maxNotes = 3

// faultNotes describes the faults that happened, for the top of the page: place, what, when, and
// how many packets were cut off.
func (r *Run) faultNotes() (notes []string) {
	locations, more := FaultLocations(r.Manifest.Faults, r.endUS())
	for i := range locations {
		p := &locations[i]
		if i == maxNotes {
			return append(notes, fmt.Sprintf("Faults of %d more links and hosts are in the table of faults.",
				len(locations)-i+more))
		}
		cut := int64(0)
		for _, f := range p.Faults {
			cut += f.Cut
		}
		text := "Fault " + p.String()
		if cut > 0 {
			text += "; " + units.Count(cut) + " packets cut off"
		}
		notes = append(notes, text)
	}
	return notes
}

// spans returns the faults of the run as ranges of a time axis.
func (r *Run) spans() (spans []plot.Span, caption string) {
	locations, more := FaultLocations(r.Manifest.Faults, r.endUS())
	var captions []string
	instants := 0
	for i := range locations {
		spans = append(spans, locations[i].span())
		instants += len(spans[i].Instants)
	}
	if instants > 0 {
		captions = append(captions, "Dotted lines: the instants at which all switches know that a link went down "+
			"or came up.")
	}
	if more > 0 {
		captions = append(captions, fmt.Sprintf("Faults of %d more links and hosts are not marked.", more))
	}
	return spans, strings.Join(captions, " ")
}

// faultTable lists the faults of a run that ended at endUS. more is the number of faults beyond its
// last row.
func faultTable(faults []record.Fault, endUS float64) (t table.Table, more int) {
	locations, _ := FaultLocations(faults, endUS)
	number := map[[2]string]string{}
	for _, p := range locations {
		number[[2]string{p.Link, p.Host}] = fmt.Sprint(p.Number)
	}
	t = table.Table{Head: []string{"mark", "setting", "link or host", "what", "when", "routing", "cut off"}}
	for i, f := range faults {
		if i == maxRows {
			return t, len(faults) - i
		}
		mark := ""
		if f.Began(endUS) {
			mark = number[[2]string{f.Link, f.Host}]
		}
		t.Texts(mark, f.Path, f.Link+f.Host, f.What, table.When(f, endUS), table.Routing(f, endUS), table.Cut(f))
	}
	return t, 0
}
