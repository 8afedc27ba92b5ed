package summary

import (
	"slices"
	"testing"

	"weft/fabric"
	"weft/orchestrator/experiment"
	"weft/orchestrator/topology"
)

// Every sentence of a step is one that an expectation may name: see experiment.NoStep.
func TestStepsAreThoseThatExpectationsName(t *testing.T) {
	x := build(t, "weft: 1\nname: steps\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}\n"+
		"transport: {kind: ccm}\nworkload: [{collective: incast, ranks: 2, root: h3, size: 1MB}]\n")
	d := NewDiary(x, nil)
	between := slices.IndexFunc(x.Graph.Links, func(k topology.Link) bool { return int(min(k.A, k.B)) >= x.Graph.Hosts })
	from := fabric.NodeID(x.Graph.Links[between].A)
	steps := []Step{{Source: true, Moved: true}, {Source: true, Cc: true}, {Source: true}}
	for kind := fabric.ToldCC; kind <= fabric.TookOnly; kind++ {
		steps = append(steps, Step{Fabric: fabric.Step{What: kind, Src: 0, Dst: 3, To: 1, Switch: from, Port: int32(2 * between)}})
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
