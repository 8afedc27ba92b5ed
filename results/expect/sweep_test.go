package expect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weft/internal/fuzztest"
	"weft/results/record"
)

// sweepPoints returns a sweep over transports, ranks and two seeds. p99 is 10 us for each rank with
// pc4, 30 us with roce.
func sweepPoints() []Point {
	var out []Point
	for seed := 1; seed <= 2; seed++ {
		for _, kind := range []string{"pc4", "roce"} {
			for _, ranks := range []int{2, 4} {
				fct := map[string]float64{"pc4": 10, "roce": 30}[kind]*float64(ranks) + float64(seed)
				out = append(out, Point{
					At: map[string]string{"transport.kind": kind, "workload.0.ranks": fmt.Sprint(ranks), "seed": fmt.Sprint(seed)},
					Summary: &record.Summary{
						Status: "ok", Verified: true,
						Flows: record.Flows{Count: int64(ranks), FCT: record.Quantiles{P99: fct}},
					},
					Scope: Scope{Setting: func(path string) (string, bool) { return "2us", path == "transport.pc4.target_qtime" }},
				})
			}
		}
	}
	return out
}

func TestSweep(t *testing.T) {
	for line, want := range map[string]string{
		"fct.p99[transport=pc4] <= 0.5 * fct.p99[transport=roce]":         "",
		"fct.p99[transport.kind=roce] <= 2 * fct.p99[transport.kind=pc4]": "0 of 4 met; worst at seed=1 workload.0.ranks=4: got 121us, expected <= 82us",
		"fct.p99[transport=roce] <= 3.1 * fct.p99[transport=pc4]":         "",
		"fct.p99[transport=roce] <= 2.87 * fct.p99[transport=pc4]":        "1 of 4 met; worst at seed=1 workload.0.ranks=4: got 121us, expected <= 117.7us",
		"mean(fct.p99[transport=pc4, seed=*]) >= 20us":                    "",
		"max(fct.p99[transport=pc4, ranks=*, seed=*]) == 42us":            "",
		"median(fct.p99[transport=pc4, ranks=2, seed=*]) == 21.5us":       "",
		"min(fct.p99[transport=*]) > transport.pc4.target_qtime":          "",
		"verified[transport=pc4] == true":                                 "",
		"fct.p99[ranks=4, seed=1] > fct.p99[ranks=2, seed=2]":             "",
		"fct.p99[ranks=2] > fct.p99[ranks=4]":                             "0 of 4 met; worst at seed=1 transport.kind=roce: got 61us, expected > 121us",
		"fct.p99[transport=swift] > 1us":                                  "column 9: no point has transport.kind=swift; there are pc4, roce",
		"fct.p99[colour=red] > 1us":                                       `column 9: the sweep does not vary "colour"`,
		"fct.p99[transport=pc4] <= fct.p99":                               "column 27: fct.p99 needs a transport.kind, as other names in this line have: fct.p99[transport.kind=...]",
		"fct.p99[transport=pc4, ranks=2] <= fct.p99[transport=pc4]":       "fct.p99 needs a workload.0.ranks",
		"rtt.mean[transport=pc4] > 1us":                                   "no round-trip time was measured",
	} {
		e, err := Parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		got := e.Sweep(sweepPoints())
		if (want == "") != got.OK || !strings.Contains(got.Note, want) {
			t.Errorf("%s: ok %t, %q; want %q", line, got.OK, got.Note, want)
		}
		if one := e.Eval(sweepPoints()[0].Summary, sweepPoints()[0].Scope); one.OK {
			t.Errorf("%s holds for a single run", line)
		}
	}
	if got := Sweep([]Line{{Text: "flows > 1"}, {"flows[ranks=2] == 2", "flows[ranks=2] == 2 when x", sweepPoints()}}); len(got) != 1 || !got[0].OK || !strings.HasSuffix(got[0].That, "when x") {
		t.Errorf("got %+v", got)
	}
}

// A comparison that timeouts decide has a doubt if the minimum timeouts of its runs differ, unless
// the sweep varies them.
func TestTimeoutDoubt(t *testing.T) {
	doubtful := func(line string, change func(p *Point)) string {
		all := sweepPoints()
		for i := range all {
			s := all[i].Summary
			s.Transport = all[i].At["transport.kind"]
			s.RTOMinUS, s.RTOMinKey = map[string]float64{"pc4": 1000, "roce": 51300}[s.Transport], "transport."+s.Transport+".rto_min"
			if i == len(all)-1 { // roce, 4 ranks, seed 2
				s.Tail = &record.Tail{Timeouts: 1}
			}
			change(&all[i])
		}
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		return e.Sweep(all).Doubt
	}
	as := func(*Point) {}
	const compared = "mean(fct.p99[transport=pc4, seed=*]) <= mean(fct.p99[transport=roce, seed=*])"
	if got, want := doubtful(compared, as), "timeouts decide it, and the minimum timeouts differ: 1ms (pc4), 51.3ms (roce)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, got := range map[string]string{
		"one transport":    doubtful("mean(fct.p99[transport=roce, seed=*]) > 1us", as),
		"not about time":   doubtful("max(max_queue[transport=pc4, seed=*]) <= max(max_queue[transport=roce, seed=*])", as),
		"nothing decided":  doubtful(compared, func(p *Point) { p.Summary.Tail = nil }),
		"the same for all": doubtful(compared, func(p *Point) { p.Summary.RTOMinUS = 1000 }),
		"swept":            doubtful(compared, func(p *Point) { p.At[p.Summary.RTOMinKey] = "x" }),
	} {
		if got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A comparison has a doubt if it uses runs with invalid fidelity.
func TestFidelityDoubt(t *testing.T) {
	all := sweepPoints()
	for i := range all {
		if all[i].At["transport.kind"] == "roce" && all[i].At["seed"] == "2" {
			all[i].Summary.Fidelity = &record.Fidelity{Verdict: "invalid"}
		}
	}
	for line, want := range map[string]string{
		"fct.p99[transport=pc4] <= fct.p99[transport=roce]": "fidelity of 2 of its 8 runs is invalid, so this proves nothing; the first is seed=2 transport.kind=roce workload.0.ranks=2",
		"mean(fct.p99[transport=pc4, seed=*]) > 1us":        "",
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Sweep(all); !got.OK || got.Doubt != want || got.Unproven != (want != "") {
			t.Errorf("%s: ok %t, %q; want %q", line, got.OK, got.Doubt, want)
		}
	}
}

func TestValuesInBraces(t *testing.T) {
	at := func(down string) Point {
		return Point{At: map[string]string{"topology.down": down, "seed": "1"}, Summary: &record.Summary{Status: "ok", Flows: record.Flows{Count: 1}}}
	}
	few, many := at("{random: 4, among: 2 leaves}"), at("{random: 64, among: 16 leaves}")
	many.Summary.Flows.Count = 3
	e, err := Parse("flows[down={random: 64, among: 16 leaves}, seed=1] == 3 * flows[seed=1, down={random: 4, among: 2 leaves}]")
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Sweep([]Point{few, many}); !got.OK {
		t.Error(got.Note)
	}
}

func TestSelectionErrors(t *testing.T) {
	for line, want := range map[string]string{
		"fct.p99[transport=pc4 > 1us":               "column 8: missing ] for this [",
		"fct.p99[] > 1us":                           `column 9: "" selects nothing`,
		"fct.p99[seed=1, x] > 1us":                  `column 16: "x" selects nothing`,
		"fct.p99[seed=*] > 1us":                     "column 1: this is one value for each point",
		"1us[seed=1] > 1us":                         "column 4: expected an operator",
		"sqrt(flows[seed=*]) > 1":                   "column 6: this is one value for each point",
		"true[seed=1] == true":                      "a selection must follow a name",
		"mean(fct.p99[seed=*]) > 3":                 "between a time and a plain number",
		"max(fct.p99[seed=*], flows[seed=*]) > 3us": "max between a time and a plain number",
	} {
		_, err := Parse(line)
		var at *Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]string{
		"fct.p99[transport=pc4, ranks=4, seed=2]":                                               "42 us 42us",
		"mean(fct.p99[transport=pc4, ranks=4, seed=*]) / fct.p99[transport=pc4,ranks=2,seed=1]": "",
		"max(flows[transport=*, ranks=*, seed=*])":                                              "4  4",
	} {
		e, err := ParseValue(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		q, err := e.Value(sweepPoints())
		if got := fmt.Sprintf("%g %s %s", q.Value, q.Unit, q.Text); err != nil || want != "" && got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	e, err := ParseValue("fct.p99[transport=pc4, ranks=4]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Value(sweepPoints()); err == nil || !strings.Contains(err.Error(), "[seed=*]") {
		t.Errorf("several values in place of one: %v", err)
	}
	for _, text := range []string{"verified == true", "fct.p99[seed=*]", "(", "verified"} {
		if _, err := ParseValue(text); err == nil {
			t.Errorf("no error for %s", text)
		}
	}
	failed := sweepPoints()
	failed[0].Summary.Status = "failed"
	e, _ = ParseValue("mean(fct.p99[transport=*, ranks=*, seed=*])")
	if _, err := e.Value(failed); err == nil || !strings.Contains(err.Error(), "failed") {
		t.Errorf("a failed run counts: %v", err)
	}
}

func FuzzSweep(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, s := range []string{"fct.p99[transport=pc4] <= 0.5 * fct.p99[transport=roce]", "abs(rtt.mean - 4us) <= 10% * 4us", "a[b=*", "mean(flows[x=*],1)"} {
		corpus.Add(s)
	}
	corpus.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			return
		}
		e.Sweep(sweepPoints())
		e.Eval(sweepPoints()[0].Summary, Scope{})
	})
}

// A point without a parameter, because another transport has it, is compared with each value of it.
func TestPathsOfSomePoints(t *testing.T) {
	point := func(p99 float64, seed, transport string, rest ...string) Point {
		p := Point{At: map[string]string{"seed": seed, "transport.kind": transport}, Summary: &record.Summary{
			Status: "ok", Flows: record.Flows{Count: 1, FCT: record.Quantiles{P99: p99}},
		}}
		for i := 0; i < len(rest); i += 2 {
			p.At[rest[i]] = rest[i+1]
		}
		return p
	}
	var all []Point
	for _, seed := range []string{"1", "2"} {
		all = append(all, point(10, seed, "wasm", "transport.wasm.params.gain", "0.1"),
			point(20, seed, "wasm", "transport.wasm.params.gain", "0.5"), point(40, seed, "swift"))
	}
	for line, want := range map[string]string{
		"fct.p99[transport=wasm] <= 0.5 * fct.p99[transport=swift]":                       "4 of 4 met; closest at seed=1 transport.wasm.params.gain=0.5",
		"fct.p99[transport=wasm] <= 0.4 * fct.p99[transport=swift]":                       "2 of 4 met; worst at seed=1 transport.wasm.params.gain=0.5: got 20us, expected <= 16us",
		"fct.p99[transport=wasm, gain=0.1] == 0.25 * fct.p99[transport=swift]":            "2 of 2 met",
		"fct.p99[transport=wasm, gain=0.5] < fct.p99[transport=swift, gain=0.5]":          "2 of 2 met",
		"fct.p99[transport=wasm, gain=0.5] < fct.p99[transport=swift, gain=null]":         "2 of 2 met",
		"fct.p99[gain=0.1] < fct.p99[transport=swift]":                                    "2 of 2 met",
		"fct.p99[gain=0.5] == 20us":                                                       "2 of 2 met",
		"fct.p99[gain=null] == 40us":                                                      "2 of 2 met",
		"max(fct.p99[transport=wasm, gain=*, seed=*]) < fct.p99[transport=swift, seed=1]": "",
		"fct.p99[gain=0.1] < fct.p99":                                                     "column 21: fct.p99 needs a transport.wasm.params.gain",
		"fct.p99[gain=0.7] < 1s":                                                          "column 9: no point has transport.wasm.params.gain=0.7; there are 0.1, 0.5, null",
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Sweep(all), e.CheckSweep(all)
		refused := strings.HasPrefix(want, "column")
		if got.OK != (!refused && !strings.Contains(want, "worst")) || !strings.Contains(got.Note, want) || (err != nil) != refused {
			t.Errorf("%s: ok %t, %q, %v; want %q", line, got.OK, got.Note, err, want)
		}
	}
	all = append(all, point(9, "1", "ccm", "transport.ccm.beta", "1"), point(9, "2", "ccm", "transport.ccm.beta", "2"))
	for line, want := range map[string]string{
		"fct.p99[transport=wasm] < fct.p99[transport=ccm]":                                   "column 1: no point that fct.p99 selects has transport.ccm.beta=1, as others do; expected transport.ccm.beta=... in the selection of those",
		"fct.p99[transport=wasm, gain=0.1] < fct.p99[transport=ccm, seed=1, beta=2]":         "needs a seed",
		"fct.p99[transport=wasm, gain=0.1, seed=1] > fct.p99[transport=ccm, beta=1]":         "",
		"fct.p99[transport=wasm, gain=0.1, seed=1] > fct.p99[transport=ccm, beta=2, seed=1]": "fct.p99: no point of the sweep is selected; expected values that one point has together",
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.CheckSweep(all); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", line, err, want)
		}
	}
}

// A path that changes together with one in a selection does not separate points.
func TestImpliedPaths(t *testing.T) {
	var all []Point
	for _, p := range sweepPoints() {
		p.At["queues"] = "lossy"
		if p.At["transport.kind"] == "roce" {
			p.At["queues"] = "lossless"
		}
		all = append(all, p)
	}
	for line, want := range map[string]string{
		"fct.p99[transport=pc4] <= 0.5 * fct.p99[transport=roce]":         "4 of 4 met; closest at seed=2 workload.0.ranks=2",
		"fct.p99[transport.kind=roce] <= 2 * fct.p99[transport.kind=pc4]": "0 of 4 met; worst at seed=1 workload.0.ranks=4: got 121us, expected <= 82us",
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Sweep(all); got.OK != strings.HasPrefix(want, "4 of 4") || got.Note != want {
			t.Errorf("%s: ok %t, %q; want %q", line, got.OK, got.Note, want)
		}
	}
}
