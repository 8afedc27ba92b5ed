// Package experimenttest makes experiments from the text of labs, for tests of the packages that
// work on experiments.
package experimenttest

import (
	"testing"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
)

// Star is a lab of five hosts on one switch, without a workload.
const Star = `
weft: 1
name: lone
topology: {kind: star, hosts: 5, link: {rate: 100Gbps, delay: 1us}, mtu: 4096}
`

// FaultyLab is a lab of hosts that exchange data over two tiers of switches. FAULT stands for its
// fault.
const FaultyLab = `
weft: 1
name: faulty
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 3, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: all-to-all, size: 1MB}]
transport: {kind: pc4}
faults: [FAULT]
`

// Parse returns the only point of a lab, with settings of the command line. The test fails if the
// lab is wrong.
func Parse(t testing.TB, text string, set ...string) *lab.Lab {
	t.Helper()
	labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return labs[0]
}

// Build returns the experiment of the only point of a lab. The test fails if there is none.
func Build(t testing.TB, text string) *experiment.Experiment {
	t.Helper()
	x, err := experiment.Build(Parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}
