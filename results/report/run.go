package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/results/plot"
	"weft/results/record"
	"weft/results/store"
	"weft/units"
)

// A Run is a run directory in memory, without its data files, which charts read as needed.
type Run struct {
	Dir       string
	Manifest  *record.Manifest
	Summary   *record.Summary // nil without a summary
	NoSummary string          // why Summary is nil
	Lab       string          // the lab file as written; empty if the run kept none
	View      bool            // the directory has ViewFile
	named     bool            // it was found by its lab, in a directory of labs
	// judged are the expectations across the points of the sweeps that were found with the run, the
	// same for all runs that were.
	judged []*record.Summary
}

// ViewFile is the page in a run's directory that shows the network over time.
const ViewFile = "view.html"

// Load reads a run directory. A run that was killed or is in progress has no summary; a damaged one
// is an error.
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
		r.NoSummary = err.Error()
		return r, nil
	}
	return r, err
}

// A Figure is a chart of one run and its name, which is also that of its file.
type Figure struct {
	Name string
	plot.Chart
}

// maxSeries is the number of ports, connections or hosts in a chart over time. Our choice: more
// cannot be distinguished.
const maxSeries = 6

// Figures draws everything that the run measured.
func (r *Run) Figures() ([]Figure, error) {
	var out []Figure
	for _, make := range []func() (Figure, error){
		r.fct, r.slowdown, r.delays, r.Queues, r.Rates, r.Windows, r.credits, r.Acks, r.Clocks,
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

// The distributions over the flows of a run.
const (
	flowCompletion = "fct"
	flowSlowdown   = "slowdown"
)

// FlowChart returns the chart of a distribution over flows, "fct" or "slowdown", without series.
func FlowChart(of string) plot.Chart {
	c := plot.Chart{Title: "Slowdown", X: plot.Axis{Label: "slowdown", Scale: plot.Log10},
		Y: plot.Axis{Label: "share of flows"}}
	if of == flowCompletion {
		c.Title, c.X.Label, c.X.Unit = "Flow completion times", "flow completion time", "us"
	}
	return c
}

// flows draws the distribution of completion times or of slowdowns.
func (r *Run) flows(of, caption string) (Figure, error) {
	s, err := Distribution(r.Dir, of, "")
	c := FlowChart(of)
	c.Caption, c.Series = caption, nonEmpty(s)
	return Figure{of, c}, err
}

func (r *Run) fct() (Figure, error) { return r.flows(flowCompletion, "") }

func (r *Run) slowdown() (Figure, error) {
	return r.flows(flowSlowdown, "Completion time divided by that of the same message alone on the idle network.")
}

// nonEmpty returns a list of the series, empty if the series has no points.
func nonEmpty(s plot.Series) []plot.Series {
	if len(s.X) == 0 {
		return nil
	}
	return []plot.Series{s}
}

// Distribution returns a distribution over all completed flows of a run. name is that of the
// series.
func Distribution(dir, of, name string) (plot.Series, error) {
	values, err := flowValues(dir, of)
	if err != nil {
		return plot.Series{}, err
	}
	return plot.CDF(name, values), nil
}

// flowValues returns the values of all completed flows of a run: completion times in microseconds,
// or slowdowns.
func flowValues(dir, of string) ([]float64, error) {
	if of == flowSlowdown {
		return store.Numbers(dir, store.FlowsFile, "slowdown")
	}
	values, err := store.Numbers(dir, store.FlowsFile, "fct_ps")
	for i := range values {
		values[i] /= 1e6
	}
	return values, err
}

// delays draws the distribution of queueing delays from its histogram.
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
	if len(bars) > 0 {
		s.X, s.Y = []float64{float64(bars[0].To) / 1e6}, []float64{0} // as plot.CDF
	}
	var below int64
	for _, b := range bars {
		below += b.Count
		s.X, s.Y = append(s.X, float64(b.To)/1e6), append(s.Y, float64(below)/float64(total))
	}
	x := plot.Axis{Label: "queueing delay of a packet, all queues of its path", Unit: "us"}
	if longTailed(s) {
		x.Scale = plot.Log10
	}
	return Figure{"queueing", plot.Chart{
		Title: "Time in switch queues", X: x, Y: plot.Axis{Label: "share of packets", Zero: true},
		Series: nonEmpty(s.Widened()),
	}}, err
}

// longTailed reports whether the largest value of a distribution is so far from the median that
// they need a logarithmic axis: by our own choice, 20 times as large.
func longTailed(s plot.Series) bool {
	half := slices.IndexFunc(s.Y, func(share float64) bool { return share >= 0.5 })
	return half >= 0 && s.X[0] > 0 && s.X[len(s.X)-1] > 20*s.X[half]
}

// timeSeries collects series over time by name.
type timeSeries struct {
	names []string
	of    map[string]*plot.Series
	peak  map[string]float64
}

func newTimeSeries() *timeSeries {
	return &timeSeries{of: map[string]*plot.Series{}, peak: map[string]float64{}}
}

// add appends a value at an instant in picoseconds.
func (o *timeSeries) add(name string, ps int64, v float64) {
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

// sampledSeries collects samples that each hold for an interval. Between samples the value is 0.
type sampledSeries struct {
	timeSeries
	every int64            // picoseconds; 0 if unknown
	until map[string]int64 // the end of the last sample, by name
}

func newSampledSeries(every int64) *sampledSeries {
	return &sampledSeries{timeSeries: *newTimeSeries(), every: every, until: map[string]int64{}}
}

// sample appends a sample that starts at an instant in picoseconds.
func (o *sampledSeries) sample(name string, ps int64, v float64) {
	until := o.until[name] // 0, the start of the run, before the first sample
	if o.every > 0 && ps > until {
		o.add(name, until, 0)
	}
	o.add(name, ps, v)
	o.until[o.of[name].Name] = ps + o.every // name belongs to a row, which is reused
}

// end sets all series to 0 after their last sample.
func (o *sampledSeries) end() {
	for _, name := range o.names {
		o.add(name, o.until[name], 0)
	}
}

// figure returns a chart of the maxSeries series with the highest peaks, sorted by name. If
// some series are missing, the caption says how many there are. what names their owners in the
// plural, such as hosts.
func (o *timeSeries) figure(name, title, what string, y plot.Axis) Figure {
	f := Figure{name, plot.Chart{Title: title, X: timeAxis(), Y: y}}
	names := slices.Clone(o.names)
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(o.peak[b], o.peak[a]), compareNames(a, b))
	})
	if len(names) > maxSeries {
		f.Caption = fmt.Sprintf("The %d %s with the highest values, of %d.", maxSeries, what, len(names))
		names = names[:maxSeries]
	}
	slices.SortFunc(names, compareNames)
	for _, n := range names {
		f.Series = append(f.Series, plot.Thin(*o.of[n]))
	}
	return f
}

// compareNames orders names by length first: h2 before h10.
func compareNames(a, b string) int {
	return cmp.Or(len(a)-len(b), strings.Compare(a, b))
}

// timeAxis is the axis of all charts over time.
func timeAxis() plot.Axis { return plot.Axis{Label: "time", Unit: "us"} }

// Queues draws the queues of ports over time.
func (r *Run) Queues() (Figure, error) {
	type row struct {
		Time   int64  `parquet:"time_ps"`
		Port   string `parquet:"port"`
		Queued int64  `parquet:"queued_bytes"`
	}
	o := newSampledSeries(r.interval("measure.queues"))
	err := store.Scan(r.Dir, store.QueuesFile, func(rows []row) error {
		for _, q := range rows {
			// A port that is empty at a sampling instant has no row for it.
			o.sample(q.Port, q.Time, float64(q.Queued))
		}
		return nil
	})
	o.end()
	return o.figure("queues", "Queues over time", "ports", plot.Axis{Label: "queued", Unit: "B", Zero: true}), err
}

// interval returns a setting of the lab that is a time, in picoseconds; 0 if it is off.
func (r *Run) interval(path string) int64 {
	t, err := units.ParseTime(r.setting(path))
	if err != nil {
		return 0
	}
	return int64(t)
}

// Rates draws the throughput of connections over time.
func (r *Run) Rates() (Figure, error) {
	type row struct {
		Time int64 `parquet:"time_ps"`
		Conn int64 `parquet:"conn"`
		Rate int64 `parquet:"rate_bps"`
	}
	o := newSampledSeries(r.interval("measure.rates"))
	err := store.Scan(r.Dir, store.RatesFile, func(rows []row) error {
		for _, q := range rows {
			// A row carries the end of its interval.
			o.sample(connection(q.Conn), q.Time-o.every, float64(q.Rate)/1e9)
		}
		return nil
	})
	o.end()
	f := o.figure("rates", "Throughput of connections over time", "connections",
		plot.Axis{Label: "throughput", Unit: "Gb/s", Zero: true})
	if err == nil {
		err = r.nameConnections(f.Series)
	}
	return f, err
}

// connection returns the name of a connection without hosts.
func connection(id int64) string { return fmt.Sprintf("conn %d", id) }

// limitRow is a row of cwnd.parquet, as charts read it.
type limitRow struct {
	Time   int64  `parquet:"time_ps"`
	Conn   int64  `parquet:"conn"`
	Window *int64 `parquet:"cwnd_bytes,optional"`
	Credit *int64 `parquet:"credit_bytes,optional"`
}

// Windows draws congestion windows over time.
func (r *Run) Windows() (Figure, error) {
	return r.limits("cwnd", "Congestion windows over time", "congestion window",
		func(w limitRow) *int64 { return w.Window })
}

// credits draws over time what is left of the receivers' credit.
func (r *Run) credits() (Figure, error) {
	return r.limits("credit", "Credit of connections over time", "credit", func(w limitRow) *int64 { return w.Credit })
}

// limits draws a column of cwnd.parquet over time, without the connections where it is null.
func (r *Run) limits(name, title, label string, of func(limitRow) *int64) (Figure, error) {
	o := newTimeSeries()
	err := store.Scan(r.Dir, store.WindowsFile, func(rows []limitRow) error {
		for _, w := range rows {
			if v := of(w); v != nil {
				o.add(connection(w.Conn), w.Time, float64(*v))
			}
		}
		return nil
	})
	f := o.figure(name, title, "connections", plot.Axis{Label: label, Unit: "B", Zero: true})
	if err == nil {
		err = r.nameConnections(f.Series)
	}
	return f, err
}

// Clocks draws the errors of clocks over time.
func (r *Run) Clocks() (Figure, error) {
	type row struct {
		Time  int64  `parquet:"time_ps"`
		Host  string `parquet:"host"`
		Error int64  `parquet:"error_ps"`
	}
	o := newTimeSeries()
	err := store.Scan(r.Dir, store.ClocksFile, func(rows []row) error {
		for _, c := range rows {
			o.add(c.Host, c.Time, float64(c.Error)/1e3)
		}
		return nil
	})
	return o.figure("clocks", "Errors of clocks over time", "hosts",
		plot.Axis{Label: "clock minus true time", Unit: "ns"}), err
}
