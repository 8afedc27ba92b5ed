package vote

import (
	"cmp"
	"slices"

	"weft/units"
)

// Claim is the claim of a source that an instant lies in [Low, High]. If Low is above High, the
// source claims nothing.
type Claim struct{ Low, High units.Time }

// Most returns the part [low, high] that the largest number of claims share, and that number. Among
// equal parts it returns the earliest. count is 0 if there is no claim.
//
// If count is more than half of all sources, and at most half of all sources are false, a true one
// is among them. A majority of false sources that agree with each other cannot be told from true
// ones.
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
	slices.SortStableFunc(ends, func(a, b end) int { // intervals that touch share a point, so beginnings come first
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
			count, low, high = depth, e.at, ends[i+1].at // if another begins first, the next iteration replaces this
		}
	}
	return low, high, count
}

// Shares reports whether a claim has a point in [low, high].
func (c Claim) Shares(low, high units.Time) bool { return c.Low <= high && c.High >= low }
