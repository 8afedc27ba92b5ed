package benchmark

import (
	"fmt"
	"slices"
	"strings"

	"weft/collectives/schedule"
	"weft/orchestrator/topology"
)

// TraceFile is the name under which a lab of this package names its trace.
const TraceFile = "bench.csv"

// Topologies are the kinds of network that Network makes, the simplest first.
func Topologies() []string {
	var names []string
	for _, k := range topology.Kinds() {
		if _, ok := k.Fit(2); ok {
			names = append(names, k.Name)
		}
	}
	slices.Reverse(names)
	return names
}

// Network returns the lab file of a network of a kind that has at least so many hosts, without a workload.
func Network(kind string, hosts int) (string, error) {
	for _, k := range topology.Kinds() {
		if sizes, ok := k.Fit(hosts); ok && k.Name == kind {
			return fmt.Sprintf("weft: 1\nname: bench\nabout: sizes of a collective, as nccl-tests measures them\ntopology: {kind: %s, %s}\n", kind, sizes), nil
		}
	}
	return "", fmt.Errorf("topology %q is not one of %s", kind, strings.Join(Topologies(), ", "))
}

// Settings are what makes a lab a benchmark: paths and values, to be set in it.
func (m *Measured) Settings(transport, ranks string) []string {
	return []string{
		"workload=[{trace: " + TraceFile + ", ranks: " + ranks + "}]",
		"expect=[]",
		"transport.kind=" + transport,
	}
}

// Title says what is measured, in a line.
func (m *Measured) Title() string {
	if len(schedule.Algorithms(m.Collective)) < 2 {
		return m.Collective
	}
	return m.Collective + " by " + m.Algorithm
}
