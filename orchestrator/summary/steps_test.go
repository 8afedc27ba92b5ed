package summary

import (
	"testing"

	"weft/fabric"
	"weft/orchestrator/experiment"
)

// Every sentence of a step is one that an expectation may name: see experiment.NoStep.
func TestStepsAreThoseThatExpectationsName(t *testing.T) {
	x := build(t, eight+"transport: {kind: ccm}\nworkload: [{collective: incast, ranks: 2, root: h3, size: 1MB}]\n")
	d := NewDiary(x, nil)
	steps := []Step{{Source: true, Moved: true}, {Source: true, Cc: true}, {Source: true}}
	for kind := fabric.ToldCC; kind <= fabric.TookOnly; kind++ {
		steps = append(steps, Step{Fabric: fabric.Step{What: kind, Src: 0, Dst: 3, To: 1, Switch: 8}})
	}
	seen := map[string]bool{}
	for i := range steps {
		e := d.event(&steps[i])
		text := e.Where + " " + e.Detail
		if why := experiment.NoStep(x.Graph, text); why != "" || e.Detail == "" || seen[text] {
			t.Errorf("%q: %s", text, why)
		}
		seen[text] = true
	}
}
