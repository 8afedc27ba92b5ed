package failure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/orchestrator/experiment"
	"weft/units"
)

// Halted describes what happened to hosts up to an instant: "h3 was killed at 5 ms".
func Halted(x *experiment.Experiment, by units.Time) (all []string) {
	for i := range x.Plans {
		for _, k := range x.Plans[i].Halts {
			if k.At <= by && k.Until != units.Never {
				all = append(all, fmt.Sprintf("%s was paused from %s to %s", x.Plans[i].Name, k.At, k.Until))
			}
		}
	}
	return append(all, killed(x, by)...)
}

// killed names the hosts that were killed up to an instant.
func killed(x *experiment.Experiment, by units.Time) (all []string) {
	for i := range x.Plans {
		for _, k := range x.Plans[i].Halts {
			if k.At <= by && k.Until == units.Never {
				all = append(all, fmt.Sprintf("%s was killed at %s", x.Plans[i].Name, k.At))
			}
		}
	}
	return all
}

// Untold returns the sentences that the error of a run does not contain.
func Untold(sentences []string, err error) []string {
	var e *unfinishedError
	if !errors.As(err, &e) {
		return sentences
	}
	return slices.DeleteFunc(sentences, func(s string) bool { return slices.Contains(e.about, s) })
}

// blame adds the killed hosts to the error of a run, unless one of their flows already names them
// as the cause.
func blame(x *experiment.Experiment, err error, by units.Time) error {
	dead := killed(x, by)
	if len(dead) == 0 {
		return err
	}
	return &unfinishedError{error: err, about: dead, text: strings.Join(dead, ", ") + "\n" + firstFailure(x, err)}
}
