package run

import (
	"errors"
	"reflect"
	"strings"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport/wire"
)

// Check reports what is wrong with labs that only building them shows: hosts that cannot reach each other, links
// that do not exist, queues that hold no packet. The points of a sweep share most of what they are, so
// a network is built once for the points that have it in common, and a problem is reported once.
func Check(labs []*lab.Lab) lab.Problems {
	var out lab.Problems
	seen := map[lab.Problem]bool{}
	var last *lab.Topology
	var g *topology.Graph
	for _, l := range labs {
		var err error
		if last == nil || !reflect.DeepEqual(*last, l.Topology) {
			last = &l.Topology
			g, err = graph(l)
		}
		if err == nil && g != nil {
			err = checkNetwork(l, g)
		}
		var p lab.Problem
		if errors.As(err, &p) && !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// Runnable reports, as a lab.Problem, a lab that is sound but has nothing to run.
func Runnable(l *lab.Lab) error {
	if len(l.Workload) == 0 {
		return l.Errorf("workload", "nothing to run; add a collective, such as {collective: all-to-all, size: 4MB}")
	}
	return nil
}

// graph builds the network of a lab.
func graph(l *lab.Lab) (*topology.Graph, error) {
	g, err := topology.Build(l.Topology)
	if err != nil {
		return nil, l.Errorf("topology", "%s", strings.TrimPrefix(err.Error(), "topology: "))
	}
	return g, nil
}

// checkNetwork refuses networks that nothing can be run on.
func checkNetwork(l *lab.Lab, g *topology.Graph) error {
	const longest = wire.MaxPayload + wire.DataSize + wire.Overhead // whatever the MTU: headers have one range
	if rtt := g.BaseRTT(longest, ackWire); rtt > wire.MaxBaseline/2 {
		return l.Errorf("topology.link", "a packet of %d bytes and its acknowledgement take %s on an idle path, more than the %s that packets can carry; make links faster or shorter",
			longest, rtt, wire.MaxBaseline/2)
	}
	return checkQueues(l, g)
}

// checkQueues refuses a buffer that cannot hold a packet: every packet that has to wait would be dropped.
func checkQueues(l *lab.Lab, g *topology.Graph) error {
	packet := dataWire(l.Topology.MTU)
	rtt := g.BaseRTT(packet, ackWire)
	for i := range g.Links {
		k := &g.Links[i]
		if room := sizeOf(l.Queues.Buffer, k.Rate.BytesIn(rtt)); room < packet {
			return l.Errorf("queues.buffer", "%s is %d bytes on link %s, less than one packet of %d bytes on the wire; make it larger",
				l.Queues.Buffer, room, k.Name, packet)
		}
	}
	return nil
}
