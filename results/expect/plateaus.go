package expect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/results/record"
)

var errFewPlateaus = errors.New("the run has fewer plateaus")

// plateauFields lists the fields of plateau.N, and of plateau.worst: the longest time to settle,
// the lowest fairness and the lowest throughput of all plateaus with several connections. A single
// connection shares with nobody. If one of them has no value, the worst has none.
func plateauFields() []string {
	return []string{"connections", "goodput", "jain", "settled"}
}

// plateauEntry returns the entry of a name such as plateau.3.jain or plateau.worst.jain.
func plateauEntry(name string) (entry, bool) {
	i, field, ok := parseIndexed("plateau.", name, plateauFields())
	if !ok {
		return worstPlateau(name)
	}
	t, get := plateauField(field)
	return entry{name, t, func(s *record.Summary) (float64, error) {
		switch {
		case len(s.Plateaus) == 0:
			return 0, errNoPlateau
		case i >= len(s.Plateaus):
			return 0, errFewPlateaus
		}
		return get(&s.Plateaus[i]), nil
	}}, true
}

// plateauPath returns the path in summary.json of a name such as plateau.3.jain; "" for others.
func plateauPath(name string) string {
	i, field, ok := parseIndexed("plateau.", name, plateauFields())
	if !ok {
		return ""
	}
	in := map[string]string{"connections": "connections", "goodput": "total_gbps", "jain": "jain",
		"settled": "settled_us"}
	return fmt.Sprintf("plateaus.%d.%s", i, in[field])
}

// worstPlateau returns the entry of a name such as plateau.worst.jain.
func worstPlateau(name string) (entry, bool) {
	field, ok := strings.CutPrefix(name, "plateau.worst.")
	if !ok || field == "connections" || !slices.Contains(plateauFields(), field) {
		return entry{}, false
	}
	worst := slices.Min[[]float64]
	if field == "settled" {
		worst = slices.Max[[]float64]
	}
	t, get := plateauField(field)
	return entry{name, t, func(s *record.Summary) (float64, error) {
		var all []float64
		for i := range s.Plateaus {
			p := &s.Plateaus[i]
			if p.Conns < 2 {
				continue
			}
			name := fmt.Sprintf("plateau.%d.%s", i, field)
			if why := s.Lacks(plateauPath(name)); why != "" {
				return 0, fmt.Errorf("not measured: %s of %d connections has no value: %s", name, p.Conns, why)
			}
			all = append(all, get(p))
		}
		if len(all) == 0 {
			return 0, errNoPlateau
		}
		return worst(all), nil
	}}, true
}

// plateauField returns the type of a field, and how to get it.
func plateauField(field string) (typ, func(*record.Plateau) float64) {
	switch field {
	case "connections":
		return plain, func(p *record.Plateau) float64 { return float64(p.Conns) }
	case "goodput":
		return rate, func(p *record.Plateau) float64 { return p.TotalGbps * gbps }
	case "jain":
		return plain, func(p *record.Plateau) float64 { return p.Jain }
	default:
		return duration, func(p *record.Plateau) float64 {
			if p.SettledUS == nil { // Summary.Lacks has the reason
				return math.NaN()
			}
			return *p.SettledUS
		}
	}
}
