package lab

import "weft/results/expect"

// Scope returns what the lab's expectations may refer to besides the summary: its settings and the
// number of its rows.
func (l *Lab) Scope() expect.Scope {
	settings := make(map[string]string, len(l.Sources))
	for _, s := range l.Sources {
		settings[s.Path] = s.Value
	}
	return expect.Scope{
		Setting: func(path string) (string, bool) { v, ok := settings[path]; return v, ok },
		Items:   l.Rows(), Metrics: l.metrics(),
	}
}

// metrics returns the names of the metrics of programs.
func (l *Lab) metrics() (names []string) {
	for i := range l.Programs {
		if m := l.Programs[i].Metrics; m != nil {
			names = append(names, m.SubexpNames()...)
		}
	}
	return names
}

// RunOnly names the sections of the lab that only a run has a use for: a lab that stays up, to be
// used by hand, leaves them out.
func (l *Lab) RunOnly() (sections []string) {
	for _, s := range []struct {
		name string
		has  bool
	}{
		{"background", l.Background.Load > 0}, {"workload", len(l.Workload)+len(l.Programs) > 0},
		{"faults", len(l.Faults) > 0}, {"expect", len(l.Expect)+len(l.Unmet) > 0}, {"sweep", len(l.Point) > 0},
	} {
		if s.has {
			sections = append(sections, s.name)
		}
	}
	return sections
}
