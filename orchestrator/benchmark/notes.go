package benchmark

import (
	"fmt"
	"slices"

	"weft/orchestrator/lab"
)

// Notes returns what distinguishes the network of a lab from those of other transports: what its
// own is made for (madeFor). Conditions that do not hold are warnings of its run.
func Notes(l *lab.Lab, madeFor []string) (notes []string) {
	const otherwise = "; tables without this line are of one that "
	reasons := map[string]string{
		losslessNetwork: "is meant for networks without loss" + otherwise + "may lose packets",
		trimmingNetwork: "learns of losses by the headers of trimmed packets" + otherwise + "drops them whole",
	}
	for _, s := range l.Sources {
		if set := s.Path + "=" + s.Value; slices.Contains(madeFor, set) {
			notes = append(notes, fmt.Sprintf("%s: %s, since %s %s", s.Path, s.Value, l.Transport.Kind, reasons[set]))
		}
	}
	return notes
}

// Skipped returns the expectations of a lab that a benchmark does not judge, with the reason.
func Skipped(l *lab.Lab) (skipped []string) {
	for i := range l.Unmet {
		skipped = append(skipped, l.Unmet[i].That()+"; "+l.Unmet[i].Why)
	}
	return skipped
}
