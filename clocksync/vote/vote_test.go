package vote

import (
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

func TestMost(t *testing.T) {
	good := []Claim{{-3, 5}, {-1, 6}, {0, 9}}
	for name, c := range map[string]struct {
		claims    []Claim
		low, high units.Time
		count     int
	}{
		"all agree":           {good, 0, 5, 3},
		"two of five lie":     {append([]Claim{{100, 110}, {-200, -190}}, good...), 0, 5, 3},
		"two lie the same":    {append([]Claim{{100, 110}, {101, 111}}, good...), 0, 5, 3},
		"three of five lie":   {append([]Claim{{100, 110}, {-200, -190}, {50, 60}}, good[:2]...), -1, 5, 2},
		"they touch":          {[]Claim{{0, 5}, {5, 9}}, 5, 5, 2},
		"one alone":           {[]Claim{{2, 3}}, 2, 3, 1},
		"the wrong way round": {[]Claim{{3, 2}}, 0, 0, 0},
		"nobody":              {nil, 0, 0, 0},
	} {
		if low, high, count := Most(c.claims); low != c.low || high != c.high || count != c.count {
			t.Errorf("%s: %d share [%d, %d]; want %d and [%d, %d]", name, count, low, high, c.count, c.low, c.high)
		}
	}
}

// However a minority lies, a truthful source claims a point of the part, and no point has more
// claims.
func TestMinorityCannotWin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "sources")
		liars := rapid.IntRange(0, (n-1)/2).Draw(t, "liars")
		number := rapid.Int64Range(-100, 100)
		width := rapid.Int64Range(0, 40)
		var claims []Claim
		for i := range n {
			c := Claim{Low: -units.Time(width.Draw(t, "below")), High: units.Time(width.Draw(t, "above"))}
			if i < liars {
				shift := units.Time(number.Draw(t, "lie"))
				c.Low, c.High = c.Low+shift, c.High+shift
			}
			claims = append(claims, c)
		}
		low, high, shared := Most(claims)
		if 2*shared <= n || low > high {
			t.Fatalf("no majority in %v", claims)
		}
		count := func(at units.Time) (k int) {
			for _, c := range claims {
				if c.Shares(at, at) {
					k++
				}
			}
			return k
		}
		most := 0
		for at := units.Time(-150); at <= 150; at++ {
			most = max(most, count(at))
		}
		if shared != most || count(low) != most || count(high) != most {
			t.Fatalf("%d and %d claim the ends of [%d, %d], %d some point of %v", count(low), count(high), low, high,
				most, claims)
		}
		honest := false
		for _, c := range claims[liars:] {
			honest = honest || c.Shares(low, high)
		}
		if !honest {
			t.Fatalf("[%d, %d] is what liars alone say: %v", low, high, claims)
		}
	})
}
