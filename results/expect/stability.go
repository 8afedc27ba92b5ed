package expect

import (
	"errors"
	"fmt"

	"weft/results/record"
)

var (
	errNoStability = errors.New("the stability of clocks was not measured (clocks.sync, clocks.sample), " +
		"or the protocol of the reference or of all other hosts was down")
	errFewAveraging = errors.New("the run is too short for this averaging time")
)

// stabilityFields lists the fields of clock_stability.N: the deviations of the worst host from the
// reference at the averaging time of 10^N clock samples.
func stabilityFields() []string { return []string{"adev", "mdev", "mtie", "tau", "tdev"} }

// stabilityEntry returns the entry of a name such as clock_stability.1.mtie.
func stabilityEntry(name string) (entry, bool) {
	i, field, ok := parseIndexed("clock_stability.", name, stabilityFields())
	t, get := stabilityField(field)
	return entry{name, t, func(s *record.Summary) (float64, error) {
		switch k := s.Clocks.Stability; {
		case k == nil:
			return 0, errNoStability
		case i >= len(k.At):
			return 0, errFewAveraging
		default:
			return get(&k.At[i]), nil
		}
	}}, ok
}

// stabilityPath returns the path in summary.json of a name such as clock_stability.1.mtie; "" for
// others.
func stabilityPath(name string) string {
	i, field, ok := parseIndexed("clock_stability.", name, stabilityFields())
	if !ok {
		return ""
	}
	in := map[string]string{"adev": "adev", "mdev": "mdev", "mtie": "mtie_ns", "tau": "tau_us", "tdev": "tdev_ns"}
	return fmt.Sprintf("clocks.stability.at.%d.%s", i, in[field])
}

// stabilityField returns the type of a field, and how to get it.
func stabilityField(field string) (typ, func(*record.Averaged) float64) {
	switch field {
	case "adev":
		return plain, func(a *record.Averaged) float64 { return a.ADEV }
	case "mdev":
		return plain, func(a *record.Averaged) float64 { return a.MDEV }
	case "tau":
		return duration, func(a *record.Averaged) float64 { return a.TauUS }
	case "tdev":
		return duration, func(a *record.Averaged) float64 { return a.TDEV / 1e3 }
	default:
		return duration, func(a *record.Averaged) float64 { return a.MTIE / 1e3 }
	}
}

// stabilityTotals returns the names of stability that do not depend on an averaging time.
func stabilityTotals() []entry {
	of := part(func(s *record.Summary) *record.Stability { return s.Clocks.Stability }, errNoStability)
	return []entry{
		of("clock_stability.max", duration, func(k *record.Stability) float64 { return k.MaxTE / 1e3 }),
		of("clock_stability.mean", duration, func(k *record.Stability) float64 { return k.Constant / 1e3 }),
	}
}
