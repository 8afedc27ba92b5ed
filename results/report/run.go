package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/results/plot"
	"weft/results/record"
	"weft/results/store"
)

// Run is a run directory that was read.
type Run struct {
	Dir      string
	Manifest *record.Manifest
	Summary  *record.Summary // nil: the run left none
	Why      string          // there is no summary
	Lab      string          // the lab file as it was written; empty: it was not kept
}

// Load reads a run directory. A run that was killed or is under way has no summary; one that is damaged is an error.
func Load(dir string) (*Run, error) {
	m, err := store.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir, Manifest: m}
	if r.Lab, err = store.ReadLab(dir); err != nil {
		return nil, err
	}
	r.Summary, err = store.ReadSummary(dir)
	if errors.Is(err, store.ErrNoSummary) {
		r.Why = err.Error()
		return r, nil
	}
	return r, err
}

// Figure is a chart with a name that files can have.
type Figure struct {
	Name string
	plot.Chart
}

// mostLines is how many ports, connections or hosts a chart over time shows. Ours: more cannot be told apart.
const mostLines = 6

// Figures draws everything that the run measured. What was not measured has no chart.
func (r *Run) Figures() ([]Figure, error) {
	var out []Figure
	for _, make := range []func() (Figure, error){
		r.fct, r.slowdown, r.delays, r.Queues, r.Rates, r.Windows, r.Acks, r.Clocks,
	} {
		f, err := make()
		switch {
		case errors.Is(err, store.ErrNoTable), errors.Is(err, plot.ErrEmpty):
		case err != nil:
			return nil, err
		case len(f.Series) > 0:
			if f.X == timeAxis() {
				spans, caption := r.spans()
				f.Spans, f.Caption = spans, strings.TrimSpace(f.Caption+" "+caption)
			}
			out = append(out, f)
		}
	}
	return out, nil
}

func (r *Run) fct() (Figure, error) {
	s, err := Distribution(r.Dir, "fct", "")
	return Figure{"fct", plot.Chart{
		Title: "Flow completion times", X: plot.Axis{Label: "flow completion time", Unit: "us", Scale: plot.Log10},
		Y: plot.Axis{Label: "share of flows"}, Series: some(s),
	}}, err
}

func (r *Run) slowdown() (Figure, error) {
	s, err := Distribution(r.Dir, "slowdown", "")
	return Figure{"slowdown", plot.Chart{
		Title: "Slowdown", Caption: "Completion time over that of the same message alone on the idle network.",
		X: plot.Axis{Label: "slowdown", Scale: plot.Log10}, Y: plot.Axis{Label: "share of flows"}, Series: some(s),
	}}, err
}

// some is a series in a list, or nothing where it has no points.
func some(s plot.Series) []plot.Series {
	if len(s.X) == 0 {
		return nil
	}
	return []plot.Series{s}
}

// Distribution is that of all flows of a run that finished: of "fct", in microseconds, or of "slowdown".
func Distribution(dir, of, name string) (plot.Series, error) {
	column, unit := "slowdown", 1.0
	if of == "fct" {
		column, unit = "fct_ps", 1e6
	}
	values, err := store.Numbers(dir, store.FlowsFile, column)
	if err != nil {
		return plot.Series{}, err
	}
	for i := range values {
		values[i] /= unit
	}
	return plot.CDF(name, values), nil
}

// delays is the distribution of queueing delays, from its histogram.
func (r *Run) delays() (Figure, error) {
	type row struct {
		To    int64 `parquet:"to_ps"`
		Count int64 `parquet:"count"`
	}
	var bars []row
	var total int64
	err := store.Scan(r.Dir, store.QueueDelayFile, func(rows []row) error {
		for _, b := range rows {
			bars, total = append(bars, b), total+b.Count
		}
		return nil
	})
	s := plot.Series{Steps: true}
	var below int64
	for _, b := range bars {
		below += b.Count
		s.X, s.Y = append(s.X, float64(b.To)/1e6), append(s.Y, float64(below)/float64(total))
	}
	return Figure{"queueing", plot.Chart{
		Title: "Time in switch queues", X: plot.Axis{Label: "queueing delay of a packet, all queues of its path", Unit: "us"},
		Y: plot.Axis{Label: "share of packets", Zero: true}, Series: some(s),
	}}, err
}

// over collects series over time by what they are of.
type over struct {
	names []string
	of    map[string]*plot.Series
	peak  map[string]float64
}

func newOver() *over { return &over{of: map[string]*plot.Series{}, peak: map[string]float64{}} }

// add adds a point. Instants are picoseconds; x is in microseconds.
func (o *over) add(name string, ps int64, v float64) {
	s, ok := o.of[name]
	if !ok {
		name = strings.Clone(name) // rows are reused
		s = &plot.Series{Name: name, Steps: true}
		o.of[name] = s
		o.names = append(o.names, name)
	}
	s.X, s.Y = append(s.X, float64(ps)/1e6), append(s.Y, v)
	o.peak[s.Name] = max(o.peak[s.Name], v, -v)
}

// sampled is series of samples that each hold for an interval. Where there is none, the value is 0.
type sampled struct {
	over
	every int64            // picoseconds; 0: not known
	until map[string]int64 // to when the last sample holds
}

func newSampled(every int64) *sampled {
	return &sampled{over: *newOver(), every: every, until: map[string]int64{}}
}

// sample adds what a series is from an instant on.
func (o *sampled) sample(name string, ps int64, v float64) {
	until := o.until[name] // the start of the run, before the first
	if o.every > 0 && ps > until {
		o.add(name, until, 0)
	}
	o.add(name, ps, v)
	o.until[o.of[name].Name] = ps + o.every // the name that is kept; rows are reused
}

// end lets all series end at 0.
func (o *sampled) end() {
	for _, name := range o.names {
		o.add(name, o.until[name], 0)
	}
}

// series are the lines with the highest peaks, in the order of their names, and what was left out.
func (o *over) series(what string) (out []plot.Series, caption string) {
	names := slices.Clone(o.names)
	slices.SortStableFunc(names, func(a, b string) int {
		switch pa, pb := o.peak[a], o.peak[b]; {
		case pa > pb:
			return -1
		case pa < pb:
			return 1
		}
		return compareNames(a, b)
	})
	if len(names) > mostLines {
		caption = fmt.Sprintf("The %d %s with the highest values of %d.", mostLines, what, len(names))
		names = names[:mostLines]
	}
	slices.SortFunc(names, compareNames)
	for _, n := range names {
		out = append(out, plot.Thin(*o.of[n]))
	}
	return out, caption
}

// compareNames puts h2 before h10.
func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// time is the axis of everything over time.
func timeAxis() plot.Axis { return plot.Axis{Label: "time", Unit: "us"} }

// Queues is the queues of ports over time.
func (r *Run) Queues() (Figure, error) {
	type row struct {
		Time   int64  `parquet:"time_ps"`
		Port   string `parquet:"port"`
		Queued int64  `parquet:"queued_bytes"`
	}
	o := newSampled(r.interval("measure.queues"))
	err := store.Scan(r.Dir, store.QueuesFile, func(rows []row) error {
		for _, q := range rows {
			o.sample(q.Port, q.Time, float64(q.Queued)/1e3) // a port that is empty at a sampling instant has no row of it
		}
		return nil
	})
	o.end()
	s, caption := o.series("ports")
	return Figure{"queues", plot.Chart{
		Title: "Queues over time", Caption: caption, X: timeAxis(), Y: plot.Axis{Label: "queued", Unit: "KB", Zero: true}, Series: s,
	}}, err
}

// interval is a setting of the lab that is a time, in picoseconds; 0 where it is off.
func (r *Run) interval(path string) int64 {
	for _, s := range r.Manifest.Settings {
		if s.Path == path {
			return picoseconds(s.Value)
		}
	}
	return 0
}

// Rates is what connections carried over time.
func (r *Run) Rates() (Figure, error) {
	type row struct {
		Time int64 `parquet:"time_ps"`
		Conn int64 `parquet:"conn"`
		Rate int64 `parquet:"rate_bps"`
	}
	o := newSampled(r.interval("measure.rates"))
	err := store.Scan(r.Dir, store.RatesFile, func(rows []row) error {
		for _, q := range rows {
			o.sample(connection(q.Conn), q.Time-o.every, float64(q.Rate)/1e9) // what arrived in an interval is told at its end
		}
		return nil
	})
	o.end()
	s, caption := o.series("connections")
	if err == nil {
		err = r.nameConnections(s)
	}
	return Figure{"rates", plot.Chart{
		Title: "Throughput of connections over time", Caption: caption, X: timeAxis(), Y: plot.Axis{Label: "throughput", Unit: "Gb/s", Zero: true}, Series: s,
	}}, err
}

func connection(id int64) string { return fmt.Sprintf("conn %d", id) }

// Windows is congestion windows over time.
func (r *Run) Windows() (Figure, error) {
	type row struct {
		Time   int64 `parquet:"time_ps"`
		Conn   int64 `parquet:"conn"`
		Window int64 `parquet:"cwnd_bytes"`
	}
	o := newOver()
	err := store.Scan(r.Dir, store.WindowsFile, func(rows []row) error {
		for _, w := range rows {
			o.add(connection(w.Conn), w.Time, float64(w.Window)/1e3)
		}
		return nil
	})
	s, caption := o.series("connections")
	if err == nil {
		err = r.nameConnections(s)
	}
	return Figure{"cwnd", plot.Chart{
		Title: "Congestion windows over time", Caption: caption, X: timeAxis(), Y: plot.Axis{Label: "congestion window", Unit: "KB", Zero: true}, Series: s,
	}}, err
}

// Clocks is the errors of clocks over time.
func (r *Run) Clocks() (Figure, error) {
	type row struct {
		Time  int64  `parquet:"time_ps"`
		Host  string `parquet:"host"`
		Error int64  `parquet:"error_ps"`
	}
	o := newOver()
	err := store.Scan(r.Dir, store.ClocksFile, func(rows []row) error {
		for _, c := range rows {
			o.add(c.Host, c.Time, float64(c.Error)/1e3)
		}
		return nil
	})
	s, caption := o.series("hosts")
	return Figure{"clocks", plot.Chart{
		Title: "Errors of clocks over time", Caption: caption, X: timeAxis(), Y: plot.Axis{Label: "clock less true time", Unit: "ns"}, Series: s,
	}}, err
}
