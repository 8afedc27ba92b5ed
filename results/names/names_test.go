package names

import (
	"testing"

	"weft/results/record"
)

// Values of lab files are written as words, and none of their syntax is left.
func TestValue(t *testing.T) {
	for v, want := range map[string]string{
		"pc4": "pc4", "64KB": "64 KB", "2rtt": "2rtt", "25%bdp": "25%bdp", "": "", "[": "[", "{}": "", "0.5": "0.5",
		"{collective: all-gather, algorithm: ring, size: 1MB}":               "all-gather, algorithm ring, size 1 MB",
		"{collective: all-reduce, ranks: {groups: 8, size: 8}, size: 300us}": "all-reduce, ranks (groups 8, size 8), size 300 us",
		"{ecn: {kmin: 400KB}, buffer_limit: 2MB}":                            "ecn (kmin 400 KB), buffer limit 2 MB",
		"[roce, {kind: pc4}]": "roce, (pc4)",
		`{about: "a b"}`:      "about a b",
		"{broken: {":          "broken:",
	} {
		if got := Value(v); got != want {
			t.Errorf("%s is %q; want %q", v, got, want)
		}
	}
}

// A point is named by what was swept: parameters of other transports are left out, and the seed is
// last.
func TestPoint(t *testing.T) {
	m := &record.Manifest{Control: "DCQCN", Point: map[string]any{
		"seed": uint64(3), "transport.kind": "roce", "transport.pc4.ai": "1Gbps", "transport.roce.qps": 4, "workload.0": "{collective: incast, size: 1MB}",
		"workload.1.parallel": 1e6,
	}}
	if got, want := Point(m), "roce (DCQCN), qps 4, incast, size 1 MB, parallel 1000000, seed 3"; got != want {
		t.Errorf("the point is %q; want %q", got, want)
	}
	if got := Point(&record.Manifest{}); got != "" {
		t.Errorf("a run outside a sweep is %q", got)
	}
}
