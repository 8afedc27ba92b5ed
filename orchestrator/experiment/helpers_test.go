package experiment

import (
	"errors"
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

const star = `
weft: 1
name: lone
topology: {kind: star, hosts: 5, link: {rate: 100Gbps, delay: 1us}, mtu: 4096}
`

const eight = `
weft: 1
name: eight
topology: {kind: star, hosts: 8, link: {rate: 100Gbps, delay: 1us}}
`

const leaves = "{kind: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 3}"

const disorderly = `
weft: 1
name: disorderly
topology: {kind: fat-tree, k: 4, link: {rate: 100Gbps, delay: 1us, loss: 1%, duplicate: 1%, reorder: 5%, reorder_by: 20us}}
transport: {kind: KIND}
workload: [{collective: all-to-all, size: 2MB}]
`

// haltedLab is four hosts that exchange data, one of which has a fault.
const haltedLab = `
weft: 1
name: halted
topology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: all-to-all, size: 1MB}]
faults: [{at: 20us, host: h2, FAULT}]
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

func build(t *testing.T, text string) *Experiment {
	t.Helper()
	x, err := Build(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func wantProblem(t *testing.T, text string, parts ...string) {
	t.Helper()
	_, err := Build(parse(t, text))
	var many lab.Problems
	var one lab.Problem
	if !errors.As(err, &many) && !errors.As(err, &one) {
		t.Errorf("got %v, want a problem of the lab: %q", err, parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("got  %v\nwant %q", err, p)
		}
	}
	if got := Check([]*lab.Lab{parse(t, text)}); len(many) > 0 && len(got) != len(many) {
		t.Errorf("Check found %v, Build %v", got, many)
	}
}
