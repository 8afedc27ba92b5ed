package experiment

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

// A lab that cannot be lossless, or whose parameters nothing would use, is refused with the
// numbers, where it says so.
func TestRefusals(t *testing.T) {
	work := "\nworkload: [{collective: incast, size: 1MB}]"
	wantProblem(t, star+"queues: {pfc: {headroom: 20KB}}"+work, "lab.yaml:5:26: queues.pfc.headroom", "cannot be lossless", "switch0 has a headroom of 20KB for what h0 still sends", "two packets of 4.198KB", "at least 33.396KB", "and 4 similar")
	wantProblem(t, star+"queues: {pfc: on, shared: {total: 100KB}}"+work, "lab.yaml:5:35: queues.shared.total", "of switch0 take 207.5KB", "it has 100KB")
	wantProblem(t, star+"queues: {pfc: on, shared: {total: 1MB}, ecn: {kmin: 1MB, kmax: 1MB}}"+work, "queues.ecn.kmin", "switch0 marks when more than 1MB (kmin) wait", "that of h0")
	wantProblem(t, star+"queues: {shared: {total: 10KB}}"+work, "queues.shared.total", "5 ports")
	wantProblem(t, star+"transport: {kind: roce, roce: {qps: 2}}"+work, "transport.roce.split", "no connection of this workload carries a second")
	wantProblem(t, star+"measure: {queue_events: switch0->h9}"+work, "measure.queue_events", "no port is named")
	wantProblem(t, star+"faults: [{at: 1ms, link: h0-switch1, down: true}]"+work, "lab.yaml:5:26: faults.0.link", "no link is named")
	wantProblem(t, star+"faults: [{at: 1ms, link: h0-switch0, down: 2ms}, {at: 2ms, link: switch0-h0, loss: 1%}]"+work, "faults.1.at", "overlaps with fault 0")
	wantProblem(t, star+"faults: [{at: 1ms, link: h0-switch0, down: 2ms, reroute: 1us}]"+work, "faults.0.reroute", "no routing tables are possible")
	wantProblem(t, strings.Replace(star, "star, hosts: 5", "leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 1, down: [leaf0-spine0]", 1)+
		"faults: [{at: 1ms, link: leaf0-spine0, down: 2ms}]"+work, "faults.0.link", "does not exist from the start")
}

// What a refusal of PFC proposes is accepted.
func TestWaysOutOfLossyPFC(t *testing.T) {
	work := "\nworkload: [{collective: incast, size: 1MB}]"
	number := regexp.MustCompile(`(?:at least|below|above) ([0-9.]+[KMG]?B)`)
	for name, c := range map[string]struct{ refused, instead string }{
		"headroom": {"queues: {pfc: {headroom: 20KB}}", "queues: {pfc: {headroom: %s}}"},
		"auto":     {"queues: {pfc: {headroom: 20KB}}", "queues: {pfc: {headroom: auto}} # %s"},
		"memory":   {"queues: {pfc: on, shared: {total: 100KB}}", "queues: {pfc: on, shared: {total: %s}}"},
		"marks":    {"queues: {pfc: on, shared: {total: 100KB}}\ntransport: {kind: roce}", "queues: {pfc: on, shared: {total: %s}}\ntransport: {kind: roce}"},
		"total":    {"queues: {pfc: on, shared: {total: 1MB}}\ntransport: {kind: roce, roce: {preset: alibaba-doc}}", "queues: {pfc: on, shared: {total: %[2]s}}\ntransport: {kind: roce}"},
	} {
		_, err := Build(parse(t, star+c.refused+work))
		if err == nil {
			t.Errorf("%s: was not refused", name)
			continue
		}
		var numbers []any
		for _, m := range number.FindAllStringSubmatch(err.Error(), -1) {
			numbers = append(numbers, m[1])
		}
		instead := strings.Split(fmt.Sprintf(c.instead, numbers...), "%!(EXTRA")[0]
		if _, err := Build(parse(t, star+instead+work)); err != nil {
			t.Errorf("%s: with %s: %v", name, instead, err)
		}
	}
}

// What the emulation does not do is refused by it, by name, and auto takes the simulator.
func TestOnlyTheSimulatorDoes(t *testing.T) {
	work := "\nworkload: [{collective: incast, size: 1MB}]"
	for text, path := range map[string]string{
		"transport: {kind: hpcc}":                                  "",
		"faults: [{at: 1ms, link: h0-switch0, loss: 1%}]":          "",
		"measure: {rates: 1ms}":                                    "measure.rates",
		"measure: {queue_events: switch0->h0}":                     "measure.queue_events",
		"measure: {from: 1us}":                                     "measure.from",
		"queues: {pfc: on}\ntransport: {kind: roce}":               "",
		"topology: {kind: star, hosts: 5, link: {loss: 0.1%}}":     "",
		"transport: {kind: swift, swift: {bolt_compat: true}}":     "",
		"queues: {shared: {total: 1MB, alpha: 2}, ecn: off}":       "",
		"transport: {kind: roce, roce: {qps: 2, split: messages}}": "",
	} {
		base := star
		if strings.HasPrefix(text, "topology") {
			base = "weft: 1\nname: lone\n"
		}
		err := build(t, base+text+work).Emulable()
		var p lab.Problem
		switch {
		case path == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case path != "" && (!errors.As(err, &p) || p.Path != path || !strings.Contains(p.Message, "--engine sim")):
			t.Errorf("%s: got %v, want a problem of %s", text, err, path)
		}
	}
}

func TestDisorderIsRefusedWithPFC(t *testing.T) {
	_, err := Build(parse(t, strings.Replace(disorderly, "KIND", "roce", 1)+"queues: {pfc: on}\n"))
	if err == nil || !strings.Contains(err.Error(), "queues.pfc") || !strings.Contains(err.Error(), "late or twice") {
		t.Errorf("PFC over lines that deliver packets late: %v", err)
	}
}

func TestCheckFindsWhatOnlyBuildingShows(t *testing.T) {
	for text, want := range map[string]string{
		"topology: {kind: fat-tree, k: 4, down: [edge0-agg7]}":              `no link is named "edge0-agg7"`,
		"topology: {kind: fat-tree, k: 4, down: [edge0-agg0, edge0-agg1]}":  "cannot reach each other",
		"topology: {kind: star, hosts: 2, link: {rate: 1kbps, delay: 1us}}": "make links faster",
		"topology: {kind: star, hosts: 2}\nqueues: {buffer: 0.01bdp}":       "less than one packet",
	} {
		labs, err := lab.Parse("lab.yaml", []byte("weft: 1\nname: bad\n"+text), lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ps := Check(append(labs, labs...))
		if len(ps) != 1 || !strings.Contains(ps[0].Error(), want) || ps[0].Line < 3 {
			t.Errorf("%s: problems %v, want one that says %q", text, ps, want)
		}
	}
}
