// Package stalls records when a process of an emulated lab was behind, in lab time, and adds up
// what of a time such stalls cover.
//
// A process is behind from the instant at which something was due, a packet or a timer, until it
// has handled it. Its loop compares instants that it reads anyway: the instant at which a thing was
// due, and the present. A process that was stopped needs to notice nothing: what was due meanwhile
// is late, by the machine's clock.
//
//	log := stalls.Log{Least: floor}
//	log.Record(due, now)           // for each thing handled
//	all := stalls.Union(logs...)   // of all processes
//	all.Cover(start, end)          // how much of a flow's time somebody was behind
//
// Events cannot tell this: a process that stands still for a tenth of a run has one late event, or
// a few, among ten thousand (coordinated omission).
package stalls

import (
	"errors"
	"slices"
	"sort"

	"weft/units"
)

// Span is a span of lab time.
type Span struct{ From, To units.Time }

// Len returns its length.
func (s Span) Len() units.Time { return s.To - s.From }

// Log holds the stalls of a process in the order in which they ended. They do not overlap.
type Log struct {
	Least units.Time // length of the shortest stall that is recorded; 0: none is
	Spans []Span
	// More counts those that came when there were MaxSpans, and Rest is their length.
	More int64      `json:",omitempty"`
	Rest units.Time `json:",omitempty"`
}

// MaxSpans is the largest number of spans of a log. Ours: as many stalls are far more than any run
// has that is ok, and they take 40 KB.
const MaxSpans = 2048

// Record records that something due at an instant was handled at now, unless that is in time.
func (l *Log) Record(due, now units.Time) {
	if now-due > l.Least {
		l.add(due, now)
	}
}

// add adds a span, and joins it with those that it overlaps.
func (l *Log) add(from, to units.Time) {
	if l.Least == 0 || to <= 0 {
		return
	}
	from = max(from, 0)
	n := len(l.Spans)
	for ; n > 0 && from <= l.Spans[n-1].To; n-- {
		from, to = min(from, l.Spans[n-1].From), max(to, l.Spans[n-1].To)
	}
	if n == MaxSpans {
		l.More++
		l.Rest += to - from
		return
	}
	l.Spans = append(l.Spans[:n], Span{from, to})
}

// errOrder refuses a log that no process keeps.
var errOrder = errors.New("stalls that overlap, are before lab time 0, or are too many")

// Check returns an error if a log, which came from another process, is not one.
func (l *Log) Check() error {
	last := units.Time(-1)
	for _, s := range l.Spans {
		if s.From <= last || s.To < s.From || s.To >= units.Never {
			return errOrder
		}
		last = s.To
	}
	if len(l.Spans) > MaxSpans || l.More < 0 || l.Rest < 0 || l.Rest >= units.Never {
		return errOrder
	}
	return nil
}

// Set is a set of instants: spans in order that do not touch.
type Set struct {
	spans []Span
	upTo  []units.Time // length of all spans before each, and of all
}

// Union returns the instants of all spans, in any order.
func Union(spans ...Span) Set {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b Span) int { return int(min(1, max(-1, a.From-b.From))) })
	s := Set{upTo: []units.Time{0}}
	for _, p := range spans {
		if n := len(s.spans); n > 0 && p.From <= s.spans[n-1].To {
			s.spans[n-1].To = max(s.spans[n-1].To, p.To)
		} else {
			s.spans = append(s.spans, p)
		}
	}
	for _, p := range s.spans {
		s.upTo = append(s.upTo, s.upTo[len(s.upTo)-1]+p.Len())
	}
	return s
}

// Empty reports whether the set has no instant.
func (s *Set) Empty() bool { return s.before(units.Never) == 0 }

// Cover returns how much of the time between two instants is in the set.
func (s *Set) Cover(from, to units.Time) units.Time { return max(0, s.before(to)-s.before(from)) }

// before returns the length of what is before an instant.
func (s *Set) before(at units.Time) units.Time {
	n := sort.Search(len(s.spans), func(i int) bool { return s.spans[i].To > at })
	sum := s.upTo[n]
	if n < len(s.spans) && s.spans[n].From < at {
		sum += at - s.spans[n].From
	}
	return sum
}
