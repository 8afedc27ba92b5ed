package bench

import (
	"strings"
	"testing"

	"weft/collectives/schedule"
)

func TestElements(t *testing.T) {
	for text, want := range map[string]schedule.Type{"float": schedule.Float32, "float32": schedule.Float32, "bfloat16": schedule.BFloat16} {
		if got, err := ParseType(text); got != want || err != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if got, err := ParseReduction("sum"); got != schedule.Sum || err != nil {
		t.Errorf("sum: %q, %v", got, err)
	}
	for text, want := range map[string]string{
		"all": `"all": a benchmark uses one; run it once for each of float32, `, "half": "; bfloat16 has the same size", "complex": `"complex": expected one of float32, `,
	} {
		if _, err := ParseType(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseReduction("avg"); err == nil || !strings.Contains(err.Error(), "same data as a sum") {
		t.Errorf("avg: %v", err)
	}
}
