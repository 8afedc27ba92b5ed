package sweep

import (
	"fmt"
	"slices"
	"strings"
)

// A Print is the fingerprint of a run directory: the hash of each file that must be the same in any
// copy, by name. What depends on the machine or the time is no part of it.
type Print map[string]string

// Verdict decides about a copy of a run whose place is taken.
type Verdict int

// Verdicts about copies.
const (
	Same   Verdict = iota // it proves that two machines agree, and is dropped
	Later                 // it was measured, so it differs and the first one counts
	Differ                // two machines disagree
)

// Compare returns what becomes of a second copy, and how it differs from the first. kind is the
// engine of both: an emulation is a measurement, a simulation is a function of the lab.
func Compare(kind string, first, second Print) (Verdict, string) {
	if kind != "sim" {
		return Later, ""
	}
	var bad []string
	for name, sum := range first {
		if second[name] != sum {
			bad = append(bad, name)
		}
	}
	for name := range second {
		if _, ok := first[name]; !ok {
			bad = append(bad, name)
		}
	}
	if len(bad) == 0 {
		return Same, ""
	}
	slices.Sort(bad)
	return Differ, fmt.Sprintf("two machines got different %s", strings.Join(bad, ", "))
}
