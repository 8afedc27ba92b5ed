package benchmark

import (
	"fmt"
	"slices"
	"strings"

	"weft/collectives/schedule"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
)

// traceFile is the name by which a lab of this package refers to its trace.
const traceFile = "bench.csv"

// Topologies lists the kinds of network that Network supports, simplest first.
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

// Network returns the lab file, without a workload, of a network of this kind with at least this
// many hosts.
func Network(kind string, hosts int) (string, error) {
	for _, k := range topology.Kinds() {
		if sizes, ok := k.Fit(hosts); ok && k.Name == kind {
			return fmt.Sprintf("weft: 1\nname: bench\nabout: sizes of a collective, as nccl-tests measures "+
				"them\ntopology: {kind: %s, %s}\n", kind, sizes), nil
		}
	}
	return "", fmt.Errorf("topology %q is not one of %s", kind, strings.Join(Topologies(), ", "))
}

// Labs reads and checks the labs that measure m over a transport, on the network of a lab file.
// They replace the file's own workload and expectations.
func (m *Measured) Labs(name string, text []byte, opts lab.Options, transport string, ranks int) ([]*lab.Lab, error) {
	csv := []byte(m.Trace())
	opts.Set = append([]string{
		fmt.Sprintf("workload=[{trace: %s, ranks: %d}]", traceFile, ranks),
		"transport.kind=" + transport,
	}, opts.Set...)
	opts.Unjudged = "weft bench judges no expectations"
	opts.Read = func(name string) ([]byte, error) {
		if name != traceFile {
			return nil, fmt.Errorf("%s: a benchmark has files of its own", name)
		}
		return csv, nil
	}
	labs, err := lab.Parse(name, text, opts)
	if err != nil {
		return nil, err
	}
	if problems := experiment.Check(labs); len(problems) > 0 {
		return nil, problems
	}
	return labs, nil
}

const (
	losslessNetwork = "queues.pfc=on"
	trimmingNetwork = "queues.trim=on"
)

// MadeFor returns the settings of the network that a transport is made for, where they are not
// defaults.
func MadeFor(kind string) (set []string) {
	f := transport.FactsOf(kind)
	if f.Lossless {
		set = append(set, losslessNetwork)
	}
	if f.Trimmable {
		set = append(set, trimmingNetwork)
	}
	return set
}

// Title describes the measurement in one line.
func (m *Measured) Title() string {
	if len(schedule.Algorithms(m.Collective)) < 2 {
		return m.Collective
	}
	return m.Collective + " by " + m.Algorithm
}
