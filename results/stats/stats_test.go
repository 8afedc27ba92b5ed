package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weft/results/record"
	"weft/units"
)

func TestQuantileIsNearestRank(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for _, c := range []struct {
		values []int
		q      float64
		want   int
	}{
		{nil, 0.5, 0},
		{[]int{7}, 0, 7},
		{[]int{7}, 1, 7},
		{[]int{1, 2}, 0.5, 1},
		{[]int{1, 2, 3}, 0.5, 2},
		{[]int{15, 20, 35, 40, 50}, 0.05, 15},
		{[]int{15, 20, 35, 40, 50}, 0.30, 20},
		{[]int{15, 20, 35, 40, 50}, 0.40, 20},
		{[]int{15, 20, 35, 40, 50}, 1.00, 50},
		{hundred, 0.99, 99},
		{hundred, 0.50, 50},
		{hundred, -1, 1},
		{hundred, 2, 100},
	} {
		if got := Quantile(c.values, c.q); got != c.want {
			t.Errorf("Quantile(%v, %v) = %d, want %d", c.values, c.q, got, c.want)
		}
	}
}

// The definition, computed directly: the smallest value with at least the fraction q at or below
// it.
func TestQuantileAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(-50, 50), 1, 300).Draw(t, "values")
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		slices.Sort(values)
		got := Quantile(values, float64(percent)/100)
		want := values[len(values)-1]
		for _, v := range values {
			below := 0
			for _, w := range values {
				if w <= v {
					below++
				}
			}
			if below*100 >= percent*len(values) {
				want = v
				break
			}
		}
		if got != want {
			t.Fatalf("Quantile(%v, %d %%) = %d, want %d", values, percent, got, want)
		}
	})
}

func TestDescribe(t *testing.T) {
	times := []units.Time{4 * units.Microsecond, 1 * units.Microsecond, 2 * units.Microsecond, 3 * units.Microsecond}
	want := record.Quantiles{Mean: 2.5, P50: 2, P99: 4, Max: 4}
	if diff := cmp.Diff(want, Describe(times, float64(units.Microsecond))); diff != "" {
		t.Error(diff)
	}
	if got := Describe([]float64(nil), 1); got != (record.Quantiles{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{
		{nil, 1},
		{[]float64{0, 0}, 1},
		{[]float64{5, 5, 5}, 1},
		{[]float64{1, 0, 0, 0}, 0.25},
		{[]float64{1, 2, 3}, 36.0 / 42},
	} {
		if got := Jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain(%v) = %v, want %v", c.shares, got, c.want)
		}
	}
}

func TestDistKeepsToExactQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(units.Second)), 1, 500).Draw(t, "values")
		d := NewDist()
		exact := make([]units.Time, len(values))
		for i, v := range values {
			exact[i] = units.Time(v)
			d.Record(exact[i])
		}
		slices.Sort(exact)
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			got, want := float64(d.Quantile(q)), float64(Quantile(exact, q))
			if math.Abs(got-want) > want/1000+float64(units.Nanosecond) {
				t.Fatalf("%v-quantile %v, want %v within 0.1 %%", q, got, want)
			}
		}
		sum := d.Describe(units.Picosecond)
		if want := Mean(exact); math.Abs(sum.Mean-want) > 1e-9*want {
			t.Fatalf("mean %v, want %v", sum.Mean, want)
		}
		if got := float64(d.Mean()); math.Abs(got-sum.Mean) > 1 {
			t.Fatalf("mean %v as a time, %v described", got, sum.Mean)
		}
		if sum.Max != float64(exact[len(exact)-1]) || d.Max() != exact[len(exact)-1] {
			t.Fatalf("max %v, want %v", sum.Max, exact[len(exact)-1])
		}
	})
}

func TestDistTravelsAsJSON(t *testing.T) {
	a, b := NewDist(), NewDist()
	for i := range units.Time(1000) {
		a.Record(i * units.Nanosecond)
		b.Record(i * units.Microsecond)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var c Dist
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	c.Merge(a)
	b.Merge(a)
	if diff := cmp.Diff(b.Bins(), c.Bins()); diff != "" {
		t.Error(diff)
	}
	if got, want := c.Describe(units.Microsecond), b.Describe(units.Microsecond); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if c.Count() != 2000 {
		t.Errorf("count %d, want 2000", c.Count())
	}
}

func TestDistRefusesBrokenJSON(t *testing.T) {
	for _, text := range []string{`7`, `{"hist":"AAAA"}`, `{"hist":"","count":1}`} {
		if err := new(Dist).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	good, err := NewDist().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var w wireDist
	if err := json.Unmarshal(good, &w); err != nil {
		t.Fatal(err)
	}
	w.Count = 3
	lie, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := new(Dist).UnmarshalJSON(lie); err == nil {
		t.Error("a count that is not the histogram's was accepted")
	}
}

func TestDistLimits(t *testing.T) {
	d := NewDist()
	if d.Quantile(0.5) != 0 || d.Describe(units.Microsecond) != (record.Quantiles{}) || d.Bins() != nil {
		t.Error("an empty distribution is not all zero")
	}
	d.Record(-5)
	d.Record(5000 * units.Second)
	if got := d.Describe(units.Second); got.Max != 5000 || got.P50 > 1e-9 {
		t.Errorf("got %+v, want a median near 0 and a maximum of 5000 s", got)
	}
}

func TestNothingRecorded(t *testing.T) {
	if d := NewDist(); d.Mean() != 0 || d.Max() != 0 || d.Quantile(0.5) != 0 || d.Count() != 0 {
		t.Errorf("mean %d, max %d, median %d of %d", d.Mean(), d.Max(), d.Quantile(0.5), d.Count())
	}
}

func BenchmarkRecord(b *testing.B) {
	d := NewDist()
	rng := rand.New(rand.NewPCG(1, 2))
	var values [4096]units.Time
	for i := range values {
		values[i] = units.Time(rng.ExpFloat64() * float64(20*units.Microsecond))
	}
	i := 0
	for b.Loop() {
		d.Record(values[i%len(values)])
		i++
	}
}
