package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/internal/plural"
	"weft/results/expect"
	"weft/results/names"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/stats"
	"weft/results/store"
)

// A SweepPlot describes a chart of a sweep.
type SweepPlot struct {
	Name, Title, Caption string
	X                    string   // a path of the sweep
	Y                    string   // a value of a run, as in an expectation: rtt.mean
	By                   []string // paths that distinguish lines
	Log                  string   // logarithmic axes: x, y or xy
	Extremes             bool     // whiskers show minimum and maximum, not a confidence interval
	Near                 bool     // the vertical axis of lines starts near the minimum, not at 0
	Reference            []plot.Series

	label string // of the vertical axis, set by Draw
}

// maxDots is the number of seeds up to which a bar shows each. Our choice.
const maxDots = 30

// A Drawing is a chart of any kind.
type Drawing interface {
	SVG() ([]byte, error)
	PNG() ([]byte, error)
}

// Draw draws a value of the points of a sweep over one of its paths: lines if the values of the
// path are numbers, else bars. Points that differ only in paths other than X and By, such as the
// seed, are one point: their mean with its 95 % confidence interval or, with Extremes, their
// minimum and maximum. The caption counts the runs that do not have the value where others do. The
// error is plot.ErrEmpty if no point has it.
func (p SweepPlot) Draw(points []expect.Point) (Drawing, error) {
	e, err := expect.ParseValue(p.Y)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Y, err)
	}
	type cell struct{ x, by string }
	cells := map[cell][]float64{}
	without := map[cell]int{} // runs that did not measure it
	var xs, bys []string
	unit := ""
	for _, pt := range points {
		if pt.Summary == nil || pt.Summary.Status != record.OK {
			continue
		}
		c := cell{pt.At[p.X], names.Label(pt.At, p.By)}
		q, err := e.Value([]expect.Point{pt})
		if err != nil {
			without[c]++
			continue
		}
		unit = q.Unit
		if !slices.Contains(xs, c.x) {
			xs = append(xs, c.x)
		}
		if !slices.Contains(bys, c.by) {
			bys = append(bys, c.by)
		}
		cells[c] = append(cells[c], q.Value)
	}
	if len(xs) == 0 {
		return nil, fmt.Errorf("plot %q: %w", p.Title, plot.ErrEmpty)
	}
	have, lack := 0, 0 // runs of points that some runs have no value for
	for c, n := range without {
		if len(cells[c]) > 0 {
			have, lack = have+len(cells[c]), lack+n
		}
	}
	if lack > 0 {
		p.Caption = strings.TrimSpace(fmt.Sprintf("%s Without %d of %s, which measured no value.",
			p.Caption, lack, plural.Count(have+lack, "run")))
	}
	p.label = valueWords(p.Y, oneCollective(points))
	at, xUnit, numeric := axisValues(xs)
	get := func(by, x string) stats.Interval {
		values := cells[cell{x, by}]
		i := stats.MeanInterval(values)
		if p.Extremes && i.N > 1 {
			i.Low, i.High = slices.Min(values), slices.Max(values)
		}
		return i
	}
	if p.Extremes && slices.ContainsFunc(slices.Collect(maps.Values(cells)),
		func(values []float64) bool { return len(values) > 1 }) {
		p.Caption = strings.TrimSpace(p.Caption + " Means; whiskers show the minimum and the maximum.")
	}
	if !numeric {
		return p.bars(xs, bys, unit, get, func(by, x string) []float64 { return cells[cell{x, by}] }), nil
	}
	return p.lines(xs, bys, at, xUnit, unit, get), nil
}

// lines draws means over the numbers at of the x values, one line for each of bys.
func (p SweepPlot) lines(xs, bys []string, at map[string]float64, xUnit, unit string,
	get func(by, x string) stats.Interval) plot.Chart {
	slices.SortFunc(xs, func(a, b string) int { return int(math.Copysign(1, at[a]-at[b])) })
	c := plot.Chart{
		Title: p.Title, Caption: p.Caption, X: plot.Axis{Label: pathWords(p.X), Unit: xUnit},
		Y: plot.Axis{Label: p.label, Unit: unit, Zero: !p.Near},
	}
	positive := true
	for _, by := range bys {
		s := plot.Series{Name: by, Points: true}
		noisy := false
		for _, x := range xs {
			i := get(by, x)
			if i.N == 0 {
				continue
			}
			s.X, s.Y = append(s.X, at[x]), append(s.Y, i.Mean)
			s.Low, s.High = append(s.Low, i.Low), append(s.High, i.High)
			noisy = noisy || i.N > 1
			positive = positive && i.Low > 0
		}
		if !noisy {
			s.Low, s.High = nil, nil
		}
		c.Series = append(c.Series, s)
	}
	Paint(c.Series)
	for _, s := range p.Reference {
		s.Dashed = true
		c.Series = append(c.Series, s)
	}
	if strings.Contains(p.Log, "x") && at[xs[0]] > 0 {
		c.X.Scale = plot.Log10
		if allPowersOfTwo(at) {
			c.X.Scale = plot.Log2
		}
	}
	if strings.Contains(p.Log, "y") && positive {
		c.Y.Scale = plot.Log10
	}
	return c
}

// allPowersOfTwo reports whether all values are powers of two.
func allPowersOfTwo(at map[string]float64) bool {
	for _, v := range at {
		if f, _ := math.Frexp(v); f != 0.5 {
			return false
		}
	}
	return true
}

// bars draws a group of bars for each of xs, one bar for each of bys, with a dot for each of a few
// seeds.
func (p SweepPlot) bars(xs, bys []string, unit string, get func(by, x string) stats.Interval,
	of func(by, x string) []float64) plot.Bars {
	b := plot.Bars{Title: p.Title, Caption: p.Caption, Groups: make([]string, len(xs)),
		X: plot.Axis{Label: pathWords(p.X)}, Y: plot.Axis{Label: p.label, Unit: unit}}
	dotted := false
	for i, x := range xs {
		b.Groups[i] = names.Value(x)
	}
	for _, by := range bys {
		s := plot.BarSeries{Name: by}
		noisy, few := false, true
		for _, x := range xs {
			i := get(by, x)
			if i.N == 0 {
				i.Mean = math.NaN()
			}
			s.Values, s.Low, s.High = append(s.Values, i.Mean), append(s.Low, i.Low), append(s.High, i.High)
			noisy, few = noisy || i.N > 1, few && i.N <= maxDots
			s.Dots = append(s.Dots, of(by, x))
		}
		if !noisy {
			s.Low, s.High = nil, nil
		}
		if !noisy || !few {
			s.Dots = nil
		}
		b.Series = append(b.Series, s)
		dotted = dotted || s.Dots != nil
	}
	if dotted {
		b.Caption = strings.TrimSpace(b.Caption + " Each dot is a run.")
	}
	for _, s := range p.Reference {
		if len(s.Y) > 0 {
			b.Marks = append(b.Marks, plot.Mark{Name: s.Name, At: s.Y[0]})
		}
	}
	if b.Colors = transportColors(bys); len(bys) == 1 {
		b.Colors = transportColors(xs)
	}
	return b
}

// axisValues parses values of a path as numbers of one unit. "off" is 0 beside others, and the
// number of "uniform ±1us" is the half width, 1us. ok is false if any is not a number.
func axisValues(xs []string) (at map[string]float64, unit string, ok bool) {
	at = map[string]float64{}
	known := false
	for _, x := range xs {
		if x == "off" {
			at[x] = 0
			continue
		}
		number := strings.TrimPrefix(x[max(0, strings.Index(x, "±")):], "±")
		q, err := expect.ParseQuantity(number)
		if strings.HasSuffix(number, "%") {
			q.Value, q.Unit = 100*q.Value, "%"
		}
		if err != nil || known && q.Unit != unit {
			return nil, "", false
		}
		at[x], unit, known = q.Value, q.Unit, true
	}
	return at, unit, known
}

// chooseAxes chooses how to draw the points of a sweep: over the numeric path with the most values
// (a path with names only if there is none), with the other paths distinguishing lines. Seeds are
// noise, and a path whose value follows from those of others is left out. ok is false if the sweep
// varies only seeds.
func chooseAxes(points []expect.Point) (x string, by []string, ok bool) {
	values := map[string]map[string]bool{}
	for _, p := range points {
		for path, v := range p.At {
			if values[path] == nil {
				values[path] = map[string]bool{}
			}
			values[path][v] = true
		}
	}
	best := 0
	for _, path := range slices.Sorted(maps.Keys(values)) {
		n := len(values[path])
		if path == "seed" || n < 2 {
			continue
		}
		if _, _, numeric := axisValues(slices.Sorted(maps.Keys(values[path]))); numeric {
			n += 1000 // numbers before names, which make bars
		}
		// Among paths that change together, the kind is the clearest.
		if n > best || n == best && strings.HasSuffix(path, ".kind") {
			x, best = path, n
		}
	}
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if path != x && path != "seed" && len(values[path]) > 1 {
			by = append(by, path)
		}
	}
	// A path that the others imply distinguishes nothing.
	for _, path := range slices.Clone(by) {
		others := slices.DeleteFunc(slices.Clone(by), func(b string) bool { return b == path })
		if expect.Implied(points, append(others, x)...)[path] {
			by = others
		}
	}
	return x, by, x != ""
}

// overviewPlots returns the charts that every sweep has.
func overviewPlots(points []expect.Point) []SweepPlot {
	x, by, ok := chooseAxes(points)
	if !ok {
		return nil
	}
	var out []SweepPlot
	for _, n := range record.Select("fct.p99", "fct_slowdown.p99", "rtt.mean", "queue_delay.p99", "collective.0.busbw",
		"max_queue", "goodput", "clock_error.p99") {
		title := strings.ToUpper(n.Axis[:1]) + n.Axis[1:]
		if n.Item() && !oneCollective(points) {
			title += " of the first collective"
		}
		out = append(out, SweepPlot{Name: n.Chart, Title: title, X: x, By: by, Y: n.Name, Log: "x", Extremes: true})
	}
	return out
}

// oneCollective reports whether no run has more than one collective.
func oneCollective(points []expect.Point) bool {
	return !slices.ContainsFunc(points, func(p expect.Point) bool {
		return p.Summary != nil && len(p.Summary.Collectives) > 1
	})
}

// largest returns the largest value of a path; numeric is false if its values are not numbers.
func largest(points []expect.Point, path string) (numeric bool, value string) {
	var all []string
	for _, p := range points {
		if v, ok := p.At[path]; ok && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	at, _, numeric := axisValues(all)
	for _, v := range all {
		if value == "" || at[v] > at[value] {
			value = v
		}
	}
	return numeric, value
}

// maxCurves is the number of distributions in a chart. Our choice: more cannot be told apart.
const maxCurves = 7

// distributions draws the distributions of flow completion times of a sweep's points over each
// other, by what was swept: seeds are together, and of several numbers only the largest
// is shown if lines differ by something else. ok is false if the sweep varies only seeds.
func distributions(points []expect.Point) (c Chart, ok bool, err error) {
	x, by, ok := chooseAxes(points)
	if !ok {
		return c, false, nil
	}
	d := FlowChart(flowCompletion)
	paths := append([]string{x}, by...)
	if at, last := largest(points, x); at && len(by) > 0 {
		d.Title += " at " + names.Label(map[string]string{x: last}, []string{x})
		paths = by
		points = slices.DeleteFunc(slices.Clone(points), func(p expect.Point) bool { return p.At[x] != last })
	}
	slices.Sort(paths)
	var curves []string
	dirs := map[string][]string{}
	for _, p := range points {
		if p.Summary == nil || p.Summary.Run == "" || p.Summary.Flows.Count <= p.Summary.Flows.Unfinished {
			continue
		}
		name := names.Label(p.At, paths)
		if dirs[name] == nil {
			curves = append(curves, name)
		}
		dirs[name] = append(dirs[name], p.Summary.Run)
	}
	if all := len(curves); all > maxCurves { // the ends of the sweep, and some between
		for i := range maxCurves {
			curves[i] = curves[i*(all-1)/(maxCurves-1)]
		}
		curves = curves[:maxCurves]
		d.Caption = fmt.Sprintf("%d of %d points.", maxCurves, all)
	}
	for _, name := range curves {
		var values []float64
		for _, dir := range dirs[name] {
			one, err := flowValues(dir, flowCompletion)
			if err := store.IfPresent(err); err != nil {
				return c, false, err
			}
			values = append(values, one...)
		}
		if s := plot.CDF(name, values); len(s.X) > 0 {
			d.Series = append(d.Series, s)
		}
	}
	Paint(d.Series)
	return Chart{Name: "fct-cdf", Of: "fct", curves: true, Drawing: d}, len(d.Series) > 1, nil
}
