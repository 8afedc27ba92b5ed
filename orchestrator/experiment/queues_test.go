package experiment

import (
	"strings"
	"testing"

	"weft/fabric"
	"weft/tc-shaping/ports"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

const ownQueues = `
weft: 1
name: own
topology:
  kind: custom
  link: {rate: 100Gbps, delay: 1us}
  nodes: [{name: h0}, {name: h1}, {name: h2}, {name: s, switch: true}]
  links:
    - {between: [h0, s], queues: {buffer: 200KB, ecn: {kmin: 10KB}}}
    - {between: [h1, s], queues: {ecn: off}}
    - {between: [h2, s], rate: 50Gbps}
queues: {buffer: 1MB, ecn: {kmin: 50KB, kmax: 100KB, pmax: 0.5, mark: ingress}}
transport: {kind: roce}
workload: [{collective: incast, ranks: 2, root: h2, size: 1MB}]
`

// A link of a custom topology overrides what it names and has the rest from the section queues, in
// the modelled switches and in the kernel's.
func TestQueuesOfLinksOverrideKeyByKey(t *testing.T) {
	x := build(t, ownQueues)
	got, limits := map[string]fabric.PortConfig{}, map[string]units.Bytes{}
	for i, name := range x.PortNames() {
		p := &x.Fabric.Ports[i]
		got[name] = *p
		var host *qdisc.Source
		if int(p.From) < x.Fabric.Hosts {
			host = &qdisc.Source{}
		}
		d := ports.Real(p, &p.Link, 1000, 4200, host, qdisc.Full())
		limits[name] = d.Limit
		if (d.RED != nil) != p.ECN.On || d.RED != nil && (d.RED.Min != p.ECN.Kmin || d.RED.Max != p.ECN.Kmax || d.RED.Pmax != p.ECN.Pmax) {
			t.Errorf("%s: %+v became %+v", name, p.ECN, d.RED)
		}
	}
	for port, want := range map[string]fabric.PortConfig{
		"s->h0": {Buffer: 200 * units.KB, ECN: fabric.ECNConfig{On: true, Kmin: 10_000, Kmax: 100_000, Pmax: 0.5, Ingress: true}},
		"s->h1": {Buffer: units.MB},
		"s->h2": {Buffer: units.MB, ECN: fabric.ECNConfig{On: true, Kmin: 50_000, Kmax: 100_000, Pmax: 0.5, Ingress: true}},
		"h0->s": {},
	} {
		if p := got[port]; p.Buffer != want.Buffer || p.ECN != want.ECN {
			t.Errorf("%s has %d and %+v, want %d and %+v", port, p.Buffer, p.ECN, want.Buffer, want.ECN)
		}
		if want.Buffer > 0 && limits[port] != want.Buffer {
			t.Errorf("%s has %d in the kernel", port, limits[port])
		}
	}
}

// Thresholds of PFC differ by link; where one cannot be kept the link's own key is named.
func TestThresholdsOfLinks(t *testing.T) {
	text := func(own string) string {
		return "weft: 1\nname: own\ntopology:\n  kind: dumbbell\n  hosts: 2\n  tiers:\n    core: {queues: " + own + "}\n" +
			"queues: {shared: {total: 32MB}, pfc: {xon_offset: 5KB}, ecn: {kmin: 50KB, kmax: 100KB}}\ntransport: {kind: roce}\n" +
			"workload: [{collective: incast, ranks: 2, root: h3, size: 1MB}]\n"
	}
	x := build(t, text("{pfc: {xoff: 300KB}}"))
	names := x.PortNames()
	for i := range x.Fabric.Ports {
		f := x.Fabric.Ports[i].PFC[dataClass]
		switch {
		case strings.HasPrefix(names[i], "h") && (f.Alpha == 0 || f.Offset != 5000 || f.Xoff != 0):
			t.Errorf("%s: %+v", names[i], f)
		case strings.HasPrefix(names[i], "switch") && strings.Contains(names[i], "->switch") && (f.Alpha != 0 || f.Xoff != 300_000 || f.Xon != 300_000-2*4198):
			t.Errorf("%s: %+v", names[i], f)
		}
	}
	wantProblem(t, text("{pfc: {headroom: 20KB}}"), "lab.yaml:7:37: topology.tiers.core.queues.pfc.headroom", "cannot be lossless", "switch0 has a headroom of 20KB")
	wantProblem(t, text("{pfc: {xoff: 32MB}}"), "lab.yaml:7:33: topology.tiers.core.queues.pfc.xoff", "has to share")
	wantProblem(t, text("{ecn: {kmin: 9MB, kmax: 9MB}}"), "lab.yaml:7:33: topology.tiers.core.queues.ecn.kmin", "cannot be lossless", "9MB (kmin)")
	plain := strings.Replace(text("{buffer: 5MB, ecn: {kmin: 5MB, kmax: 9MB}}"), "shared: {total: 32MB}, pfc: {xon_offset: 5KB}, ", "", 1)
	wantProblem(t, plain, "lab.yaml:7:46: topology.tiers.core.queues.ecn.kmin", "no packet would be marked")
	wantProblem(t, strings.Replace(plain, "5MB, ecn: {kmin: 5MB, kmax: 9MB}", "3%bdp", 1), "topology.tiers.core.queues.buffer", "less than one packet")
}

// STrack, section 4.1: a memory of 256 MB for 51.2 Tb/s, in proportion for switches of other
// radices. Here 16 hosts and 4 uplinks of 400 Gb/s are 8 Tb/s, and 2 downlinks 0.8.
func TestMemoryFollowsTheRatesOfAllPorts(t *testing.T) {
	const text = "weft: 1\nname: x\ntopology: {kind: leaf-spine, leaves: 2, spines: 4, hosts_per_leaf: 16, oversubscription: 4, link: {rate: 400Gbps}}\n" +
		"transport: {kind: strack}\nworkload: [{collective: permute, size: 1MB}]\n"
	for per, want := range map[string][2]units.Bytes{
		"switch": {40 * units.MB, 4 * units.MB},
		"port":   {2 * units.MB, 2 * units.MB},
	} {
		x := build(t, text+"queues: {shared: {total: 5MB/1Tbps, per: "+per+"}}\n")
		leaf, spine := x.Fabric.Switches[0].Buffer.Total, x.Fabric.Switches[2].Buffer.Total
		if leaf != want[0] || spine != want[1] {
			t.Errorf("per %s: %v in a leaf and %v in a spine, want %v and %v", per, leaf, spine, want[0], want[1])
		}
	}
}
