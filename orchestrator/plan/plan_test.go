package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/internal/golden"
	"weft/orchestrator/experiment/experimenttest"
	"weft/orchestrator/lab"
	"weft/orchestrator/plan"
	"weft/orchestrator/run"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// newLab returns a lab with one line for its topology and one for its engine, and further sections.
func newLab(t *testing.T, name, topology, engine, more string) *lab.Lab {
	t.Helper()
	text := fmt.Sprintf("weft: 1\nname: %s\ntopology: {%s}\nengine: {%s}\n%s", name, topology, engine, more)
	return experimenttest.Parse(t, text)
}

// A small packet shows the minimum MTU. The links of labs on the kernel datapath are slow enough
// for the kernel.
const (
	pair    = "kind: star, hosts: 2, mtu: 1000, link: {rate: 100Gbps, delay: 1us}"
	quick   = "kind: fat-tree, k: 4, mtu: 4096, link: {rate: 100Gbps, delay: 1us}"
	leaves  = "kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 1, link: {rate: 100Gbps, delay: 1us}"
	reduce  = "workload: [{collective: all-reduce, size: 4MiB}]\n"
	ingress = "queues: {ecn: {mark: ingress}}\n"
)

func planDeployment(t *testing.T, l *lab.Lab) plan.Plan {
	t.Helper()
	kernel := qdisc.Full()
	p, err := run.PlanDeployment(t.Context(), l, 1, false, &kernel)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planRun(t *testing.T, l *lab.Lab) plan.Plan {
	t.Helper()
	kernel := qdisc.Full()
	p, err := run.PlanRun(t.Context(), l, false, &kernel)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		p    plan.Plan
		json bool // the JSON of the other plans has nothing new
	}{
		{"deploy", planDeployment(t, newLab(t, "pair", pair, "runtime: namespace", "")), true},
		{"run-docker", planRun(t, newLab(t, "pair", pair, "kind: emu, runtime: docker", reduce)), true},
		{"run-both", planRun(t, newLab(t, "pair", pair, "kind: both, runtime: docker", reduce)), false},
		{"kernel", planDeployment(t, newLab(t, "leaves", leaves, "runtime: namespace, datapath: kernel, dilation: 20000", ingress)), true},
		{"kernel-auto", planDeployment(t, newLab(t, "leaves", leaves, "runtime: docker, datapath: kernel", ingress)), false},
		{"many", planDeployment(t, newLab(t, "quickstart", quick, "runtime: namespace", reduce)), false},
		{"sim", planDeployment(t, newLab(t, "pair", pair, "kind: sim", reduce)), true},
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
	l := newLab(t, "pair", pair, "kind: sim", reduce)
	for _, p := range []plan.Plan{planDeployment(t, l), planRun(t, l)} {
		if len(p.Ops) != 0 || p.Resources != (plan.Resources{}) || !strings.Contains(p.Text(), "nothing is created") {
			t.Errorf("%+v", p)
		}
	}
}

// Every operation comes after those that it waits for and says how it is undone. Counts add up, and
// no property is made twice.
func TestPlansAreConsistent(t *testing.T) {
	for _, p := range []plan.Plan{
		planDeployment(t, newLab(t, "quickstart", quick, "runtime: namespace", "")),
		planRun(t, newLab(t, "quickstart", quick, "kind: emu, runtime: namespace", reduce)),
		planDeployment(t, newLab(t, "quickstart", quick, "runtime: docker, datapath: kernel, dilation: 20000", ingress)),
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

// The memory of a run includes the buffers of its collectives. A deployment runs none.
func TestMemoryCountsBuffers(t *testing.T) {
	const ranks, buffers = 16, 3
	growth := func(p, q plan.Plan) units.Bytes { return q.Resources.Memory - p.Resources.Memory }
	small, large := strings.Replace(reduce, "4MiB", "1MiB", 1), strings.Replace(reduce, "4MiB", "3MiB", 1)
	lab := func(work string) *lab.Lab { return newLab(t, "quickstart", quick, "kind: emu, runtime: docker", work) }
	if got := growth(planRun(t, lab(small)), planRun(t, lab(large))); got != buffers*ranks*2*units.MiB {
		t.Errorf("2 MiB more in each rank take %v", got)
	}
	if got := growth(planDeployment(t, lab(small)), planDeployment(t, lab(large))); got != 0 {
		t.Errorf("a deployment holds %v for a collective", got)
	}
}
