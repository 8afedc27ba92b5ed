package record

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Fields without a value are null, with all that they hold; the others and their order stay.
func TestSummaryWithoutValues(t *testing.T) {
	s := Summary{Lab: "x", Verified: true, Flows: Flows{Count: 3}, Collectives: []Collective{{Name: "a", Wrong: 1}},
		Expect: []Expect{{That: "drops <= 0", Unmeasured: true}, {That: "flows == 3", Got: 3, OK: true}}}
	whole, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	s.Lack("nobody looked", "verified", "rtt_us", "network.retransmits", "collectives.0.wrong")
	s.Lack("another reason", "rtt_us.p99")
	text, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	want := string(whole)
	for old, now := range map[string]string{
		`"verified":true`: `"verified":null`, `"retransmits":0`: `"retransmits":null`, `"wrong":1`: `"wrong":null`,
		`"rtt_us":{"mean":0,"p50":0,"p99":0,"max":0}`: `"rtt_us":{"mean":null,"p50":null,"p99":null,"max":null}`,
	} {
		want = strings.Replace(want, old, now, 1)
	}
	got := string(text)
	if i := strings.Index(got, `"unmeasured":{`); i >= 0 {
		end := i + strings.Index(got[i:], "},") + 2
		got = got[:i] + got[end:]
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var back Summary
	if err := json.Unmarshal(text, &back); err != nil || back.Lacks("rtt_us.p50") != "nobody looked" || back.Lacks("flows.count") != "" ||
		!strings.Contains(string(text), `"got":null`) || !strings.Contains(string(text), `"got":3`) {
		t.Errorf("%v: %s", err, text)
	}
}

// Numbers that JSON cannot express lose their value, wherever they are.
func TestSummaryWithInfiniteNumbers(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	s := Summary{RTT: Quantiles{Max: inf}, Dilation: nan, Rates: &Rates{Jain: nan}, Metrics: []Metric{{Name: "x", Mean: -inf, Values: []float64{1, inf}}},
		Clocks: Clocks{ConvergedUS: &inf}}
	paths := s.DropNonFinite()
	text, err := json.Marshal(&s)
	if want := "dilation rtt_us.max metrics.0.mean metrics.0.values.1 rates.jain clocks.converged_us"; err != nil || strings.Join(paths, " ") != want {
		t.Errorf("%v: %q, want %q", err, paths, want)
	}
	for _, want := range []string{`"jain":null`, `"values":[1,null]`, `"dilation":null`, `"converged_us":null`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
