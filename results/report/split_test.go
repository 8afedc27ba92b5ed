package report

import (
	"fmt"
	"strings"
	"testing"

	"weft/results/record"
)

func TestSplit(t *testing.T) {
	var all Side
	for _, kind := range []string{"roce", "pc4", "swift"} {
		for seed := range uint64(2) {
			at := map[string]any{"transport.kind": kind, "queues.pfc": map[bool]string{true: "on", false: "off"}[kind == "roce"], "seed": seed}
			all = append(all, &Run{Summary: &record.Summary{Point: at, Seed: seed, Status: record.OK}})
		}
	}
	for what, want := range map[string]string{
		"transport.kind":                "two values of transport.kind can be compared, not roce, pc4, swift; choose two, such as --by transport.kind=A,B",
		"transport.kind=pc4,hpcc":       `transport.kind has no value "hpcc"; it has roce, pc4, swift`,
		"transport.kind=pc4,pc4":        "two values of transport.kind can be compared, not pc4, pc4; choose",
		"colour":                        `the sweep does not vary "colour"; it varies queues.pfc, seed, transport.kind`,
		"transport=pc4,roce":            "[map[seed:0] map[seed:1]] [map[seed:0] map[seed:1]]",
		"transport.kind=swift,pc4":      "[map[queues.pfc:off seed:0] map[queues.pfc:off seed:1]] [map[queues.pfc:off seed:0] map[queues.pfc:off seed:1]]",
		"transport.kind=swift,pc4,roce": "two values of transport.kind can be compared, not swift, pc4, roce; choose",
	} {
		a, b, left, err := all.Split(what)
		points := func(s Side) (out []map[string]any) {
			for _, r := range s {
				out = append(out, r.Summary.Point)
			}
			return out
		}
		got := fmt.Sprint(points(a), points(b))
		if chosen := strings.Count(what, "=") > 0; err == nil && len(left) != 1 && chosen {
			t.Errorf("%s: left %q", what, left)
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
	}
	// The runs of a transport without a swept parameter match those of every value of it, and what
	// takes no part is named.
	var some Side
	add := func(kind, status string, seed uint64, at map[string]any) {
		at["transport.kind"], at["seed"] = kind, seed
		some = append(some, &Run{Summary: &record.Summary{Point: at, Seed: seed, Status: status}})
	}
	for seed := range uint64(2) {
		add("wasm", record.OK, seed, map[string]any{"gain": 0.5})
		add("wasm", map[uint64]string{0: record.OK, 1: record.Failed}[seed], seed, map[string]any{"gain": 0.25})
		add("swift", record.OK, seed, map[string]any{})
		add("pc4", record.OK, seed, map[string]any{})
	}
	a, b, left, err := some.Split("transport=wasm,swift")
	got := fmt.Sprint(len(a), len(b), left, err, Unmatched(a, b, [2]string{"wasm", "swift"}))
	if want := "4 4 [2 runs of transport.kind=pc4, which was not chosen] <nil> [wasm, gain=0.25 seed=1: failed]"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if a, b, left, err = some.Split("gain"); len(a) != 2 || len(b) != 2 || err != nil || fmt.Sprint(left) != "[4 runs without gain]" {
		t.Errorf("%d and %d runs, %q, %v", len(a), len(b), left, err)
	}
	if at := all[0].Summary.Point; len(at) != 3 {
		t.Errorf("the runs that were split have changed: %v", at)
	}
}
