package store

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"weft/results/record"
)

// The timeline of a run has a process for each host and one for ports, a span for each collective
// and finished message, and the queues; its times are microseconds.
func TestPerfetto(t *testing.T) {
	r := createRun(t, t.TempDir())
	writeAll(t, r)
	if err := r.Finish(newYear, &record.Summary{Status: "ok"}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Perfetto(&b, r.Dir()); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		Unit   string  `json:"displayTimeUnit"`
		Events []event `json:"traceEvents"`
	}
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatalf("%v in %s", err, b.Bytes())
	}
	processes := map[int]any{}
	began := map[string]event{}
	var spans []string
	counters := 0
	for _, e := range trace.Events {
		switch e.Phase {
		case "M":
			processes[e.Host] = e.Args["name"]
		case "b":
			began[e.Cat+e.ID] = e
		case "e":
			from, ok := began[e.Cat+e.ID]
			if !ok || from.Host != e.Host || from.Name != e.Name {
				t.Errorf("%+v ends what began as %+v", e, from)
			}
			spans = append(spans, e.Name+" "+from.At.String()+" "+e.At.String())
		case "C":
			counters++
			if e.Name != "edge0->h1" || e.At != "12.345678" || e.Args["queued bytes"] != 4158.0 || processes[e.Host] != "ports" {
				t.Errorf("counter %+v", e)
			}
		default:
			t.Errorf("event %+v", e)
		}
	}
	want := []string{"all-reduce, item 0 0.000000 3.000000", "to h1 0.500000 10.500000"} // one message did not finish
	if slices.Sort(spans); !slices.Equal(spans, want) || counters != 1 || len(processes) != 3 || trace.Unit != "ns" {
		t.Errorf("spans %q, %d counters, processes %v, unit %s", spans, counters, processes, trace.Unit)
	}
	if err := Perfetto(&b, t.TempDir()); err == nil {
		t.Error("no error for a folder without a run")
	}
}

func TestNamesOfItems(t *testing.T) {
	tl := &timeline{names: map[int]string{}}
	tl.call("all-reduce of tp0", "1,3-4")
	tl.call("hostile", "9-1,-5,x,7-99999999999999,0-")
	for item, want := range []string{"graph, item 0", "all-reduce of tp0", "graph, item 2", "all-reduce of tp0", "all-reduce of tp0"} {
		if got := tl.name("graph", int64(item)); got != want {
			t.Errorf("item %d is %q; want %q", item, got, want)
		}
	}
}
