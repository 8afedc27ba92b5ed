package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/host"
	"weft/units"
)

// addHalts gives hosts the faults that the lab has of them.
func (x *Experiment) addHalts() error {
	var errs []error
halts:
	for _, f := range x.Lab.Faults {
		if f.Host == "" {
			continue
		}
		id, ok := x.Graph.NodeNamed(f.Host)
		if !ok || int(id) >= x.Graph.Hosts {
			errs = append(errs, x.Lab.Errorf(faultPath(f.Index, "host"), "no host is named %q; `weft graph` draws them", f.Host))
			continue halts
		}
		k := host.Halt{At: f.At, Until: units.Never}
		if f.Pause {
			k.Until = f.At + f.For
		}
		p := &x.Plans[id]
		for _, other := range p.Halts {
			if other.At < k.Until && k.At < other.Until {
				errs = append(errs, x.Lab.Errorf(faultPath(f.Index, "at"), "overlaps with another fault of %s", f.Host))
				continue halts
			}
		}
		p.Halts = append(p.Halts, k)
		slices.SortFunc(p.Halts, func(a, b host.Halt) int { return cmp.Compare(a.At, b.At) })
	}
	return errors.Join(errs...)
}

// halted says what has become of hosts by an instant: "h3 was killed at 5 ms".
func (x *Experiment) halted(by units.Time) []string {
	var all []string
	for i := range x.Plans {
		for _, k := range x.Plans[i].Halts {
			switch {
			case k.At > by:
			case k.Until == units.Never:
				all = append(all, fmt.Sprintf("%s was killed at %s", x.Plans[i].Name, k.At))
			default:
				all = append(all, fmt.Sprintf("%s stood still from %s to %s", x.Plans[i].Name, k.At, k.Until))
			}
		}
	}
	return all
}

// untold are the sentences that the error of a run does not have.
func untold(sentences []string, err error) []string {
	var e *unfinishedError
	if !errors.As(err, &e) {
		return sentences
	}
	return slices.DeleteFunc(sentences, func(s string) bool { return slices.Contains(e.about, s) })
}

// blame adds to the error of a run the hosts that were killed in it, where no flow of theirs tells that they are why.
func (x *Experiment) blame(err error, by units.Time) error {
	var killed []string
	for _, what := range x.halted(by) {
		if strings.Contains(what, "killed") {
			killed = append(killed, what)
		}
	}
	if len(killed) == 0 {
		return err
	}
	return &unfinishedError{error: err, about: killed, text: strings.Join(killed, ", ") + "\n" + x.firstFailure(err)}
}
