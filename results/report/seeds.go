package report

import (
	"fmt"
	"maps"
	"reflect"

	"weft/results/expect"
	"weft/results/record"
)

// SameForAllSeeds reports whether a sweep goes through seeds, and simulations that differ in
// nothing else have the same result.
func SameForAllSeeds(points []expect.Point) bool {
	first := map[string]*record.Summary{} // by the rest of the point
	compared := false
	for _, p := range points {
		s, rest := p.Summary, maps.Clone(p.At)
		if _, swept := rest["seed"]; !swept || s == nil || s.Engine != "sim" || s.Status != record.OK {
			return false
		}
		delete(rest, "seed")
		key := fmt.Sprint(rest) // in the order of its keys
		other := first[key]
		if other == nil {
			first[key] = s
			continue
		}
		if !reflect.DeepEqual(other.Flows, s.Flows) || !reflect.DeepEqual(other.Network, s.Network) ||
			!reflect.DeepEqual(other.Collectives, s.Collectives) {
			return false
		}
		compared = true
	}
	return compared
}
