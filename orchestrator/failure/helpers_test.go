package failure

import (
	"testing"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
)

// faultyLab is hosts that exchange data over two tiers of switches, with a fault.
const faultyLab = `
weft: 1
name: faulty
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 3, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: all-to-all, size: 1MB}]
transport: {kind: pc4}
faults: [FAULT]
`

// parse returns the only point of a lab.
func parse(t *testing.T, text string) *lab.Lab {
	t.Helper()
	labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return labs[0]
}

func build(t *testing.T, text string) *experiment.Experiment {
	t.Helper()
	x, err := experiment.Build(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}
