package expect

import (
	"errors"

	"weft/results/record"
)

var (
	errNoStability  = errors.New("the stability of clocks was not measured (clocks.sync, clocks.sample), or the protocol of the reference or of every other host was down")
	errFewAveraging = errors.New("what was measured is too short for so long an averaging time")
)

// stabilityFields are what a name can ask of clock_stability.N: of the N-th averaging time from 0, 10^N samples of the clocks, the
// worst host's deviation from the reference.
func stabilityFields() []string { return []string{"adev", "mdev", "mtie", "tau", "tdev"} }

// ofStability returns the entry of a name such as clock_stability.1.mtie.
func ofStability(name string) (entry, bool) {
	i, field, ok := numbered("clock_stability.", name, stabilityFields())
	if !ok {
		return entry{}, false
	}
	t, get := aboutStability(field)
	return entry{name, t, func(s *record.Summary) (value, error) {
		switch k := s.Clocks.Stability; {
		case k == nil:
			return value{typ: t}, errNoStability
		case i >= len(k.At):
			return value{typ: t}, errFewAveraging
		default:
			return value{typ: t, num: get(&k.At[i])}, nil
		}
	}}, true
}

func aboutStability(field string) (typ, func(*record.Averaged) float64) {
	switch field {
	case "adev":
		return plain, func(a *record.Averaged) float64 { return a.ADEV }
	case "mdev":
		return plain, func(a *record.Averaged) float64 { return a.MDEV }
	case "tau":
		return span, func(a *record.Averaged) float64 { return a.TauUS }
	case "tdev":
		return span, func(a *record.Averaged) float64 { return a.TDEV / 1e3 }
	default:
		return span, func(a *record.Averaged) float64 { return a.MTIE / 1e3 }
	}
}

// overall makes the names of what stability has beside its averaging times.
func overall() []entry {
	in := func(name string, get func(*record.Stability) float64) entry {
		return entry{name, span, func(s *record.Summary) (value, error) {
			if s.Clocks.Stability == nil {
				return value{typ: span}, errNoStability
			}
			return value{typ: span, num: get(s.Clocks.Stability) / 1e3}, nil
		}}
	}
	return []entry{
		in("clock_stability.max", func(k *record.Stability) float64 { return k.MaxTE }),
		in("clock_stability.mean", func(k *record.Stability) float64 { return k.Constant }),
	}
}
