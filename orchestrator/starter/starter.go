// Package starter writes files to start from. A lab is a network, a transport and a collective,
// each with the keys that people change most. It passes the same checks as every lab, and has the
// queues and routes that its transport requires. A congestion control is a program with a test and
// a lab.
package starter

import (
	"fmt"
	"strings"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
)

// NoWork is the Collective of a lab without a workload, to deploy.
const NoWork = "none"

// Lab describes the lab to write, in the words of a lab file.
type Lab struct {
	Kind, Sizes           string // of the topology; Sizes are lines: see topology.Registration
	Name                  string
	Rate, Delay, MTU      string // of every link
	Transport, Collective string
	Size, Ranks           string // of the collective
}

// Text returns the text of a valid lab file.
func (l *Lab) Text() (string, error) {
	if transport.FactsOf(l.Transport).Module {
		return "", fmt.Errorf("transport %s is a module of your own; `weft new cc NAME` writes one, with a lab",
			l.Transport)
	}
	var n needs
	n.lossless = transport.FactsOf(l.Transport).Lossless
	n.trims = transport.FactsOf(l.Transport).Trimmable
	text := l.text(n)
	labs, err := parse(text)
	if n.lossless && err == nil {
		graph, errGraph := topology.Build(labs[0].Topology)
		if errGraph != nil {
			return "", errGraph
		}
		if graph.Circle() != nil { // with PFC, switches could wait for each other in a cycle
			n.upDown = true
		}
	}
	if n.upDown {
		text = l.text(n)
		labs, err = parse(text)
	}
	if err != nil {
		return "", err
	}
	if problems := experiment.Check(labs); len(problems) > 0 {
		return "", problems
	}
	return text, nil
}

func parse(text string) ([]*lab.Lab, error) {
	return lab.Parse("generated", []byte(text), lab.Options{})
}

// needs lists the settings that a transport requires.
type needs struct {
	lossless bool // PFC
	upDown   bool // routes without a cyclic buffer dependency
	trims    bool // switches that trim packets
}

func (l *Lab) text(n needs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A lab with a %s network to start from. weft run FILE runs it, weft deploy FILE leaves it "+
		"running,\n"+
		"# and weft explain FILE shows the values of all other keys.\nweft: 1\nname: %s\nseed: 1\n\ntopology:\n  "+
		"kind: %s\n", l.Kind, l.Name, l.Kind)
	fmt.Fprintf(&b, "%s  link: {rate: %s, delay: %s}\n  mtu: %s\n", l.Sizes, l.Rate, l.Delay, l.MTU)
	if n.upDown {
		b.WriteString("  routes: up-down # with PFC, shortest paths could deadlock in this network\n")
	}
	if n.lossless {
		fmt.Fprintf(&b, "\nqueues:\n  pfc: on # %s is made for networks that lose nothing\n", l.Transport)
	}
	if n.trims {
		fmt.Fprintf(&b, "\nqueues:\n  trim: on # %s learns of losses by the headers of trimmed packets\n", l.Transport)
	}
	fmt.Fprintf(&b, "\ntransport:\n  kind: %s\n", l.Transport)
	if l.Collective != NoWork {
		fmt.Fprintf(&b, "\nworkload:\n  - collective: %s\n    ranks: %s\n    size: %s\n\nexpect:\n  - verified == "+
			"true\n  - unfinished == 0\n",
			l.Collective, l.Ranks, l.Size)
	}
	return b.String()
}
