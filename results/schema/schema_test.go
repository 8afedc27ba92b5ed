package schema

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"weft/internal/golden"
	"weft/results/record"
	"weft/results/store"
)

// The published schemas match the types.
func TestPublishedSchemas(t *testing.T) {
	golden.File(t, "../../docs/summary.schema.json", string(Summary()))
	golden.File(t, "../../docs/manifest.schema.json", string(Manifest()))
}

func TestSummariesMeetTheSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Summary()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("summary.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("summary.json")
	if err != nil {
		t.Fatal(err)
	}
	converged := 1.0
	for _, sum := range []record.Summary{
		{Format: store.Format, Status: record.Unfinished},
		{
			Format: store.Format, Status: record.OK, Point: map[string]any{"seed": 1},
			Fidelity: &record.Fidelity{Verdict: "ok"}, Collectives: []record.Collective{{Name: "x"}},
			Rates: &record.Rates{Jain: 1}, Expect: []record.Expect{{That: "x"}}, Warnings: []string{"y"},
			Clocks: record.Clocks{
				ConvergedUS: &converged, Stability: &record.Stability{At: []record.Averaged{{TauUS: 1}},
					Classes: []record.Class{{Name: "A"}}},
			},
		},
	} {
		b, err := json.Marshal(sum)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		for right, wrong := range map[string]string{`"seed":0`: `"seed":"x"`, `"status":"` + sum.Status: `"status":"x`} {
			bad, _ := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(b), right, wrong, 1)))
			if err := s.Validate(bad); err == nil {
				t.Errorf("%s meets the schema", wrong)
			}
		}
	}
}
