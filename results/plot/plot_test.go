package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/plot"
	"pgregory.net/rapid"
)

func example() Chart {
	return Chart{
		Title: "Mean RTT of an N-to-1 incast",
		Caption: "PC4 paper, Fig. 6a: the RTT of PC4 stays at the base RTT of 4 us and does not grow with N. Here: " +
			"star of 100 Gb/s, 1 us per link.",
		X: Axis{Label: "senders", Scale: Log2},
		Y: Axis{Label: "round trip", Unit: "us", Zero: true},
		Series: []Series{
			{Name: "pc4", X: []float64{2, 4, 8, 16}, Y: []float64{6.1, 6.2, 6.2, 6.3}, Low: []float64{6, 6.1, 6, 6},
				High: []float64{6.3, 6.4, 6.4, 6.5}, Points: true},
			{Name: "roce (DCQCN)", X: []float64{2, 4, 8, 16}, Y: []float64{22, 41, math.NaN(), 95}, Points: true},
			{Name: "swift <&>", X: []float64{2, 4, 8, 16}, Y: []float64{10, 15, 22, 30}, Low: []float64{8, 12, 18,
				20}, High: []float64{12, 18, 26, 40}, Band: true},
			{Name: "paper", X: []float64{2, 16}, Y: []float64{4, 4}, Dashed: true},
		},
		Marks: []Mark{{Name: "base RTT", At: 4.7}},
	}
}

func exampleBars() Bars {
	return Bars{
		Title: "Bus bandwidth", Groups: []string{"ring", "halving-doubling", "double-binary-tree"},
		Y: Axis{Label: "busbw", Unit: "Gb/s"},
		Series: []BarSeries{
			{Name: "pc4", Values: []float64{380, 371, 355}, Low: []float64{370, 365, 350}, High: []float64{390, 380,
				360}},
			{Name: "roce", Values: []float64{320, math.NaN(), 210}},
		},
		Marks: []Mark{{Name: "line rate", At: 400}},
	}
}

type drawing interface {
	SVG() ([]byte, error)
	PNG() ([]byte, error)
}

// Where WEFT_PLOTS names a directory, the examples are written there to be looked at.
func TestSameChartSameBytes(t *testing.T) {
	for name, make := range map[string]func() drawing{
		"lines": func() drawing { return example() }, "bars": func() drawing { return exampleBars() },
		"cdf": func() drawing {
			v := []float64{}
			for i := range 5000 {
				v = append(v, 10+math.Abs(1000*math.Sin(float64(i*i))))
			}
			return Chart{Title: "FCT", X: Axis{Label: "flow completion time", Unit: "us", Scale: Log10},
				Y: Axis{Label: "share of flows"}, Series: []Series{CDF("pc4", v)}}
		},
	} {
		var all sync.WaitGroup
		svgs, pngs := [4][]byte{}, [4][]byte{}
		for i := range svgs {
			all.Go(func() {
				var err, perr error
				svgs[i], err = make().SVG()
				pngs[i], perr = make().PNG()
				if err != nil || perr != nil {
					t.Errorf("%s: %v, %v", name, err, perr)
				}
			})
		}
		all.Wait()
		for i := range svgs {
			if !bytes.Equal(svgs[0], svgs[i]) || !bytes.Equal(pngs[0], pngs[i]) {
				t.Errorf("%s: two drawings differ", name)
			}
		}
		wellFormed(t, svgs[0])
		if _, err := png.Decode(bytes.NewReader(pngs[0])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if dir := os.Getenv("WEFT_PLOTS"); dir != "" {
			_ = os.WriteFile(filepath.Join(dir, name+".svg"), svgs[0], 0o644)
			_ = os.WriteFile(filepath.Join(dir, name+".png"), pngs[0], 0o644)
		}
	}
}

// wellFormed fails unless the text is XML that refers to nothing outside itself.
func wellFormed(t interface{ Fatalf(string, ...any) }, svg []byte) {
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %.300s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") {
					t.Fatalf("refers to %s", a.Value)
				}
			}
		}
	}
	if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
		t.Fatalf("a coordinate is no number: %.300s", svg)
	}
}

func TestWhatCannotBeDrawnIsNamed(t *testing.T) {
	one := []float64{1}
	for want, c := range map[string]drawing{
		"there is nothing to plot": Chart{Series: []Series{{Name: "a", X: one,
			Y: []float64{math.NaN()}}}},
		`series "a": 2 values of x and 1 of y`:               Chart{Series: []Series{{Name: "a", X: []float64{1, 2}, Y: one}}},
		`series "a": 1 values with 1 lower and 0 upper ends`: Chart{Series: []Series{{Name: "a", X: one, Y: one, Low: one}}},
		"point 0: 0 has no place on a logarithmic axis": Chart{X: Axis{Scale: Log10},
			Series: []Series{{Name: "a", X: []float64{0}, Y: one}}},
		"point 0: +Inf has no place on an axis": Chart{Series: []Series{{Name: "a", X: one,
			Y: []float64{math.Inf(1)}}}},
		`mark "m": -1 has no place`:         Chart{Y: Axis{Scale: Log10}, Series: []Series{{X: one, Y: one}}, Marks: []Mark{{Name: "m", At: -1}}},
		`series "b": 1 values for 2 groups`: Bars{Groups: []string{"x", "y"}, Series: []BarSeries{{Name: "b", Values: one}}},
		"groups have no values to mark": Bars{Groups: []string{"x"},
			Series: []BarSeries{{Values: one}}, Marks: []Mark{{On: OnX}}},
		`plot "none": there is nothing`: Bars{Title: "none"},
	} {
		_, err := c.SVG()
		_, perr := c.PNG()
		if err == nil || perr == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Whatever numbers a run leaves: an error, or a drawing that is well formed.
func TestAnyNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.OneOf(rapid.Float64(), rapid.Float64Range(0.001, 1000)), 1, 20)
		ys := v.Draw(t, "y")
		xs := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e12), len(ys), len(ys)).Draw(t, "x")
		scale := rapid.SampledFrom([]Scale{Linear, Log10, Log2})
		c := Chart{
			X: Axis{Scale: scale.Draw(t, "xs"), Unit: "B"}, Y: Axis{Scale: scale.Draw(t, "ys"),
				Zero: rapid.Bool().Draw(t, "zero")},
			Series: []Series{{Name: "s", X: xs, Y: ys, Points: true, Steps: rapid.Bool().Draw(t, "steps")}},
		}
		if svg, err := c.SVG(); err == nil {
			wellFormed(t, svg)
		}
	})
}

func TestTicks(t *testing.T) {
	labels := func(a Axis, lo, hi float64) string {
		var out []string
		for _, tick := range a.Ticks(lo, hi) {
			if tick.Label != "" {
				out = append(out, tick.Label)
			}
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		scale  Scale
		lo, hi float64
		want   string
	}{
		{Linear, 0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{Linear, -3, 103, "0 20 40 60 80 100"},
		{Linear, 0, 2_600_000, "0 500k 1.0M 1.5M 2.0M 2.5M"},
		{Linear, 0.0012, 0.0019, "0.0012 0.0014 0.0016 0.0018"},
		{Log10, 1, 1e6, "1 10 100 1000 10k 100k 1M"},
		{Log10, 15, 800, "20 50 100 200 500"},
		{Log10, 20, 45, "20 30 40"},
		{Log2, 8, 1 << 20, "8 32 128 512 2Ki 8Ki 32Ki 128Ki 512Ki"},
	} {
		if got := labels(Axis{Scale: c.scale, Unit: "B"}, c.lo, c.hi); got != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}

// Axes are in the units in which their values read best, and all that is drawn with them.
func TestReadableAxes(t *testing.T) {
	for _, c := range []struct {
		name   string
		x, y   Axis
		xs, ys []float64
		want   string
	}{
		{"linear", Axis{Unit: "us"}, Axis{Unit: "B", Zero: true}, []float64{0, 6000}, []float64{0, 15e6}, "ms: 0 1 2 3 4 5 6; MB: 0 5 10 15"},
		{"as recorded", Axis{Unit: "us"}, Axis{Unit: "%"}, []float64{0, 800}, []float64{0, 100}, "us: 0 200 400 600 800; %: 0 20 40 60 80 100"},
		{"within a unit", Axis{Unit: "us", Scale: Log10}, Axis{}, []float64{1000, 900000}, []float64{0, 1}, "ms, log scale: 1 2 5 10 20 50 100 200 500; : 0.0 0.2 0.4 0.6 0.8 1.0"},
		{"across units", Axis{Unit: "us", Scale: Log10}, Axis{}, []float64{10, 30000}, []float64{0, 1}, "log scale: 10 us 100 us 1 ms 10 ms; : 0.0 0.2 0.4 0.6 0.8 1.0"},
		{"about a thousand", Axis{Unit: "us", Scale: Log10}, Axis{}, []float64{900, 1100}, []float64{0, 1}, "ms, log scale: 0.90 0.95 1.00 1.05 1.10; : 0.0 0.2 0.4 0.6 0.8 1.0"},
	} {
		chart := Chart{X: c.x, Y: c.y, Series: []Series{{X: c.xs, Y: c.ys}}, Marks: []Mark{{At: c.ys[1]}}, Spans: []Span{{Ranges: [][2]float64{{c.xs[0], c.xs[1]}}}}}
		r := chart.readable()
		x, y := r.spans()
		got := labels(r.X.title(), r.X.Ticks(x.min, x.max)) + "; " + labels(r.Y.title(), r.Y.Ticks(y.min, y.max))
		if got != c.want {
			t.Errorf("%s: the axes have %s; want %s", c.name, got, c.want)
		}
		if at := r.Marks[0].At; at != r.Series[0].Y[1] || r.Spans[0].Ranges[0][1] != r.Series[0].X[1] || chart.Series[0].Y[1] != c.ys[1] {
			t.Errorf("%s: the mark is at %v, the data is %v", c.name, at, r.Series[0])
		}
	}
	b := Bars{Groups: []string{"a"}, Y: Axis{Unit: "B"}, Series: []BarSeries{{Values: []float64{2e6}, Dots: [][]float64{{1e6, 3e6}}}}, Marks: []Mark{{At: 4e6}}}
	if r := b.readable(); r.Y.Unit != "MB" || r.Series[0].Values[0] != 2 || r.Series[0].Dots[0][1] != 3 || r.Marks[0].At != 4 || b.Series[0].Dots[0][1] != 3e6 {
		t.Errorf("bars are drawn as %+v", r)
	}
}

// labels joins a title and the labels of ticks.
func labels(title string, ticks []plot.Tick) string {
	title += ":"
	for _, k := range ticks {
		if k.Label != "" {
			title += " " + k.Label
		}
	}
	return title
}

func TestDistributionsKeepTheirTail(t *testing.T) {
	var v []float64
	for i := 1; i <= 1_000_000; i++ {
		v = append(v, float64(i))
	}
	s := CDF("x", v)
	if n := len(s.X); n > 1100 || s.Y[0] != 0 || s.Y[n-1] != 1 || s.X[n-1] != 1e6 || s.X[n-2] != 999_999 {
		t.Errorf("%d points, the last %v at %v", n, s.Y[n-1], s.X[n-1])
	}
	for i := 1; i < len(s.X); i++ {
		if s.X[i] < s.X[i-1] || s.Y[i] <= s.Y[i-1] || s.Y[i] != s.X[i]/1e6 {
			t.Fatalf("point %d is (%v, %v)", i, s.X[i], s.Y[i])
		}
	}
	if s := CDF("x", []float64{math.NaN()}); len(s.X) != 0 {
		t.Errorf("nothing has the distribution %v", s)
	}
}

func TestThinKeepsPeaks(t *testing.T) {
	var s Series
	for i := range 100_000 {
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, math.Sin(float64(i)/1e4))
	}
	s.Y[54_321], s.Y[777] = 9, -9
	thin := Thin(s)
	peak, low := 0.0, 0.0
	for _, v := range thin.Y {
		peak, low = max(peak, v), min(low, v)
	}
	if peak != 9 || low != -9 || len(thin.X) > 4*most/2+4 || thin.X[len(thin.X)-1] != 99_999 {
		t.Errorf("%d points from %v to %v", len(thin.X), low, peak)
	}
	if short := Thin(Series{X: []float64{1}, Y: []float64{2}}); len(short.X) != 1 {
		t.Error("a short series was changed")
	}
}

// Instants of a span that the axis has are drawn, each as a line.
func TestInstantsOfSpans(t *testing.T) {
	lines := func(instants ...float64) int {
		c := Chart{X: Axis{Label: "time"}, Series: []Series{{X: []float64{0, 100}, Y: []float64{1, 2}}}, Spans: []Span{
			{Label: "1", Name: "a-b: down", Ranges: [][2]float64{{10, 20}}, Instants: instants},
		}}
		svg, err := c.SVG()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(svg), "<path")
	}
	if without, with := lines(), lines(15, 25, 500); with != without+2 {
		t.Errorf("%d lines without instants and %d with two on the axis", without, with)
	}
}

// Spans are within the axis wherever they end; their labels and names are there to be read.
func TestSpans(t *testing.T) {
	c := Chart{X: Axis{Label: "time"}, Series: []Series{{X: []float64{0, 100}, Y: []float64{1, 2}}}, Spans: []Span{
		{Label: "1", Name: "a-b: down", Ranges: [][2]float64{{10, math.Inf(1)}, {20, 20}}},
		{Label: "2", Name: "h3: paused", Ranges: [][2]float64{{150, 160}}},
	}}
	for range 2 {
		svg, err := c.SVG()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<desc>1 a-b: down; 2 h3: paused</desc>"} {
			if !strings.Contains(string(svg), want) {
				t.Errorf("no %q", want)
			}
		}
		if strings.Contains(string(svg), "Inf") || strings.Contains(string(svg), "NaN") {
			t.Error("a number that is none")
		}
	}
	if x, _ := c.spans(); x.max < 150 {
		t.Errorf("the axis ends at %v, before the last span begins", x.max)
	}
	for _, bad := range [][2]float64{{math.NaN(), 1}, {2, 1}, {0, math.NaN()}, {math.Inf(1), math.Inf(1)}} {
		c.Spans = []Span{{Name: "bad", Ranges: [][2]float64{bad}}}
		if _, err := c.SVG(); err == nil || !strings.Contains(err.Error(), "no stretch of the axis") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
