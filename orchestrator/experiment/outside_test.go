package experiment

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

// withNetwork returns a lab with the given sections, and a star unless they have a network.
func withNetwork(text string) string {
	if !strings.Contains(text, "topology: ") {
		text = "topology: {kind: star, hosts: 4}\n" + text
	}
	return "weft: 1\nname: lab\nworkload: [{collective: permute, size: 1MB}]\n" + text
}

// A lab that lacks what its transport relies on gets a warning with a place and a way out; one that
// has it gets none.
func TestTransportsOutsideTheirConditions(t *testing.T) {
	const pfc = ": queues.pfc: roce is outside its conditions: it recovers by go-back-N, which retransmits a whole window for a lost or late packet, " +
		"and queues drop packets without PFC; expected queues.pfc: on%s, or transport.roce.recovery: selective-repeat"
	for text, want := range map[string][]string{
		"transport: {kind: pc4}": nil,
		"transport: {kind: pc4}\nclocks: {sync: none, offset: ±1ms}":                                                                     {"clocks.sync"},
		"transport: {kind: pc4}\nclocks: {sync: none, offset: off, skew: off, wander: off}":                                              nil,
		"transport: {kind: swift}\nclocks: {sync: none}":                                                                                 nil,
		"transport: {kind: swift}\nqueues: {routing: spray}":                                                                             {"queues.routing"},
		"transport: {kind: roce}\nqueues: {buffer: 1MB}":                                                                                 {"queues.pfc"}, // marks are derived
		"transport: {kind: roce}\nqueues: {buffer: 1MB, ecn: {kmin: 100KB, kmax: 1.6MB}}":                                                {"queues.ecn.kmax", "queues.pfc"},
		"transport: {kind: roce}\nqueues: {buffer: 1MB, ecn: {kmin: 1.2MB, kmax: 1.6MB}}":                                                {"queues.ecn.kmin", "queues.pfc"},
		"transport: {kind: swift, swift: {base_target: 10us}}\ntopology: {kind: star, hosts: 4, link: {delay: 10us}}":                    {"transport.swift.base_target"},
		"transport: {kind: ccm, ccm: {inner: swift, swift: {base_target: 10us}}}\ntopology: {kind: star, hosts: 4, link: {delay: 10us}}": {"transport.ccm.swift.base_target"},
		"transport: {kind: ccm}\ntopology: {kind: star, hosts: 4, link: {delay: 2ms}}":                                                   nil,
		"transport: {kind: ccm, ccm: {timeout: 1ms}}\ntopology: {kind: star, hosts: 4, link: {delay: 2ms}}":                              {"transport.ccm.timeout"},
		"transport: {kind: pc4, pc4: {target_qtime: 100ns}}":                                                                             {"transport.pc4.target_qtime"},
		"transport: {kind: strack, strack: {max_cwnd: 0.5}}":                                                                             {"transport.strack.max_cwnd"},
		"transport: {kind: strack, strack: {ack_every: 64KiB}}":                                                                          {"transport.strack.max_cwnd"},
		"transport: {kind: spray}\ntopology: {kind: star, hosts: 4, link: {delay: 10ms}}":                                                {"topology.mtu"},
		"transport: {kind: roce}\nqueues: {buffer: 2MB}":                                                                                 {"queues.pfc"},
		"transport: {kind: roce}\nqueues: {pfc: on}":                                                                                     nil,
		"transport: {kind: roce}\nqueues: {ecn: off, shared: {total: 32MB}, pfc: on}":                                                    {"queues.ecn"},
		"transport: {kind: roce}\nqueues: {ecn: off, routing: adaptive}":                                                                 {"queues.ecn", "queues.pfc", "queues.routing"},
		"transport: {kind: roce}":   {"queues.pfc"},
		"transport: {kind: strack}": nil,

		"transport: {kind: roce, roce: {recovery: selective-repeat}}\nqueues: {buffer: 2MB, routing: spray}": nil,
		"transport: {kind: hpcc}":                                                                                {"queues.pfc"},
		"transport: {kind: strack}\nqueues: {routing: spray}":                                                    nil,
		"transport: {kind: strack}\nqueues: {ecn: off}":                                                          {"queues.ecn"},
		"transport: {kind: ccm}":                                                                                 nil,
		"transport: {kind: ccm}\nqueues: {buffer: 2MB}":                                                          nil,
		"transport: {kind: ccm, ccm: {recovery: go-back-n}}\nqueues: {pfc: on}":                                  {"transport.ccm.recovery"},
		"transport: {kind: ccm, ccm: {inner: pc4}}\nclocks: {sync: none}":                                        {"clocks.sync"},
		"transport: {kind: hpcc, hpcc: {recovery: selective-repeat}}\nqueues: {routing: spray}":                  {"queues.routing"},
		"transport: {kind: pc4, pc4: {recovery: selective-repeat}}\nqueues: {routing: spray}":                    nil,
		"transport: {kind: roce}\nqueues: {pfc: on}\nsweep: {queues.pfc: [on, off]}":                             {"queues.pfc"},
		"transport: {kind: swift}\nsweep: {topology.link.jitter: [1us, 2us]}":                                    {"topology.link"},
		"transport: {kind: roce}\nqueues: {pfc: on}\nsweep: {transport.kind: [roce, hpcc, swift], seed: [1, 2]}": nil,
	} {
		labs, err := lab.Parse("lab.yaml", []byte(withNetwork(text)), lab.Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, p := range OutsideOf(labs) {
			got = append(got, p.Path)
			if !strings.Contains(p.Message, " is outside its conditions: ") || !strings.Contains(p.Message, "; expected ") || p.Line == 0 && p.Flag == "" {
				t.Errorf("%s: %v", text, p)
			}
			without := ""
			if strings.Contains(text, "buffer: ") {
				without = " without queues.buffer" // which PFC would refuse
			}
			if want := fmt.Sprintf(pfc, without); p.Path == "queues.pfc" && strings.Contains(text, "kind: roce}\n") && !strings.HasSuffix(p.Error(), want) {
				t.Errorf("%s: got\n%v\nwant\n%s", text, p, want)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// The advice to turn PFC on names all that has to go, so that the lab is valid with it.
func TestAdviceOnPFCWorks(t *testing.T) {
	const text = "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4, link: {jitter: JITTER}}\nqueues: {buffer: BUFFER, trim: TRIM, shared: off, pfc: PFC}\n" +
		"transport: {kind: hpcc}\nworkload: [{collective: permute, size: 1MB}]\n"
	labs, err := lab.Parse("lab.yaml", []byte(strings.NewReplacer("JITTER", "1us", "BUFFER", "2MB", "TRIM", "on", "PFC", "off").Replace(text)), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "expected queues.pfc: on without topology.link.jitter, queues.buffer, queues.shared: off, queues.trim"
	if got := OutsideOf(labs); len(got) == 0 || !strings.Contains(got[0].Message, want) {
		t.Errorf("%v, want %q", got, want)
	}
	followed := strings.NewReplacer("jitter: JITTER", "", "buffer: BUFFER, trim: TRIM, shared: off, ", "", "PFC", "on").Replace(text)
	if _, err := lab.Parse("lab.yaml", []byte(followed), lab.Options{}); err != nil {
		t.Error(err)
	}
}

// A condition that a default does not meet is reported with the transport whose condition it is, or
// with the section beside the default.
func TestConditionsHavePlaces(t *testing.T) {
	for text, want := range map[string]string{
		"transport: {kind: roce}":                                   "lab.yaml:5:19: queues.pfc: ",
		"transport: {kind: roce}\nqueues: {buffer: 1MB}":            "lab.yaml:6:9: queues.pfc: ",
		"transport: {kind: roce}\nqueues: {pfc: off}":               "lab.yaml:6:15: queues.pfc: ",
		"clocks: {sync: none, offset: ±1ms}":                        "lab.yaml:5:16: clocks.sync: ",
		"queues: {pfc: on}\nsweep: {transport.kind: [swift, roce]}": "",
		"sweep: {transport.kind: [swift, roce]}":                    "lab.yaml:5:33: queues.pfc: ",
	} {
		labs, err := lab.Parse("lab.yaml", []byte("weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 1MB}]\n"+text), lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := OutsideOf(labs)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || !strings.HasPrefix(got[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}

// A link that stays down and is never routed around, though there is another path, causes a warning
// before the run fails.
func TestWarningOfLinksThatStayDown(t *testing.T) {
	const tree = "weft: 1\nname: lab\ntopology: {kind: fat-tree, k: 4}\n"
	for text, want := range map[string]string{
		"faults: [{at: 1us, link: edge0-agg0, down: true}]":                                           "lab.yaml:5:44: faults.0.down: edge0-agg0 stays down, ",
		"faults: [{at: 1us, link: edge0-agg0, down: true, reroute: 1us}]":                             "",
		"faults: [{at: 1us, link: edge0-agg0, down: 5us}]":                                            "",
		"faults: [{at: 1us, link: h0-edge0, down: true}]":                                             "",
		"faults: [{at: 1us, link: edge0-agg0, loss: 1%}]":                                             "",
		"faults: [{at: 1us, link: edge0-agg0, down: true}]\nqueues: {routing: adaptive}":              "",
		"faults: [{at: 1us, link: edge0-agg0, down: 5us}]\nsweep: {faults.0.down: [5us, true]}":       "faults.0.down: edge0-agg0 stays down, ",
		"faults: [{at: 1us, link: edge0-agg0, down: true}]\nsweep: {faults.0.reroute: [10us, 100us]}": "",
	} {
		labs, err := lab.Parse("lab.yaml", []byte(tree+"workload: [{collective: permute, size: 1MB}]\n"+text), lab.Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := slices.DeleteFunc(OutsideOf(labs), func(p lab.Problem) bool { return !strings.HasPrefix(p.Path, "faults.") })
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}

// PC4's controller knows the flows of collectives alone. A lab in which more than a few other flows
// converge on a host gets a warning.
func TestUnannouncedFlowsAreTold(t *testing.T) {
	list := func(n int) string {
		var flows []string
		for i := range n {
			flows = append(flows, fmt.Sprintf("{from: h%d, to: h0, size: 1MB}", i+1))
		}
		return "flows: [" + strings.Join(flows, ", ") + "]"
	}
	for _, c := range []struct {
		transport, item, want string // want is in the warning; "": there is none
	}{
		{"kind: pc4", list(8), "up to 8 come to one host unannounced"},
		{"kind: pc4", list(4), ""},
		{"kind: pc4", "collective: incast, size: 1MB", ""},
		{"kind: pc4, pc4: {base_rate: off}", list(8), ""},
		{"kind: ccm, ccm: {inner: pc4}", list(8), "expected a collective, or transport.ccm.pc4.base_rate: off"},
		{"kind: ccm", list(8), ""},
		{"kind: swift", list(8), ""},
	} {
		l := parse(t, fmt.Sprintf("weft: 1\nname: list\ntopology: {kind: star, hosts: 9}\nworkload: [{%s}]\ntransport: {%s}\n",
			c.item, c.transport))
		var told string
		for _, p := range Outside(l) {
			if strings.Contains(p.Error(), "unannounced") {
				told = p.Error()
			}
		}
		if (told != "") != (c.want != "") || !strings.Contains(told, c.want) {
			t.Errorf("%s, %s: %q", c.transport, c.item, told)
		}
	}
}
