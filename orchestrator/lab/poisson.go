package lab

import (
	"math/rand/v2"

	"weft/internal/splitmix"
	"weft/params"
	"weft/units"
)

// maxArrivals is the maximum number of arrivals of one item. Ours: each is a collective of its own.
const maxArrivals = 20_000

// poisson is a Poisson process of arrivals.
type poisson struct {
	every units.Time // mean time between two arrivals
	span  units.Time // duration of the process
}

// Keys implements params.Section.
func (p *poisson) Keys() []params.Key {
	return []params.Key{
		params.New("every", params.Time(&p.every, units.Nanosecond, maxStart), "Mean interval."),
		params.New("for", params.Time(&p.span, units.Nanosecond, maxStart), "Duration, from start."),
	}
}

// checkPoisson rejects too many arrivals, and arrivals that contradict another key.
func (r *itemReader) checkPoisson(rules params.Rules) {
	p := r.poisson
	if p == nil {
		return
	}
	ok := p.every > 0 && p.span > 0
	refuse := func(key, format string, args ...any) {
		rules.Refuse(key, format, args...)
		ok = false
	}
	if ok && p.span/p.every >= maxArrivals {
		refuse("poisson.for", "about %d arrivals, one every %v; expected fewer than %d", p.span/p.every, p.every,
			maxArrivals)
	}
	if r.Previous {
		refuse("poisson", "given together with start: previous; expected the time at which arrivals begin")
	}
	if r.Repeat > 1 {
		refuse("poisson", "given together with repeat, %d; expected one of them", r.Repeat)
	}
	if r.Ranks.Groups > 0 {
		refuse("poisson", "given together with groups of ranks; expected one of them")
	}
	if !ok {
		r.poisson = nil
	}
}

// arrivals returns an item for each arrival, at least one. The times between them follow from the
// seed and the item's index.
func (p *poisson) arrivals(it Item, seed uint64) []Item {
	r := rand.New(rand.NewPCG(seed, splitmix.Gamma*uint64(it.Index+1)))
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
