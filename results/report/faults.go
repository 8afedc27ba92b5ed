package report

import (
	"fmt"
	"math"
	"strings"

	"weft/results/plot"
	"weft/results/record"
	"weft/results/table"
)

// Bounds of what is marked. Ours: more cannot be told apart.
const (
	maxPlaces = 8 // of a network, in drawings and charts
	maxTold   = 3 // faults of a place, in words
)

// Place is a link or a host that a run had faults of. Drawings and charts mark it with its number.
type Place struct {
	Number     int // from 1
	Link, Host string
	Faults     []record.Fault
	endUS      float64
}

// Places puts the faults of a run that ended at an instant together by where they happened, in the order in which places are first
// named, and counts the places that are too many. Faults that the run did not reach have no place.
func Places(faults []record.Fault, endUS float64) (places []Place, more int) {
	index := map[[2]string]int{}
	for _, f := range faults {
		if !f.Began(endUS) {
			continue
		}
		at := [2]string{f.Link, f.Host}
		i, ok := index[at]
		switch {
		case ok:
		case len(places) == maxPlaces:
			index[at], i = -1, -1
			more++
		default:
			i = len(places)
			index[at] = i
			places = append(places, Place{Number: i + 1, Link: f.Link, Host: f.Host, endUS: endUS})
		}
		if i >= 0 {
			places[i].Faults = append(places[i].Faults, f)
		}
	}
	return places, more
}

// Name is what the place is called.
func (p *Place) Name() string { return p.Link + p.Host }

// String says what happened where and when: "edge0-agg1: down from 50us to 1ms, routed around after 100us".
func (p *Place) String() string {
	var parts []string
	for i, f := range p.Faults {
		if i == maxTold {
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

// span is the place's faults on a time axis.
func (p *Place) span() plot.Span {
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

// endUS is the instant of lab time at which the run ended; infinite where it is not known, so that every fault may have happened.
func (r *Run) endUS() float64 {
	if r.Summary == nil {
		return math.Inf(1)
	}
	return r.Summary.LabTimeUS
}

// spans are the faults of the run as stretches of a time axis.
func (r *Run) spans() (spans []plot.Span, caption string) {
	places, more := Places(r.Manifest.Faults, r.endUS())
	var captions []string
	instants := 0
	for i := range places {
		spans = append(spans, places[i].span())
		instants += len(spans[i].Instants)
	}
	if instants > 0 {
		captions = append(captions, "Dotted lines: all switches learn that a link went down or came up.")
	}
	if more > 0 {
		captions = append(captions, fmt.Sprintf("Faults of %d more places are not marked.", more))
	}
	return spans, strings.Join(captions, " ")
}

// faultTable lists the faults of a run that ended at an instant.
func faultTable(faults []record.Fault, endUS float64) (t Table, more int) {
	const most = 100
	places, _ := Places(faults, endUS)
	number := map[[2]string]string{}
	for _, p := range places {
		number[[2]string{p.Link, p.Host}] = fmt.Sprint(p.Number)
	}
	t = Table{Head: []string{"mark", "setting", "link or host", "what", "when", "routing", "cut off"}}
	for i, f := range faults {
		if i == most {
			return t, len(faults) - i
		}
		mark := ""
		if f.Began(endUS) {
			mark = number[[2]string{f.Link, f.Host}]
		}
		t.Rows = append(t.Rows, []string{mark, f.Path, f.Link + f.Host, f.What, table.When(f, endUS), table.Routing(f, endUS), table.Cut(f)})
	}
	return t, 0
}
