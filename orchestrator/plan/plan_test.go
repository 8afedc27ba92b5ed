package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/internal/golden"
	"weft/orchestrator/lab"
	"weft/orchestrator/plan"
	"weft/orchestrator/run"
	"weft/units"
)

// read returns a lab of this text.
func read(t *testing.T, name, topology, engine, more string) *lab.Lab {
	t.Helper()
	text := fmt.Sprintf("weft: 1\nname: %s\ntopology: {%s}\nengine: {%s}\n%s", name, topology, engine, more)
	labs, err := lab.Parse(name, []byte(text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return labs[0]
}

// A small packet needs no more than the least MTU; the kernel's links are slow enough for it to honour them.
const (
	pair    = "kind: star, hosts: 2, mtu: 1000, link: {rate: 100Gbps, delay: 1us}"
	quick   = "kind: fat-tree, k: 4, mtu: 4096, link: {rate: 100Gbps, delay: 1us}"
	leaves  = "kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 1, link: {rate: 100Gbps, delay: 1us}"
	reduce  = "workload: [{collective: all-reduce, size: 4MiB}]\n"
	ingress = "queues: {ecn: {mark: ingress}}\n"
)

func deployment(t *testing.T, l *lab.Lab) plan.Plan {
	t.Helper()
	p, err := run.PlanDeployment(t.Context(), l, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ofRun(t *testing.T, l *lab.Lab) plan.Plan {
	t.Helper()
	p, err := run.PlanRun(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		p    plan.Plan
		json bool // of the others it would show the same, at more length than anybody reviews
	}{
		{"deploy", deployment(t, read(t, "pair", pair, "runtime: namespace", "")), true},
		{"run-docker", ofRun(t, read(t, "pair", pair, "kind: emu, runtime: docker", reduce)), true},
		{"run-both", ofRun(t, read(t, "pair", pair, "kind: both, runtime: docker", reduce)), false},
		{"kernel", deployment(t, read(t, "leaves", leaves, "runtime: namespace, datapath: kernel, dilation: 20000", ingress)), true},
		{"kernel-auto", deployment(t, read(t, "leaves", leaves, "runtime: docker, datapath: kernel", ingress)), false},
		{"many", deployment(t, read(t, "quickstart", quick, "runtime: namespace", reduce)), false},
		{"sim", deployment(t, read(t, "pair", pair, "kind: sim", reduce)), true},
	} {
		golden.Check(t, c.name+".text", c.p.Text())
		if !c.json {
			continue
		}
		b, err := c.p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, c.name+".json", string(b))
		var back plan.Plan
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.p, back, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s does not survive JSON:\n%s", c.name, d)
		}
	}
}

func TestSimulatorCreatesNothing(t *testing.T) {
	l := read(t, "pair", pair, "kind: sim", reduce)
	for _, p := range []plan.Plan{deployment(t, l), ofRun(t, l)} {
		if len(p.Ops) != 0 || p.Resources != (plan.Resources{}) || !strings.Contains(p.Text(), "nothing is created") {
			t.Errorf("%+v", p)
		}
	}
}

// TestOrder: every operation comes after what it waits for, says how it is undone, and the counts add up. No property is there twice.
func TestOrder(t *testing.T) {
	for _, p := range []plan.Plan{
		deployment(t, read(t, "quickstart", quick, "runtime: namespace", "")),
		ofRun(t, read(t, "quickstart", quick, "kind: emu, runtime: namespace", reduce)),
		deployment(t, read(t, "quickstart", quick, "runtime: docker, datapath: kernel, dilation: 20000", ingress)),
	} {
		kinds := map[plan.Kind]int{}
		made := map[string]int{}
		for i, op := range p.Ops {
			if op.ID != i+1 || op.Do == "" || op.Undo == "" || op.Node == "" {
				t.Errorf("operation %d is %+v", i, op)
			}
			for _, after := range op.After {
				if after < 1 || after >= op.ID {
					t.Errorf("operation %d waits for %d", op.ID, after)
				}
			}
			for _, line := range op.Makes {
				if other, there := made[line]; there {
					t.Errorf("operations %d and %d both make %q", other, op.ID, line)
				}
				made[line] = op.ID
			}
			kinds[op.Kind]++
		}
		for _, c := range p.Counts {
			if kinds[c.Kind] != c.Ops {
				t.Errorf("%d operations %s, counted %d", kinds[c.Kind], c.Kind, c.Ops)
			}
			delete(kinds, c.Kind)
		}
		if len(kinds) > 0 {
			t.Errorf("not counted: %v", kinds)
		}
	}
}

// A run holds the buffers of its collectives; a deployment runs none.
func TestMemoryCountsBuffers(t *testing.T) {
	const ranks, buffers = 16, 3
	more := func(p plan.Plan, q plan.Plan) units.Bytes { return q.Resources.Memory - p.Resources.Memory }
	small, large := strings.Replace(reduce, "4MiB", "1MiB", 1), strings.Replace(reduce, "4MiB", "3MiB", 1)
	lab := func(work string) *lab.Lab { return read(t, "quickstart", quick, "kind: emu, runtime: docker", work) }
	if got := more(ofRun(t, lab(small)), ofRun(t, lab(large))); got != buffers*ranks*2*units.MiB {
		t.Errorf("2 MiB more in each rank take %v", got)
	}
	if got := more(deployment(t, lab(small)), deployment(t, lab(large))); got != 0 {
		t.Errorf("a deployment holds %v for a collective", got)
	}
}
