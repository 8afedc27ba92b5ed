package emulate

import (
	"testing"

	"weft/host"
	"weft/sim"
	"weft/units"
)

// simulate runs x in virtual time and returns its flows, which the emulation has to match.
func simulate(t *testing.T, x Experiment) []host.Flow {
	t.Helper()
	hosts := make([]*host.Host, len(x.Plans))
	for i := range hosts {
		var err error
		if hosts[i], err = host.New(x.Plans[i], nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	s, err := sim.New(x.Fabric, hosts, sim.Options{Limit: units.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var flows []host.Flow
	for _, h := range hosts {
		flows = append(flows, h.Flows()...)
	}
	return flows
}
