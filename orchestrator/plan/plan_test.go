package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/internal/golden"
	"weft/orchestrator/lab"
	"weft/orchestrator/plan"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/units"
)

var wire = lab.LinkSpec{Rate: 100 * units.Gbps, Delay: units.Microsecond}

// quickstart is a fat-tree with two collectives.
func quickstart() *lab.Lab {
	return &lab.Lab{
		Name:     "quickstart",
		Topology: lab.Topology{Kind: "fat-tree", K: 4, Link: wire, MTU: 4096},
		Workload: []lab.Item{
			{Collective: "all-to-all", Ranks: lab.Ranks{First: 8}, Size: 4 * units.MiB},
			{Collective: "all-reduce", Ranks: lab.Ranks{All: true}, Size: 4 * units.MiB},
		},
		Engine: lab.Engine{Kind: "auto", Runtime: "auto", Datapath: "auto"},
	}
}

func pair() *lab.Lab {
	return &lab.Lab{
		Name:     "pair",
		Topology: lab.Topology{Kind: "star", Hosts: 2, Link: wire, MTU: 1000},
		Engine:   lab.Engine{Kind: "emu"},
	}
}

// onKernel has the machine's kernel switch a lab.
func onKernel(l *lab.Lab) *lab.Lab {
	l.Engine.Datapath = "kernel"
	return l
}

func build(t *testing.T, l *lab.Lab, o plan.Options) plan.Plan {
	t.Helper()
	g, err := topology.Build(l.Topology)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Build(g, l, o)
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		l    *lab.Lab
		o    plan.Options
	}{
		{"quickstart", quickstart(), plan.Options{}},
		{"quickstart-sim", quickstart(), plan.Options{Engine: "sim"}},
		{"pair", pair(), plan.Options{}},
		{"pair-both", pair(), plan.Options{Engine: "both"}},
		{"pair-kernel", onKernel(pair()), plan.Options{}},
	} {
		p := build(t, c.l, c.o)
		golden.Check(t, c.name+".text", p.Text())
		if c.name == "quickstart" {
			continue // the JSON of pair shows the same at a length that can be reviewed
		}
		b, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, c.name+".json", string(b))
		var back plan.Plan
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, back, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s does not survive JSON:\n%s", c.name, d)
		}
	}
}

func TestSimulatorCreatesNothing(t *testing.T) {
	l := quickstart()
	l.Engine.Kind = "sim"
	p := build(t, l, plan.Options{})
	if len(p.Ops) != 0 || p.Resources != (plan.Resources{}) || !strings.Contains(p.Text(), "nothing is created") {
		t.Errorf("%+v", p)
	}
	if p := build(t, l, plan.Options{Engine: "emu"}); len(p.Ops) == 0 {
		t.Error("the option does not override the lab")
	}
}

// TestOrder: every operation comes after what it waits for, says how it is undone, and the counts add up.
func TestOrder(t *testing.T) {
	p := build(t, quickstart(), plan.Options{})
	kinds := map[plan.Kind]int{}
	connected := map[string]bool{}
	for i, op := range p.Ops {
		if op.ID != i+1 || op.Do == "" || op.Undo == "" || op.Node == "" {
			t.Errorf("operation %d is %+v", i, op)
		}
		for _, after := range op.After {
			if after < 1 || after >= op.ID {
				t.Errorf("operation %d waits for %d", op.ID, after)
			}
		}
		kinds[op.Kind]++
		if op.Kind == plan.Connect {
			connected[op.Node] = true
		}
	}
	total := 0
	for _, c := range p.Counts {
		total += c.Ops
		if kinds[c.Kind] != c.Ops {
			t.Errorf("%d operations %s, counted %d", kinds[c.Kind], c.Kind, c.Ops)
		}
	}
	if total != len(p.Ops) || len(connected) != 16 {
		t.Errorf("%d operations, %d counted, %d hosts connected", len(p.Ops), total, len(connected))
	}
}

func TestNICMTUHoldsTheLargestPacket(t *testing.T) {
	if got := plan.NICMTU(4096); got != 4096+transport.MaxHeader+28 {
		t.Errorf("got %d", got)
	}
}

// TestMemoryCountsEveryRank: two buffers of the size of the collective for each rank.
func TestMemoryCountsEveryRank(t *testing.T) {
	base := pair()
	base.Topology.Hosts = 9
	empty := build(t, base, plan.Options{}).Resources.Memory
	for _, c := range []struct {
		it   lab.Item
		want units.Bytes
	}{
		{lab.Item{Collective: "all-reduce", Ranks: lab.Ranks{All: true}}, 9},
		{lab.Item{Collective: "incast", Ranks: lab.Ranks{All: true}}, 8},
		{lab.Item{Collective: "incast", Ranks: lab.Ranks{First: 4}}, 4},
		{lab.Item{Collective: "permute", Ranks: lab.Ranks{Random: 5}}, 5},
		{lab.Item{Collective: "all-to-all", Ranks: lab.Ranks{Names: []string{"h1", "h2", "h4"}}}, 3},
	} {
		c.it.Size = units.MiB
		base.Workload = []lab.Item{c.it}
		if got := build(t, base, plan.Options{}).Resources.Memory - empty; got != 2*c.want*units.MiB {
			t.Errorf("%+v: %v, want %d buffers of 1 MiB", c.it, got, 2*c.want)
		}
	}
}
