package measure

import (
	"fmt"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

// marking is what samples say of where and how often a queue marks.
type marking struct {
	least   units.Bytes // the shortest queue that was marked; -1: none was
	longest units.Bytes // that was seen
	early   int         // packets that were marked before marks may begin
	missing int         // packets that were not, though a mark was due: RED lets only so many pass in a row
	between share       // of the packets between the thresholds
}

// judge holds samples in the order of their packets against what a queue should mark. The queue of each is known to a packet, so each
// may be a packet longer or shorter than it is said to be.
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

// asked is the share of packets that should be marked which find so much waiting, from Min to Max.
func asked(red *qdisc.RED, queue units.Bytes) float64 {
	return red.Pmax * float64(queue-red.Min) / float64(red.Max-red.Min)
}

// marks examines where marks begin, from where on all packets have one, and how many have one between. The train was to fill
// the queue to a length; where no packet found so much nothing is known, which is not as asked.
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
	if low, high := m.between.bounds(); low > 0 || high < 1 { // else so few say nothing
		x.addShare(m.between)
	}
}
