package benchmark

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"weft/collectives/bench"
	"weft/collectives/schedule"
	"weft/collectives/trace"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/record"
	"weft/units"
)

func request() Request {
	return Request{
		Collectives: []string{schedule.AllReduce}, Algorithms: []string{"auto"}, Ranks: 4,
		Sizes: bench.Sizes{Begin: 8, End: 4 * units.MiB, Factor: 512}, Warmup: 1, Type: schedule.Float32,
		Op: schedule.Sum,
	}
}

func TestMeasure(t *testing.T) {
	r := request()
	got, err := r.Measure()
	if err != nil {
		t.Fatal(err)
	}
	m := got[0]
	if len(got) != 1 || m.Title() != "all-reduce by ring" || len(m.Specs) != 3 || m.Specs[2].Size != 2*units.MiB ||
		m.Specs[2].Chunk != 128*units.KB {
		t.Fatalf("%+v", got)
	}
	if want := []int{20, 20, 10}; m.Iterations[0] != want[0] || m.Iterations[1] != want[1] ||
		m.Iterations[2] != want[2] {
		t.Errorf("iterations %v, want %v", m.Iterations, want)
	}
	items, err := trace.Parse("bench.csv", []byte(m.Trace()))
	if err != nil {
		t.Fatal(err)
	}
	for i, it := range items {
		s, err := it.Spec(4)
		if err != nil || s.Size != m.Specs[i].Size || s.Algorithm != schedule.Ring ||
			it.Repeat != 1+m.Iterations[i] || it.Previous != (i > 0) {
			t.Errorf("line %d: %+v, %v", i, it, err)
		}
	}
}

// Every collective is measured with every algorithm that supports this number of ranks, and its
// trace is valid.
func TestMeasureAll(t *testing.T) {
	for _, ranks := range []int{2, 6, 8} {
		r := request()
		r.Ranks, r.Collectives, r.Algorithms = ranks, schedule.Collectives(), []string{"all"}
		all, err := r.Measure()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i := range all {
			m := &all[i]
			seen[m.Collective] = true
			items, err := trace.Parse("bench.csv", []byte(m.Trace()))
			if err != nil {
				t.Fatalf("%s: %v", m.Title(), err)
			}
			for k := range items {
				if _, err := items[k].Spec(ranks); err != nil {
					t.Errorf("%s of %d ranks: %v", m.Title(), ranks, err)
				}
			}
		}
		if len(seen) != len(schedule.Collectives()) {
			t.Errorf("%d ranks: %d collectives of %d", ranks, len(seen), len(schedule.Collectives()))
		}
	}
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	for want, change := range map[string]func(*Request){
		"1 ranks; at least 2":     func(r *Request) { r.Ranks = 1 },
		"-1 iterations":           func(r *Request) { r.Iterations = -1 },
		"100001 iterations":       func(r *Request) { r.Iterations = 100_001 },
		"root 4; expected a rank": func(r *Request) { r.Root = 4 },
		"root -1":                 func(r *Request) { r.Root = -1 },
		"no collective":           func(r *Request) { r.Collectives = nil },
		"the first size":          func(r *Request) { r.Sizes.Begin = 0 },
		"2001 sizes":              func(r *Request) { r.Sizes = bench.Sizes{Begin: 4, End: 8004, Step: 4} },
		`algorithm "chain" is none of all-reduce`: func(r *Request) { r.Algorithms = []string{"chain"} },
		`collective "gossip" is not known`:        func(r *Request) { r.Collectives = []string{"gossip"} },
		"3 ranks do not form local groups": func(r *Request) {
			r.Ranks, r.Algorithms = 3,
				[]string{"hierarchical"}
		},
		"every size is too small": func(r *Request) {
			r.Collectives,
				r.Sizes.End = []string{"all-gather"}, 8
		},
		"chunk 5 is not a multiple": func(r *Request) { r.Chunk = 5 },
		"recursive-halving needs a power of two as the": func(r *Request) {
			r.Collectives, r.Algorithms, r.Ranks = []string{"reduce-scatter"}, []string{"recursive-halving"}, 6
		},
	} {
		r := request()
		change(&r)
		if _, err := r.Measure(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The table has the sizes that every rank finished. Times are means over ranks without the warm-up.
func TestRows(t *testing.T) {
	r := request()
	r.Ranks, r.Iterations, r.Sizes = 2, 2, bench.Sizes{Begin: 1 * units.MiB, End: 4 * units.MiB, Factor: 2}
	all, err := r.Measure()
	if err != nil {
		t.Fatal(err)
	}
	m := all[0]
	at := units.Time(0)
	var parts []record.Part
	for item := range 2 {
		for rep := range 3 {
			took := 100 * units.Microsecond * units.Time(1+item)
			if rep == 0 {
				took *= 10 // the warm-up
			}
			for rank := range 2 {
				if item == 1 && rep == 2 && rank == 1 {
					continue // never finished
				}
				parts = append(parts, record.Part{Item: item, Repeat: rep, Rank: rank, Start: at, End: at + took,
					Checked: 5, Wrong: int64(rank)})
			}
			at += took
		}
	}
	rows, err := m.Rows(parts)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	got := rows[0].OutOfPlace
	if got.Time != 100*units.Microsecond || got.Wrong != 3 || !got.Checked || rows[0].Size != units.MiB {
		t.Errorf("%+v", got)
	}
	if bus := bench.GBps(got.Bus); math.Abs(bus-10.48576) > 1e-6 { // 1 MiB in 100 us; the factor of two ranks is 1
		t.Errorf("bus bandwidth %g", bus)
	}
	for _, p := range []record.Part{{Item: 3}, {Item: -1}, {Rank: 2}, {Rank: -1}} {
		if _, err := m.Rows([]record.Part{p}); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
	if chart, ok := Chart("t", "c", 12.5, []Curve{{"pc4", rows}, {"none", nil}}); !ok || len(chart.Series) != 1 ||
		len(chart.Marks) != 1 {
		t.Errorf("%t, %+v", ok, chart)
	} else if _, err := chart.SVG(); err != nil {
		t.Error(err)
	}
	if _, ok := Chart("t", "c", 0, nil); ok {
		t.Error("a picture of nothing")
	}
}

func TestNetworks(t *testing.T) {
	for _, kind := range Topologies() {
		text, err := Network(kind, 9)
		if err != nil || !strings.Contains(text, "kind: "+kind) {
			t.Errorf("%s: %v\n%s", kind, err, text)
		}
	}
	if _, err := Network("ring", 9); err == nil || !strings.Contains(err.Error(), "is not one of star") {
		t.Errorf("error %v", err)
	}
	if m := (&Measured{Collective: "gather", Algorithm: "direct"}); m.Title() != "gather" {
		t.Errorf("%s", m.Title())
	}
}

// A benchmark lab replaces the workload and the expectations of the network's lab by the trace.
func TestLabs(t *testing.T) {
	q := request()
	all, err := q.Measure()
	if err != nil {
		t.Fatal(err)
	}
	text := "weft: 1\nname: own\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: " +
		"1MB}]\nexpect: [drops == 7]\n"
	labs, err := all[0].Labs("own", []byte(text), lab.Options{Set: MadeFor("roce")}, "roce", 4)
	if err != nil {
		t.Fatal(err)
	}
	l := labs[0]
	if len(labs) != 1 || len(l.Workload) == 0 || l.Workload[0].Collective != schedule.AllReduce ||
		len(l.Expect) != 0 || l.Transport.Kind != "roce" || l.Queues.PFC == nil {
		t.Errorf("%d labs, %d items over %s, %d expectations", len(labs), len(l.Workload), l.Transport.Kind,
			len(l.Expect))
	}
	if _, err := all[0].Labs("own", []byte(text), lab.Options{}, "pc4", 5); err == nil {
		t.Error("five ranks of four hosts")
	}
	if set := MadeFor("pc4"); set != nil {
		t.Errorf("pc4 needs no network of its own, got %q", set)
	}
	labs, err = all[0].Labs("own", []byte(text), lab.Options{Set: MadeFor("uec")}, "uec", 4)
	if err != nil {
		t.Fatal(err)
	}
	notes := Notes(labs[0], MadeFor("uec"))
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "queues.trim: on, since uec learns of losses") {
		t.Errorf("notes %q", notes)
	}
	if out := experiment.Outside(labs[0]); len(out) > 0 {
		t.Errorf("uec is outside its conditions: %v", out)
	}
}

// A run that measured nothing has no bandwidth and no number of wrong elements: 0 would be a good
// one.
func TestNothingMeasuredHasNoValue(t *testing.T) {
	r := request()
	all, err := r.Measure()
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{`"avg_busbw_gb_per_s"`, `"avg_busbw_gbps"`, `"out_of_bounds"`, `"wrong"`}
	row := func(checked bool) bench.Row {
		return bench.Row{Size: 8, OutOfPlace: &bench.Result{Measure: bench.Measure{Checked: checked}, Bus: units.Gbps}}
	}
	for _, c := range []struct {
		rows []bench.Row
		want []string
	}{
		{nil, nil}, {[]bench.Row{row(false)}, keys[:2]}, {[]bench.Row{row(true)}, keys},
		{[]bench.Row{row(true), row(false)}, []string{keys[0], keys[1], keys[3]}},
	} {
		text, err := json.Marshal((&Result{Of: &all[0], Rows: c.rows}).JSON())
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if got, want := strings.Contains(string(text), key), slices.Contains(c.want, key); got != want {
				t.Errorf("%s in %s: %t, want %t", key, text, got, want)
			}
		}
	}
}
