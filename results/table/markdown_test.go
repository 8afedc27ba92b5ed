package table

import (
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/results/record"
)

// The table has a word for each run; reasons stand below it, line by line, and cannot end a table
// or a block of text.
func TestMarkdown(t *testing.T) {
	fct := record.Flows{Count: 4, FCT: record.Quantiles{P99: 12.5}, Slowdown: record.Quantiles{P99: 3}}
	part := fct
	part.Unfinished = 1
	runs := []*record.Summary{
		{Lab: "lab", Engine: "sim", Status: "ok", Flows: fct},
		{Lab: "lab", Point: map[string]any{"seed": 1}, Engine: "sim", Status: "failed", Error: "a | <b>\n  ```\n  more", Flows: part},
		{Lab: "lab", Engine: "emu", Status: "ok", Flows: fct,
			Expect: []record.Expect{{That: "drops == 0", Note: "3 is not 0"}}},
		{Lab: "lab", Engine: "emu", Status: "ok", Flows: fct, Fidelity: &record.Fidelity{Verdict: "degraded"}},
	}
	var out strings.Builder
	if err := Markdown(&out, runs); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "markdown", out.String())
	out.Reset()
	if err := Markdown(&out, runs[:1]); err != nil || strings.Contains(out.String(), "flows done") {
		t.Errorf("%v: %s", err, out.String())
	}
}
