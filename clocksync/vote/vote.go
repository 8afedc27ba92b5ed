package vote

import (
	"cmp"
	"slices"

	"weft/units"
)

// Claim is what a source says: that an instant lies in [Low, High].
type Claim struct{ Low, High units.Time }

// Most returns the part [low, high] that the most claims share, the earliest of those that are shared by as many, and how
// many they are: 0 when nobody says anything. A claim whose end lies before its beginning says nothing.
//
// If they are more than half of all sources, and no more than half of those are false, a true one is among them. False ones
// that agree with each other and are the majority cannot be told from true ones.
func Most(claims []Claim) (low, high units.Time, count int) {
	type end struct {
		at   units.Time
		open bool
	}
	ends := make([]end, 0, 2*len(claims))
	for _, c := range claims {
		if c.Low <= c.High {
			ends = append(ends, end{c.Low, true}, end{c.High, false})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { // intervals that touch share a point: beginnings come first
		if a.at == b.at && a.open != b.open {
			if a.open {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.at, b.at)
	})
	depth := 0
	for i, e := range ends {
		if !e.open {
			depth--
			continue
		}
		if depth++; depth > count {
			count, low, high = depth, e.at, ends[i+1].at // if that is a beginning, more share what comes after it
		}
	}
	return low, high, count
}

// Shares reports whether a claim has a point in [low, high].
func (c Claim) Shares(low, high units.Time) bool { return c.Low <= high && c.High >= low }
