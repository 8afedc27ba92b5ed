package run

import (
	"context"
	"strings"
	"testing"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/runtime"
)

// measured is machines with the given capacities.
type measured []emulate.Capacity

func (m measured) Launches(context.Context) ([]runtime.Launch, error)     { return nil, nil }
func (m measured) Names() []string                                        { return nil }
func (m measured) Capacities(context.Context) ([]emulate.Capacity, error) { return m, nil }

// Each of several machines carries its part: half of the lab if nothing crosses. Agents on one
// machine carry all together.
func TestDilationOnSeveralMachines(t *testing.T) {
	const text = `
weft: 1
name: pairs
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link: {rate: 100Gbps, delay: 50us}}
workload:
  - {collective: permute, ranks: [h0, h1], size: 4MB}
  - {collective: permute, ranks: [h2, h3], size: 4MB}
  - {collective: permute, ranks: [h4, h5], size: 4MB}
  - {collective: permute, ranks: [h6, h7], size: 4MB}
engine: {kind: emu, machines: 2}
`
	x, err := experiment.Build(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	work, err := workloadLoad(x)
	if err != nil {
		t.Fatal(err)
	}
	on := func(packets float64, boot string) emulate.Capacity {
		return emulate.Capacity{PacketsPerSecond: packets, Boot: boot,
			Lateness: []emulate.LatenessAt{{PacketsPerSecond: 100, P99NS: 50e3}}}
	}
	for _, c := range []struct {
		all  measured
		want float64
		says string
	}{
		{measured{on(50e3, "a"), on(50e3, "b")}, 370, "auto: m1 carries 50000 data packets/s"},
		{measured{on(50e3, "a"), on(25e3, "b")}, 740, "auto: m2 carries 25000 data packets/s"},
		{measured{on(50e3, "a"), on(50e3, "a")}, 740, "auto: the one machine of m1, m2 carries 50000 data packets/s"},
		{measured{on(50e3, ""), on(50e3, "")}, 370, "auto: m1 carries 50000 data packets/s"},
	} {
		d, how, err := fabricDilation(t.Context(), x, work, x.BaseRTT, emulate.Processes{}, c.all)
		if err != nil || d != c.want || how != c.says {
			t.Errorf("%+v: %g (%s), %v; want %g (%s)", c.all, d, how, err, c.want, c.says)
		}
	}
	x.Lab.Engine.Dilation = 50
	_, _, err = fabricDilation(t.Context(), x, work, x.BaseRTT, emulate.Processes{}, measured{on(50e3, "a"), on(25e3, "b")})
	if err == nil || !strings.Contains(err.Error(), "more than 2 times the 25000 that m2 was measured to carry: use dilation 740, which should be ok") {
		t.Errorf("%v", err)
	}
}
