package expect

import (
	"errors"
	"slices"
	"strings"

	"weft/results/record"
)

var errFewPlateaus = errors.New("there are not so many plateaus")

// plateauFields are what a name can ask of plateau.N, the N-th from 0, and of plateau.worst: of all in which connections share, the
// longest time to settle, the least fairness, the least throughput. A connection that is alone has nobody to share with.
func plateauFields() []string {
	return []string{"connections", "goodput", "jain", "settled"}
}

// ofPlateau returns the entry of a name such as plateau.3.jain.
func ofPlateau(name string) (entry, bool) {
	i, field, ok := numbered("plateau.", name, plateauFields())
	if !ok {
		return worstPlateau(name)
	}
	t, get := aboutPlateau(field)
	return entry{name, t, func(s *record.Summary) (value, error) {
		switch {
		case len(s.Plateaus) == 0:
			return value{typ: t}, errNoPlateau
		case i >= len(s.Plateaus):
			return value{typ: t}, errFewPlateaus
		}
		return value{typ: t, num: get(&s.Plateaus[i])}, nil
	}}, true
}

// worstPlateau returns the entry of a name such as plateau.worst.jain.
func worstPlateau(name string) (entry, bool) {
	field, ok := strings.CutPrefix(name, "plateau.worst.")
	if !ok || field == "connections" || !slices.Contains(plateauFields(), field) {
		return entry{}, false
	}
	t, get := aboutPlateau(field)
	return entry{name, t, func(s *record.Summary) (value, error) {
		v, found := value{typ: t}, false
		for i := range s.Plateaus {
			p := &s.Plateaus[i]
			if worse := get(p) < v.num == (field != "settled"); p.Conns > 1 && (!found || worse) {
				v.num, found = get(p), true
			}
		}
		return v, when(!found, errNoPlateau)
	}}, true
}

func aboutPlateau(field string) (typ, func(*record.Plateau) float64) {
	switch field {
	case "connections":
		return plain, func(p *record.Plateau) float64 { return float64(p.Conns) }
	case "goodput":
		return rate, func(p *record.Plateau) float64 { return p.TotalGbps * gbps }
	case "jain":
		return plain, func(p *record.Plateau) float64 { return p.Jain }
	default:
		return span, func(p *record.Plateau) float64 { return p.SettledUS }
	}
}
