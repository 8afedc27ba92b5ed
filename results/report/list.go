package report

import (
	"cmp"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weft/internal/clip"
	"weft/internal/natural"
	"weft/internal/plural"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
)

// Listed is a run in a list of runs, or a sweep whose expectations across points were judged: one
// element of `weft results ls --json`.
type Listed struct {
	Run       string         `json:"run"`              // directory
	Points    int            `json:"points,omitempty"` // of a sweep; 0: it is a run
	Lab       string         `json:"lab,omitempty"`
	Point     map[string]any `json:"point,omitempty"`
	Set       []string       `json:"set,omitempty"` // path=value, from the command line
	Engine    string         `json:"engine,omitempty"`
	Transport string         `json:"transport,omitempty"`
	Module    *record.Module `json:"module,omitempty"`
	Seed      uint64         `json:"seed"`
	Started   string         `json:"started,omitempty"`
	Status    string         `json:"status"`
	Outcome   string         `json:"outcome"` // see record.Outcome
	Missed    int            `json:"missed"`  // expectations missed
	Flows     int64          `json:"flows"`
	Done      int64          `json:"flows_done"`
	Slowdown  float64        `json:"slowdown_p99,omitempty"`
	BusBW     float64        `json:"busbw_gbps,omitempty"` // of the first collective
	Error     string         `json:"error,omitempty"`

	slowdown, busbw string
	grade           record.Grade
}

// Filter selects the runs of a list. The zero Filter selects all.
type Filter struct {
	Lab    string    // empty: every lab
	Since  time.Time // runs that started then or later
	Failed bool      // runs that are not ok, missed an expectation, or have an invalid fidelity
	Last   int       // the newest, at most this number; 0: all
}

// selects reports whether the filter has a run or a sweep in the list, as far as the others do not
// matter.
func (f *Filter) selects(l *Listed) bool {
	began, err := time.Parse(time.RFC3339, l.Started)
	return (err != nil || !began.Before(f.Since)) && (!f.Failed || l.grade == record.Bad)
}

// List returns runs below root in the order of the names of their labs, and for each lab the newest
// run last. The sweeps of a lab whose expectations across points were judged follow its runs: those
// are of no single run. If some directories cannot be read, it returns the others and the reason.
func List(root string, filter Filter) ([]Listed, error) {
	out := []Listed{}
	dirs, err := store.Runs(root, filter.Lab)
	for _, dir := range dirs {
		if l := describeRun(dir); filter.selects(&l) {
			out = append(out, l)
		}
	}
	for _, dir := range store.Sweeps(dirs) {
		if l := describeSweep(dir); l != nil && filter.selects(l) {
			out = append(out, *l)
		}
	}
	if n := filter.Last; n > 0 && n < len(out) {
		slices.SortFunc(out, func(x, y Listed) int {
			return cmp.Or(strings.Compare(x.Started, y.Started), natural.Compare(x.Run, y.Run))
		})
		out = out[len(out)-n:]
	}
	slices.SortFunc(out, func(x, y Listed) int {
		return cmp.Or(natural.Compare(filepath.Base(filepath.Dir(x.Run)), filepath.Base(filepath.Dir(y.Run))),
			natural.Compare(filepath.Base(x.Run), filepath.Base(y.Run)))
	})
	return out, err
}

// describeRun reads the list entry of a run.
func describeRun(dir string) Listed {
	l := Listed{Run: dir, slowdown: "–", busbw: "–"}
	is := func(o record.Outcome) { l.Status, l.Outcome, l.grade = o.Status, o.String(), o.Grade() }
	m, err := store.ReadManifest(dir)
	if err != nil {
		is(record.Outcome{Status: record.Damaged})
		l.Error = err.Error()
		return l
	}
	l.Lab, l.Point, l.Engine, l.Seed, l.Started, l.Error = m.Lab, m.Point, m.Engine, m.Seed, m.Started, m.Error
	l.Module, l.Transport = m.Module, record.Sender(m.Transport(), m.Carried)
	is(m.Outcome())
	l.Set = Given(m)
	s, err := store.ReadSummary(dir)
	switch {
	case errors.Is(err, store.ErrNoSummary) && m.Status != record.OK:
		return l // in progress, or ended without one: the manifest has the reason
	case err != nil:
		is(record.Outcome{Status: record.Damaged})
		l.Error = strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)) // the list names the run
		return l
	}
	is(s.Outcome())
	if damage := store.Damage(dir, m); damage != "" {
		l.Error = strings.TrimPrefix(l.Error+"; "+damage, "; ")
	}
	l.Transport, l.Missed = record.Sender(s.Transport, s.Carried), table.Missed(s)
	l.slowdown, l.busbw = table.KeyMetrics(s)
	l.Flows, l.Done, l.BusBW = s.Flows.Count, s.Flows.Count-s.Flows.Unfinished, table.BusBW(s)
	// Quantiles over the flows that happened to complete would mislead.
	if s.Complete() && s.Flows.Unfinished == 0 {
		l.Slowdown = s.Flows.Slowdown.P99
	}
	return l
}

// describeSweep reads the list entry of a sweep; nil: nothing was judged across its points.
func describeSweep(dir string) *Listed {
	l := &Listed{Run: dir, slowdown: "–", busbw: "–"}
	s, err := store.ReadSweep(dir)
	if err != nil {
		o := record.Outcome{Status: record.Damaged}
		l.Status, l.Outcome, l.grade, l.Error = o.Status, o.String(), o.Grade(), err.Error()
		return l
	}
	judged := s.Across()
	if judged == nil {
		return nil
	}
	o := judged.Outcome()
	l.Lab, l.Engine, l.Started, l.Points = s.Lab, s.Engine, s.Started, len(s.Points)
	l.Status, l.Outcome, l.grade, l.Missed = o.Status, o.String(), o.Grade(), o.Missed
	for i := range s.Expect {
		if e := &s.Expect[i]; e.Missed() {
			l.Error = strings.TrimPrefix(l.Error+"; missed "+e.That, "; ")
		}
	}
	return l
}

// maxText is the number of characters of settings and of an error that a list shows, on any output.
const maxText = 80

// WriteList writes a list of runs as a table.
func WriteList(w io.Writer, all []Listed, st table.Style) error {
	of := func(name string, drop int, get func(l *Listed) string) table.Column {
		c := table.Column{Name: name, Drop: drop}
		for i := range all {
			c.Cells = append(c.Cells, table.Left(get(&all[i])))
		}
		return c
	}
	slowdown, busbw := of("slowdown", 1, func(l *Listed) string { return l.slowdown }),
		of("busbw", 2, func(l *Listed) string { return l.busbw })
	status := of("status", 0, func(l *Listed) string { return l.Outcome })
	for i := range all {
		slowdown.Cells[i].Number, busbw.Cells[i].Number = true, true
		status.Cells[i] = table.Result(all[i].Outcome, all[i].grade)
	}
	settings := of("settings", 0, func(l *Listed) string {
		if l.Points > 0 {
			return "across " + plural.Count(l.Points, "point")
		}
		return strings.TrimSpace(table.Point(l.Point) + " " + strings.Join(l.Set, " "))
	})
	why := of("why", 4, func(l *Listed) string {
		first, _, _ := strings.Cut(l.Error, "\n")
		return clip.Line(strings.TrimSuffix(first, "; run the lab again")) // --json has all of it
	})
	settings.MaxWidth, why.MaxWidth = maxText, maxText
	return table.Columns(w, []table.Column{
		of("run", 0, func(l *Listed) string { return clip.Line(l.Run) }),
		of("started", 6, func(l *Listed) string { return l.Started }),
		of("engine", 5, func(l *Listed) string { return l.Engine }),
		of("transport", 3, func(l *Listed) string {
			if l.Module == nil {
				return l.Transport
			}
			return clip.Line(l.Module.Name + " " + l.Module.Short())
		}),
		settings,
		slowdown, busbw,
		status,
		why,
	}, "--json has all", st)
}

// Given lists what the command line set in a run, as path=value, without the point of its sweep.
func Given(m *record.Manifest) (all []string) {
	for _, s := range m.Settings {
		if _, is := m.Point[s.Path]; !is && (strings.HasPrefix(s.From, "command line: --set") ||
			strings.HasPrefix(s.From, "command line: --retry-dilation")) {
			all = append(all, s.Path+"="+s.Value)
		}
	}
	return all
}
