package experiment

import (
	"fmt"
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

// A parameter that does nothing on the lines of this network is refused, with the numbers.
func TestIdleOnTheseLines(t *testing.T) {
	work := "\nworkload: [{collective: incast, size: 1MB}]"
	wantProblem(t, star+"transport: {kind: roce, roce: {min_rate: 101Gbps}}"+work, "transport.roce.min_rate", "above the line of h1, 100Gbps")
	wantProblem(t, star+"transport: {kind: hpcc, hpcc: {min_rate: 101Gbps}}"+work, "transport.hpcc.min_rate", "above the line of h1, 100Gbps")
	wantProblem(t, star+"transport: {kind: ccm, ccm: {roce: {min_rate: 101Gbps}}}"+work, "transport.ccm.roce.min_rate", "above the line")
	wantProblem(t, star+"transport: {kind: swift, swift: {initial_window: 70KB}}"+work, "transport.swift.initial_window", "at most 58.772KB here")
	wantProblem(t, star+"transport: {kind: pc4, pc4: {initial: 70KB}}"+work, "transport.pc4.initial", "in a base RTT")
	wantProblem(t, star+"queues: {pfc: {xoff: 17MB}, shared: {total: 16MB}}"+work, "queues.pfc.xoff", "switch0 has to share, 15.7925MB (16MB less 207.5KB")
	wantProblem(t, star+"queues: {ecn: {kmin: 6bdp, kmax: 7bdp}, buffer: 5bdp}"+work, "queues.ecn.kmin", "no packet would be marked")
	for _, ok := range []string{
		"transport: {kind: roce, roce: {min_rate: 100Gbps}}", "transport: {kind: swift, swift: {initial_window: 50KB}}",
		"transport: {kind: pc4, pc4: {initial: 50KB}}", "queues: {pfc: {xoff: 15MB}, shared: {total: 16MB}}",
	} {
		build(t, star+ok+work)
	}
}

// All that a run would refuse, validation refuses: also in one point of a sweep, before any point
// runs, and for the engine asked for.
func TestCheckBuilds(t *testing.T) {
	nodes, links := "{name: h0}, {name: h1}", "{between: [h0, s0]}, {between: [h1, s9]}"
	for i := range 10 {
		nodes += fmt.Sprintf(", {name: s%d, switch: true}", i)
		if i > 0 {
			links += fmt.Sprintf(", {between: [s%d, s%d]}", i-1, i)
		}
	}
	long := "weft: 1\nname: long\ntopology: {kind: custom, nodes: [" + nodes + "], links: [" + links + "]}\n"
	work := "\nworkload: [{collective: incast, ranks: 1, size: 1MB}]"
	for text, want := range map[string]string{
		star + "transport: {roce: {}}" + work + "\nsweep: {transport.kind: [pc4, swift, roce], transport.roce.qps: [1, 4]}": "transport.roce.split",
		long + "transport: {kind: hpcc}" + work:                                            "have room for 8 switches; from h0 to h1 there are 10",
		star + "measure: {acks: true}\nengine: {kind: emu}" + work:                         "--engine sim runs this lab",
		star + "measure: {acks: true}\nengine: {kind: both}" + work:                        "--engine sim runs this lab",
		star + "measure: {acks: true}\nworkload: [{program: [/bin/true]}]":                 "only in the simulator; the simulator's hosts run no programs (workload.0.program): leave out one of them",
		star + "faults: [{at: 1ms, link: h0-h1, down: 1ms}]" + work:                        "no link is named",
		star + "measure: {queue_events: h0->switch0}" + work:                               "expected a switch's",
		strings.Replace(star, "hosts: 5", "hosts: 1100", 1) + "engine: {kind: emu}" + work: "more than the 1024",
	} {
		labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if ps := Check(labs); len(ps) != 1 || !strings.Contains(ps[0].Error(), want) || ps[0].Line == 0 {
			t.Errorf("%s\nproblems %v, want one that says %q", text, ps, want)
		}
	}
}
