package lab

import (
	"math/rand/v2"

	"weft/units"
)

// maxArrivals is how often one item may arrive. Ours: each is a collective of its own.
const maxArrivals = 20_000

// poisson is a Poisson process of arrivals.
type poisson struct {
	every units.Time // mean time between two
	span  units.Time // how long it lasts
}

// poisson reads that an item arrives again and again; nil: it does not.
func (s *section) poisson(it *Item) *poisson {
	f := s.field("poisson")
	if f.n == nil {
		return nil
	}
	c := f.open()
	defer c.close()
	var p poisson
	span := c.field("for")
	p.every, _ = quantity(c.field("every"), units.ParseTime, units.Nanosecond, maxStart)
	p.span, _ = quantity(span, units.ParseTime, units.Nanosecond, maxStart)
	ok := p.every > 0 && p.span > 0
	refuse := func(f field, format string, args ...any) {
		f.problem(format, args...)
		ok = false
	}
	if ok && p.span/p.every >= maxArrivals {
		refuse(span, "about %d arrivals, one every %v; expected fewer than %d", p.span/p.every, p.every, maxArrivals)
	}
	if it.Previous {
		refuse(f, "given together with start: previous; expected a time at which the first may arrive")
	}
	if it.Repeat > 1 {
		refuse(f, "given together with repeat, %d; expected one of them", it.Repeat)
	}
	if it.Ranks.Groups > 0 {
		refuse(f, "given together with groups of ranks; expected one of them")
	}
	if !ok {
		return nil
	}
	return &p
}

// arrivals returns an item for each arrival, at least one: the times between them are drawn by the seed.
func (p *poisson) arrivals(it Item, seed uint64) []Item {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15*uint64(it.Index+1)))
	var all []Item
	at := units.Time(0)
	for {
		at += units.Time(r.ExpFloat64()*float64(p.every)) + 1 // no two at one instant
		if len(all) > 0 && (at > p.span || len(all) == maxArrivals) {
			break
		}
		next := it
		next.Start, next.Arrival = it.Start+min(at, p.span), len(all)
		all = append(all, next)
	}
	for i := range all {
		all[i].Arrivals = len(all)
	}
	return all
}
