package benchmark

import (
	"fmt"
	"strings"

	"weft/collectives/schedule"
)

// TraceFile is the name under which a lab of this package names its trace.
const TraceFile = "bench.csv"

// Topologies are the kinds of network that Network makes, the default first.
func Topologies() []string { return []string{"star", "dumbbell", "leaf-spine", "fat-tree"} }

// Network returns the lab file of a network of a kind that has at least so many hosts, without a workload.
func Network(kind string, hosts int) (string, error) {
	var of string
	switch kind {
	case "star":
		of = fmt.Sprintf("hosts: %d", hosts)
	case "dumbbell":
		of = fmt.Sprintf("hosts: %d", (hosts+1)/2)
	case "leaf-spine":
		const perLeaf = 8
		of = fmt.Sprintf("leaves: %d, spines: %d, hosts_per_leaf: %d", max(2, (hosts+perLeaf-1)/perLeaf), perLeaf, perLeaf)
	case "fat-tree":
		k := 2
		for k*k*k/4 < hosts {
			k += 2
		}
		of = fmt.Sprintf("k: %d", k)
	default:
		return "", fmt.Errorf("topology %q is not one of %s", kind, strings.Join(Topologies(), ", "))
	}
	return fmt.Sprintf("weft: 1\nname: bench\nabout: sizes of a collective, as nccl-tests measures them\ntopology: {kind: %s, %s}\n", kind, of), nil
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
