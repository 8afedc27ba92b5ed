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
		a, b, err := all.Split(what)
		points := func(s Side) (out []map[string]any) {
			for _, r := range s {
				out = append(out, r.Summary.Point)
			}
			return out
		}
		got := fmt.Sprint(points(a), points(b))
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
	}
	if at := all[0].Summary.Point; len(at) != 3 {
		t.Errorf("the runs that were split have changed: %v", at)
	}
}
