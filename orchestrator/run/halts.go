package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/host"
	"weft/units"
)

// addHalts gives hosts the faults that the lab has of them.
func (x *Experiment) addHalts() error {
	for i, f := range x.Lab.Faults {
		if f.Host == "" {
			continue
		}
		id, ok := x.Graph.NodeNamed(f.Host)
		if !ok || int(id) >= x.Graph.Hosts {
			return x.Lab.Errorf(faultPath(i, "host"), "no host is named %q; `weft graph` draws them", f.Host)
		}
		k := host.Halt{At: f.At, Until: units.Never}
		if f.Pause {
			k.Until = f.At + f.For
		}
		p := &x.Plans[id]
		for _, other := range p.Halts {
			if other.At < k.Until && k.At < other.Until {
				return x.Lab.Errorf(faultPath(i, "at"), "overlaps with another fault of %s", f.Host)
			}
		}
		p.Halts = append(p.Halts, k)
		slices.SortFunc(p.Halts, func(a, b host.Halt) int { return cmp.Compare(a.At, b.At) })
	}
	return nil
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

// blame adds to the error of a run the hosts that were killed in it, which may be why.
func (x *Experiment) blame(err error, by units.Time) error {
	var killed []string
	for _, what := range x.halted(by) {
		if strings.Contains(what, "killed") {
			killed = append(killed, what)
		}
	}
	if err == nil || len(killed) == 0 {
		return err
	}
	return fmt.Errorf("%s, as the lab says: %w", strings.Join(killed, ", "), err)
}
