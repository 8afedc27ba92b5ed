package buffer

import (
	"math"

	"weft/collectives/schedule"
	"weft/internal/splitmix"
)

// drawn are the tables behind Values. table[i] is the input of slot i; results[i] is the reduction
// of the n slots from i on, cyclically, for n ranks.
type drawn struct {
	kind           schedule.Type
	table, results [slots]uint32
}

// draw fills the tables for a collective, so that reductions are the same in any order:
//
//	sum   float32   integers from 1 to 4095: sums over up to 4096 ranks are below 2^24
//	      bfloat16  positive integers, so small that sums are at most 256: for at most 256 ranks
//	      int32     any number but 0, modulo 2^32
//	prod  floats    −2^e, with e mostly 0, so that partial products neither overflow nor underflow
//	      int32     any odd number but 1, modulo 2^32
//	max   all       any number
//	min   all       any number
//	none  bfloat16  any number
//
// A missing or duplicate contribution to a sum or product always shows: no value is neutral, and an
// odd number of missing or additional factors changes at least the sign of a product. A missing
// contribution to a maximum shows in the elements where it is the largest, one in n; a duplicate
// one never does.
func (d *drawn) draw(key uint64, s *schedule.Spec, reduces bool) {
	next := func() uint64 { return splitmix.Step(&key) }
	n := s.Ranks
	switch {
	case sums(s) && s.Type == schedule.Int32:
		for i := range d.table {
			d.table[i] = uint32(1 + next()%math.MaxUint32)
		}
		d.slide(n, 0, func(sum, in, out uint32) uint32 { return sum + in - out })
	case sums(s) && s.Type != schedule.BFloat16:
		d.drawSums(key, n)
	case sums(s) && reduces:
		d.drawSmallSums(next, n)
	case s.Op == schedule.Prod && s.Type == schedule.Int32:
		for i := range d.table {
			d.table[i] = 3 + 2*uint32(next()%(1<<31-1))
		}
		d.slide(n, 1, func(product, in, out uint32) uint32 { return product * in * inverse(out) })
	case s.Op == schedule.Prod:
		d.drawProducts(next, n, s.Type)
	default:
		for i := range d.table {
			d.table[i] = anything(s.Type, next())
		}
		d.extremes(n, s.Op == schedule.Min)
	}
}

// maxSumBFloat16 is the largest number of ranks for exact sums of positive integers in bfloat16,
// which has 8 significant bits.
const maxSumBFloat16 = 256

// slide computes the results with a sliding window: step adds one value to a reduction and removes
// another.
func (d *drawn) slide(n int, neutral uint32, step func(r, in, out uint32) uint32) {
	r := neutral
	for i := range n {
		r = step(r, d.table[i], neutral)
	}
	for i := range d.results {
		d.results[i] = r
		r = step(r, d.table[(i+n)%slots], d.table[i])
	}
}

// sparse returns how to choose numbers whose sum over any n neighbours is at most budget: every
// every-th number is from 0 to most, all others are 0.
func sparse(n, budget int) (every, most int) {
	for every = 1; every <= slots; every++ {
		if most = budget / (n/every + 2); most > 0 { // the table need not be a multiple of every
			break
		}
	}
	return every, most
}

// drawSums fills the tables for sums of float32. Most runs need it, for each repetition of an item,
// so it avoids the indirection of slide.
func (d *drawn) drawSums(key uint64, n int) {
	for i := range d.table {
		d.table[i] = math.Float32bits(float32(1 + splitmix.Step(&key)%(slots-1)))
	}
	sum := float32(0)
	for i := range n {
		sum += math.Float32frombits(d.table[i])
	}
	for i := range d.results {
		d.results[i] = math.Float32bits(sum)
		sum += math.Float32frombits(d.table[(i+n)%slots]) - math.Float32frombits(d.table[i])
	}
}

// drawSmallSums fills the tables for sums of bfloat16.
func (d *drawn) drawSmallSums(next func() uint64, n int) {
	every, most := sparse(n, maxSumBFloat16-n)
	var x [slots]int
	for i := range x {
		x[i] = 1
		if i%every == 0 {
			x[i] += int(next() % uint64(most+1))
		}
		d.table[i] = toBFloat16(float32(x[i]))
	}
	sum := 0
	for i := range n {
		sum += x[i]
	}
	for i := range x {
		d.results[i] = toBFloat16(float32(sum))
		sum += x[(i+n)%slots] - x[i]
	}
}

// drawProducts fills the tables with negative powers of two, for products of floats.
func (d *drawn) drawProducts(next func() uint64, n int, kind schedule.Type) {
	const budget = 120 // normal exponents of both types go from −126 to 127
	every, most := sparse(n, budget)
	var e [slots]int
	for i := range e {
		if i%every == 0 {
			e[i] = int(next()%uint64(2*most+1)) - most
		}
		d.table[i] = code(kind, -math.Ldexp(1, e[i]))
	}
	sum, sign := 0, 1.0
	for i := range n {
		sum, sign = sum+e[i], -sign
	}
	for i := range e {
		d.results[i] = code(kind, math.Ldexp(sign, sum))
		sum += e[(i+n)%slots] - e[i]
	}
}

// anything returns a random number of a type that is neither 0 nor infinite.
func anything(kind schedule.Type, x uint64) uint32 {
	switch kind {
	case schedule.Int32:
		return uint32(1 + x%math.MaxUint32)
	case schedule.BFloat16:
		return toBFloat16(float32(int32(x>>32) | 1))
	}
	return math.Float32bits(float32(int32(x>>32) | 1))
}

// extremes sets the results to the largest value of each window, or the smallest.
func (d *drawn) extremes(n int, smallest bool) {
	sign := 1.0
	if smallest {
		sign = -1
	}
	rank := func(i int) float64 { return sign * number(d.kind, d.table[i%slots]) }
	var queue [2 * slots]int // positions in the window with no larger value after them, the largest first
	first, end := 0, 0
	for i := range slots + n - 1 {
		for end > first && rank(queue[end-1]) <= rank(i) {
			end--
		}
		queue[end] = i
		end++
		if begin := i - n + 1; begin >= 0 {
			if queue[first] < begin {
				first++
			}
			d.results[begin] = d.table[queue[first]%slots]
		}
	}
}

// inverse returns the inverse of an odd number modulo 2^32.
func inverse(x uint32) uint32 {
	y := x // correct in the last 3 bits; each Newton step doubles that
	for range 4 {
		y *= 2 - x*y
	}
	return y
}

// number returns the value of a stored element.
func number(kind schedule.Type, bits uint32) float64 {
	switch kind {
	case schedule.Int32:
		return float64(int32(bits))
	case schedule.BFloat16:
		return float64(fromBFloat16(bits))
	}
	return float64(math.Float32frombits(bits))
}

// code returns the stored element of a value, which the type can represent.
func code(kind schedule.Type, x float64) uint32 {
	if kind == schedule.BFloat16 {
		return toBFloat16(float32(x))
	}
	return math.Float32bits(float32(x))
}
