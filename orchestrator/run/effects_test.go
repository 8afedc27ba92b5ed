package run

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

// incastLab is four to one, twice, long enough for what moves a sender to come several times; flows is how many each has.
const incastLab = star + `
queues: {buffer: 2MB, ecn: {kmin: 20KB, kmax: 60KB}}
workload: [{collective: incast, ranks: 4, size: 1MB, repeat: 2}]
measure: {queues: off}
`

// Settings that bring about what a parameter is for.
const (
	lossy   = "topology.link.loss=1%"
	crowd   = "workload=[{collective: incast, ranks: 4, flows: 30, size: 60KB}]"
	cut     = "faults=[{at: 20us, link: h4-switch0, down: 30ms}]"
	silent  = "faults=[{at: 20us, link: h4-switch0, down: true}]"
	forks   = "topology={kind: leaf-spine, leaves: 2, spines: 3, hosts_per_leaf: 4, oversubscription: 1, link: {rate: 100Gbps, delay: 1us}, mtu: 4096}"
	across  = "workload=[{collective: all-to-all, size: 4MB}]"
	noLimit = "queues={buffer: 8MB, ecn: {kmin: 20KB, kmax: 60KB}}"
	shared  = "queues={ecn: off, shared: {total: 1MB, alpha: 1/8}}"
	paused  = "queues={ecn: off, shared: {total: 2MB}, pfc: {xoff: 60KB}}"
	dynamic = "queues={ecn: off, shared: {total: 2MB}, pfc: {reserve: 4KB}}"
)

// effect is two values of a key, in a lab in which they differ.
type effect struct {
	a, b string
	with []string
}

func in(a, b string, with ...string) effect { return effect{a, b, with} }

// effects has every parameter of every transport, and of queues.
var effects = map[string]map[string]effect{
	"roce": {
		"preset": in("nvidia", "paper"), "mode": in("mellanox", "paper"),
		"clamp":        in("always", "after-increase"),
		"cnp_interval": in("0s", "200us"), "g": in("1/4", "1/256"), "initial_alpha": in("1", "0.2"), "alpha_interval": in("1us", "50us"),
		"alpha_first":       in("true", "false", "transport.roce.preset=paper", "transport.roce.initial_alpha=0.5", "transport.roce.g=1/4"),
		"decrease_interval": in("4us", "100us"), "first_rate": in("1", "0.3"), "min_rate": in("1Mbps", "40Gbps"),
		"rp_timer": in("20us", "300us"), "byte_counter": in("off", "50KB", "transport.roce.preset=paper"),
		"f": in("1", "5", "transport.roce.rp_timer=10us", "transport.roce.rai=5Gbps"), "rai": in("5Mbps", "5Gbps", "transport.roce.rp_timer=20us", "transport.roce.clamp=always"),
		"rhai": in("50Mbps", "20Gbps", "transport.roce.rp_timer=10us", "transport.roce.clamp=always"),
		"qps":  in("1", "4", "workload.0.chunk=64KB"), "split": in("messages", "round-robin", "transport.roce.qps=2", across, "workload.0.chunk=64KB"),
		"recovery": in("go-back-n", "selective-repeat", lossy), "repath": in("off", "1", forks, across, "queues.ecn.kmin=10KB", "queues.ecn.kmax=10KB", "transport.roce.min_rate=30Gbps"),
		"rto_min": in("200us", "3ms", lossy), "tries": in("1", "7", cut),
	},
	"swift": {
		"ai": in("1", "5"), "beta": in("0.8", "0.2"), "max_mdf": in("0.5", "0.05", "transport.swift.base_target=5us", "transport.swift.fs_range=0s"),
		"base_target": in("10us", "30us"), "per_hop": in("1us", "10us"), "fs_range": in("100us", "0s"), "fs_min": in("0.1", "2"), "fs_max": in("256", "20"),
		"min_window": in("15B", "20KB", crowd), "max_window": in("bdp", "10KB"), "initial_window": in("bdp", "10KB"),
		"retx_reset": in("1", "5", cut, "transport.swift.rto_min=1ms"), "bolt_compat": in("true", "false"),
		"rto_min": in("200us", "3ms", lossy), "tries": in("1", "7", cut),
	},
	"hpcc": {
		"eta": in("0.95", "0.5"), "max_stage": in("0", "5"), "wai": in("auto", "5KB"), "flows": in("100", "2"), "t": in("auto", "20us"),
		"min_rate": in("100Mbps", "20Gbps", crowd), "rto_min": in("200us", "3ms", lossy), "tries": in("1", "7", cut),
	},
	"pc4": {
		"target_qtime": in("1us", "scaled"), "adjust_interval": in("1.25rtt", "off", "transport.pc4.base_rate=off"), "ai": in("1%", "50%"), "hai": in("1%", "90%", "transport.pc4.initial=10KB"),
		"beta": in("0.1", "0.9", "transport.pc4.base_rate=off"), "max_mdf": in("0.05", "0.5", "transport.pc4.base_rate=off", "transport.pc4.beta=1", "transport.pc4.initial=line"), "paced_below": in("1", "8"),
		"base_rate": in("controller", "off"), "initial": in("base-rate", "line"), "rtt": in("base", "measured", "transport.pc4.initial=line"),
		"rto_min": in("200us", "3ms", lossy), "tries": in("1", "7", cut), "epsilon": in("0s", "50us"),
		"negative_delay": in("zero", "literal", "clocks.noise=±2us"),
	},
	"strack": adaptiveEffects(), "spray": strackEffects(),
	"queues": {
		"buffer":         in("20KB", "2MB", "queues.ecn=off", "transport.pc4.initial=line"),
		"ecn":            in("off", "on", "transport.kind=strack", "queues={buffer: 2MB}"),
		"ecn.kmin":       in("10KB", "50KB", "transport.kind=strack"),
		"ecn.kmax":       in("21KB", "90KB", "transport.kind=strack"),
		"ecn.pmax":       in("0.1", "1", "transport.kind=strack"),
		"ecn.mark":       in("egress", "ingress", "transport.kind=strack"),
		"shared":         in("off", "{total: 100KB}", "queues={ecn: off}", "transport.pc4.initial=line"),
		"shared.total":   in("100KB", "2MB", shared, "transport.pc4.initial=line"),
		"shared.per":     in("port", "switch", "queues={ecn: off, shared: {total: 100KB/100Gbps}}", "transport.pc4.initial=line"),
		"shared.alpha":   in("1/16", "8", shared, "transport.pc4.initial=line"),
		"pfc":            in("off", "on", "queues={ecn: off, shared: {total: 300KB}}", "transport.pc4.initial=line"),
		"pfc.xoff":       in("20KB", "200KB", paused, "transport.pc4.initial=line"),
		"pfc.xon":        in("auto", "0B", paused, "transport.kind=roce"),
		"pfc.xon_offset": in("0B", "20KB", dynamic, "queues.shared.alpha=1/64", "transport.pc4.initial=line"),
		"pfc.reserve":    in("0B", "40KB", dynamic, "queues.shared.alpha=1/64", "transport.pc4.initial=line"),
		"pfc.headroom":   in("auto", "300KB", dynamic, "queues.shared.alpha=1/64", "transport.pc4.initial=line"),
		"pfc.response":   in("0s", "5us", paused, "transport.kind=roce"),
		"routing":        in("ecmp", "spray", forks, across, "transport.kind=strack"),
		"light":          in("1KB", "200KB", "queues.routing=adaptive", forks, across, "transport.kind=strack"),
	},
}

func adaptiveEffects() map[string]effect {
	all := strackEffects()
	all["fresh_paths"] = in("true", "false", forks, across)
	return all
}

func strackEffects() map[string]effect {
	shrink := "transport.strack.target=2us"
	return map[string]effect{
		"target": in("2us", "20us", noLimit), "high": in("1", "8", shrink), "ewma": in("0.05", "1", shrink), "alpha": in("0", "20", shrink), "beta": in("0", "50", "queues.ecn=off", shrink),
		"eta": in("0", "5", shrink), "gamma": in("0.1", "1", shrink), "max_mdf": in("0.05", "0.9", shrink, "transport.strack.high=50"), "max_cwnd": in("0.5", "2"),
		"md_requires_ecn": in("true", "false", shrink, "queues.ecn={kmin: 300KB, kmax: 400KB}"), "paths": in("1", "8", forks, across),
		"ack_every": in("4KiB", "64KiB"), "threshold": in("1", "30", lossy, "transport.strack.max_cwnd=0.2"), "probe_after": in("1", "20", lossy), "rto_min": in("200us", "3ms", silent, "transport.strack.tries=2"), "tries": in("1", "7", silent),
	}
}

// result is what came out of a lab: everything of its summary that is not about this very run.
func result(t *testing.T, sets ...string) string {
	t.Helper()
	labs, err := lab.Parse("lab.yaml", []byte(incastLab), lab.Options{Set: sets})
	if err != nil {
		t.Fatalf("%q: %v", sets, err)
	}
	s, err := runLab(context.Background(), labs[0], Options{Engine: "sim", Root: t.TempDir()})
	if s == nil {
		t.Fatalf("%q: %v", sets, err)
	}
	s.Run, s.WallS, s.Transport = "", 0, ""
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every parameter that a lab can set has an effect: two values of it, in a lab that is about what it is for, come out differently.
// One that no lab here is about fails.
func TestEveryParameterHasAnEffect(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(effects)) {
		path, run := "transport."+kind, "transport.kind="+kind
		switch kind {
		case "spray":
			path = "transport.strack"
		case "queues":
			path, run = "queues", "transport.kind=pc4"
		}
		for _, key := range slices.Sorted(maps.Keys(effects[kind])) {
			e := effects[kind][key]
			t.Run(kind+"/"+key, func(t *testing.T) {
				t.Parallel()
				sets := append([]string{run}, e.with...)
				a, b := result(t, append(sets, path+"."+key+"="+e.a)...), result(t, append(sets, path+"."+key+"="+e.b)...)
				if a == b {
					t.Errorf("%s: %s and %s make no difference with %q", key, e.a, e.b, sets)
				}
			})
		}
	}
}

// The table has all keys: whatever a lab can have a value of.
func TestEffectsHaveAllParameters(t *testing.T) {
	for _, sets := range [][]string{
		{"transport.kind=roce"}, {"transport.kind=roce", "transport.roce.preset=paper"}, {"transport.kind=swift"}, {"transport.kind=hpcc"},
		{"transport.kind=pc4"}, {"transport.kind=strack"}, {"transport.kind=spray"},
		{shared}, {paused}, {dynamic}, {"queues.routing=adaptive"},
	} {
		labs, err := lab.Parse("lab.yaml", []byte(incastLab), lab.Options{Set: sets})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range labs[0].Sources {
			name, key, of := "queues", "", false
			if key, of = strings.CutPrefix(s.Path, "queues."); !of {
				if key, of = strings.CutPrefix(s.Path, "transport."); !of || key == "kind" {
					continue
				}
				name, key, _ = strings.Cut(key, ".")
			}
			if _, ok := effects[name][key]; !ok {
				t.Errorf("no lab shows what %s does", s.Path)
			}
		}
	}
}
