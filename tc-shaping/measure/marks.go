package measure

import (
	"fmt"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

// marking is an estimate, from samples, of where and how often a queue marks.
type marking struct {
	least   units.Bytes // the shortest queue that was marked; -1: none
	longest units.Bytes // the longest queue seen
	early   int         // packets marked below the first threshold
	missing int         // unmarked packets beyond the longest run that RED allows
	between share       // of the packets between the thresholds
}

// judge compares samples, in packet order, with the expected marking. The queue length of each
// sample is known to a packet, so it may be one packet longer or shorter than estimated.
func judge(samples []Sample, red *qdisc.RED, packet units.Bytes) marking {
	m := marking{least: -1, between: share{what: betweenProperty, points: markPoints}}
	unmarked := 0 // in a row
	for _, s := range samples {
		least, most := s.Queue-packet, s.Queue+packet
		m.longest = max(m.longest, s.Queue)
		if s.Marked && (m.least < 0 || s.Queue < m.least) {
			m.least = s.Queue
		}
		if s.Marked && most < red.Min {
			m.early++
		}
		if unmarked++; s.Marked || s.AfterLoss || least <= red.Min {
			unmarked = 0
		}
		if unmarked > red.Patience(least) {
			m.missing++
		}
		if least > red.Min && most <= red.Max {
			m.between.add(s.Marked, asked(red, least), asked(red, s.Queue), asked(red, most))
		}
	}
	return m
}

// asked returns the requested share of marks at a queue length between Min and Max.
func asked(red *qdisc.RED, queue units.Bytes) float64 {
	return red.Pmax * float64(queue-red.Min) / float64(red.Max-red.Min)
}

// marks checks where marks start, from where on every packet is marked, and how many are marked in
// between. The train was meant to build up a queue of fills bytes; if no packet found such a queue,
// the result is unknown and counts as a failure.
func (x *exam) marks(samples []Sample, fills units.Bytes) {
	red := x.d.RED
	m := judge(samples, red, x.packet())
	from := "none"
	if m.least >= 0 {
		from = fmt.Sprintf("from %v", m.least)
	}
	got := fmt.Sprintf("%s; %d too early, %d missing", from, m.early, m.missing)
	filled := m.longest >= fills
	if !filled {
		got += fmt.Sprintf("; no more than %v waited", m.longest)
	}
	x.add("marks", fmt.Sprintf("from %v, all from %v", red.Min, red.Max), got, m.early == 0 && m.missing == 0 && filled)
	if m.between.of == 0 {
		return
	}
	if low, high := m.between.bounds(); low > 0 || high < 1 { // otherwise the packets are too few
		x.addShare(m.between)
	}
}
