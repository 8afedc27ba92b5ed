package experiment

import (
	"fmt"
	"strings"
	"testing"

	"weft/orchestrator/lab"
	"weft/transport"
)

// What explain says a lab comes to is what its runs have, with where it is from.
func TestEffectiveSettings(t *testing.T) {
	const leaves = "weft: 1\nname: effective\ntopology:\n  kind: leaf-spine\n  leaves: 2\n  spines: 2\n  hosts_per_leaf: 1\n  link: {rate: 400Gbps}\n" +
		"  tiers: {host: {rate: 100Gbps, delay: 2us}}\n"
	const incast = "workload: [{collective: incast, ranks: 1, size: 1MB}]\n"
	for _, c := range []struct {
		name, text string
		want       map[string][2]string // value, and a part of its origin
	}{
		{"pc4", leaves + incast, map[string][2]string{
			"links.host.rate":               {"100Gbps", "topology.tiers.host.rate: 100Gbps (line 9)"},
			"links.host.delay":              {"2us", "(line 9)"},
			"links.leaf.rate":               {"400Gbps", "topology.link.rate: 400Gbps (line 8)"},
			"links.leaf.delay":              {"1us", "default: "},
			"transport.pc4.rto_min":         {"1ms", "4 base RTTs and at most "},
			"transport.pc4.ai":              {"2Gbps", "base rate, 100Gbps"},
			"transport.first_rate":          {"unpaced", "pc4"},
			"transport.packet":              {"4.198KB", "topology.mtu"},
			"engine.dilation":               {"unknown", "measured"},
			"queues.leaf.ecn.kmin":          {"", "queues.ecn.kmin: 25%bdp (default: STrack paper"},
			"transport.pc4.adjust_interval": {"", "2rtt"},
			"transport.pc4.rtt":             {"", "of the idle path; transport.pc4.rtt: base"},
			"transport.roce.rto_min":        {"-", ""},
			"queues.leaf.pfc.headroom":      {"-", ""},
			"clocks.huygens.window":         {"-", ""},
			"transport.strack.target":       {"-", ""},
			"queues.memory":                 {"-", ""},
			"queues.host.light":             {"-", ""},
			"transport.base_rtt":            {"", "1 connections"},
			"transport.pc4.hai":             {"4Gbps", "4%"},
			"base_rtt":                      {"", "acknowledgement of 98B"},
			"links.leaf.bdp":                {"", "rate times"},
			"transport.first_window":        {"", "pc4"},
			"queues.host.buffer":            {"", "queues.buffer: 5bdp"},
			"transport.pc4.target_qtime":    {"2us", "at least the time of a packet"},
			"queues.host.ecn.kmax":          {"", "75%bdp"},
		}},
		{"roce", leaves + "queues: {pfc: on}\ntransport: {kind: roce, roce: {rai: 5Mbps/25Gbps}}\nengine: {kind: sim}\n" + incast, map[string][2]string{
			"queues.host.ecn.kmin":     {"400KB", "100KB/25Gbps"},
			"queues.leaf.ecn.kmin":     {"1.6MB", "100KB/25Gbps"},
			"queues.memory":            {"128MB", "16MB/50Gbps"},
			"queues.leaf.pfc.headroom": {"150KB", "auto"},
			"transport.roce.rai":       {"20Mbps", "5Mbps/25Gbps"},
			"transport.roce.rto_min":   {"41ms", "at most 41ms of queueing"},
			"transport.first_window":   {"unlimited", "roce"},
			"transport.first_rate":     {"100Gbps", "roce"},
			"engine.dilation":          {"1", "virtual"},
		}},
		{"nccl", leaves + "transport: {kind: swift, swift: {rto_min: nccl, max_window: 64KB, initial_window: 8396B}}\nengine: {dilation: 500}\n" + incast, map[string][2]string{
			"transport.swift.rto_min":        {"4.29s", "NCCL_IB_TIMEOUT"},
			"transport.swift.max_window":     {"64KB", "line 10"},
			"transport.swift.initial_window": {"8.396KB", "line 10"},
			"transport.first_window":         {"8.396KB", "swift"},
			"engine.dilation":                {"500", "line 11"},
		}},
		{"swift", leaves + "transport: {kind: swift}\n" + incast, map[string][2]string{
			"transport.swift.initial_window": {"163.722KB", "initial_window: bdp"},
		}},
		{"uec", leaves + "transport: {kind: uec}\n" + incast, map[string][2]string{"transport.uec.cwnd": {"241.11KB", "transport.uec.cwnd: auto"}}},
		{"full bisection", "weft: 1\nname: effective\ntopology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 3}\n", map[string][2]string{
			"links.leaf.rate":       {"300Gbps", "follows from topology.oversubscription: 1"},
			"transport.packet":      {"-", ""},
			"transport.pc4.rto_min": {"-", ""},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			labs, err := lab.Parse("effective.yaml", []byte(c.text), lab.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all, err := Effective(labs[0])
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, s := range all {
				if s.Value == "" || s.From == "" {
					t.Errorf("%+v says nothing", s)
				}
				want, ok := c.want[s.Path]
				found[s.Path] = true
				if ok && (want[0] != "" && s.Value != want[0] || !strings.Contains(s.From, want[1])) {
					t.Errorf("%s: %s, %s; want %s, %s", s.Path, s.Value, s.From, want[0], want[1])
				}
			}
			for path, want := range c.want {
				if found[path] != (want[0] != "-") {
					t.Errorf("%s is there: %t", path, found[path])
				}
			}
		})
	}
}

// The timeout and the thresholds that are shown are those of the experiment.
func TestEffectiveSettingsAreTheExperiments(t *testing.T) {
	for _, kind := range []string{"pc4", "roce", "swift", "hpcc", "strack", "spray", "ccm"} {
		l := parse(t, star+"transport: {kind: "+kind+"}\nworkload: [{collective: incast, size: 1MB}]\n")
		x, err := Build(l)
		if err != nil {
			t.Fatal(err)
		}
		all, err := Effective(l)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, s := range all {
			got[s.Path] = s.Value
		}
		at := settingsOf(&l.Transport) + ".rto_min"
		port := x.Fabric.Ports[1]
		if got[at] != Short(x.RTOMin).String() || got["queues.host.ecn.kmin"] != port.ECN.Kmin.String() || got["queues.host.buffer"] != port.Buffer.String() {
			t.Errorf("%s: timeout %s, kmin %s, buffer %s; want %v, %v, %v", kind, got[at], got["queues.host.ecn.kmin"], got["queues.host.buffer"],
				x.RTOMin, port.ECN.Kmin, port.Buffer)
		}
	}
}

// Settings of every transport that are derived, which a lab file has as auto or bdp, show the value
// they have here, and the rule that it follows.
func TestDerivedSettingsHaveReasons(t *testing.T) {
	for _, kind := range transport.Kinds() {
		if transport.FactsOf(kind).Module {
			continue // it needs a file
		}
		l := parse(t, star+"transport: {kind: "+kind+"}\nworkload: [{collective: incast, size: 1MB}]\n")
		all, err := Effective(l)
		if err != nil {
			t.Fatal(err)
		}
		derived := map[string]string{}
		for _, s := range all {
			derived[s.Path] = s.Value
			if what, _, _ := strings.Cut(s.From, ";"); strings.TrimSpace(what) == "" {
				t.Errorf("%s: %s is %s for no reason: %q", kind, s.Path, s.Value, s.From)
			}
		}
		for _, s := range l.Sources {
			word := s.Value == "auto" || s.Value == "bdp"
			if value := derived[s.Path]; word && strings.HasPrefix(s.Path, "transport.") && (value == "" || value == s.Value) {
				t.Errorf("%s: %s is %s, and explain does not say which value that is here", kind, s.Path, s.Value)
			}
		}
	}
}

// explain leaves out a default of every link that no link has, because each tier has its own.
func TestUnusedDefaults(t *testing.T) {
	for text, want := range map[string]string{
		"tiers: {host: {rate: 50Gbps}, leaf: {rate: 25Gbps, delay: 2us}}":              "[topology.link.rate]",
		"link: {rate: 10Gbps}, tiers: {host: {rate: 50Gbps}, leaf: {rate: 25Gbps}}":    "[]",
		"tiers: {host: {rate: 50Gbps}}, oversubscription: 1":                           "[topology.link.rate]",
		"tiers: {leaf: {rate: 25Gbps}}":                                                "[]",
		"tiers: {host: {rate: 100Gbps, delay: 3us}, leaf: {rate: 25Gbps, delay: 2us}}": "[topology.link.delay]",
	} {
		whole := "weft: 1\nname: unused\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, " + text + "}\n"
		labs, err := lab.Parse("unused.yaml", []byte(whole), lab.Options{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got, err := Unused(labs[0]); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}
