package run

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"weft/transport"
)

// incastLab is an incast of four senders, run twice, long enough for a sender's rate to change
// several times. flows, the number per sender, is a setting of some cases.
const incastLab = star + `
queues: {buffer: 2MB, ecn: {kmin: 20KB, kmax: 60KB}}
workload: [{collective: incast, ranks: 4, size: 1MB, repeat: 2}]
measure: {queues: off}
`

// Settings in which a parameter has an effect.
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

// effect is two values of a key, and settings with which they differ in their result.
type effect struct {
	a, b string
	with []string
}

// values returns the effect of a key that has two values to compare.
func values(a, b string, with ...string) effect { return effect{a, b, with} }

// effects has every parameter of every transport and of queues.
var effects = map[string]map[string]effect{
	"roce": {
		"preset": values("nvidia", "paper"), "mode": values("mellanox", "paper"),
		"clamp":        values("always", "after-increase"),
		"cnp_interval": values("0s", "200us"), "g": values("1/4", "1/256"), "initial_alpha": values("1", "0.2"), "alpha_interval": values("1us", "50us"),
		"alpha_first":       values("true", "false", "transport.roce.preset=paper", "transport.roce.initial_alpha=0.5", "transport.roce.g=1/4"),
		"decrease_interval": values("4us", "100us"), "first_rate": values("1", "0.3"), "min_rate": values("1Mbps", "40Gbps"),
		"rp_timer": values("20us", "300us"), "byte_counter": values("off", "50KB", "transport.roce.preset=paper"),
		"f": values("1", "5", "transport.roce.rp_timer=10us", "transport.roce.rai=5Gbps"), "rai": values("5Mbps", "5Gbps", "transport.roce.rp_timer=20us", "transport.roce.clamp=always"),
		"rhai": values("50Mbps", "20Gbps", "transport.roce.rp_timer=10us", "transport.roce.clamp=always"),
		"qps":  values("1", "4", "workload.0.chunk=64KB"), "split": values("messages", "round-robin", "transport.roce.qps=2", across, "workload.0.chunk=64KB"),
		"recovery": values("go-back-n", "selective-repeat", lossy), "repath": values("off", "1", forks, across, "queues.ecn.kmin=10KB", "queues.ecn.kmax=10KB", "transport.roce.min_rate=30Gbps"),
		"rto_min": values("200us", "3ms", lossy), "tries": values("1", "7", cut),
	},
	"swift": {
		"ai": values("1", "5"), "beta": values("0.8", "0.2"), "max_mdf": values("0.5", "0.05", "transport.swift.base_target=5us", "transport.swift.fs_range=0s"),
		"base_target": values("10us", "30us"), "per_hop": values("1us", "10us"), "fs_range": values("100us", "0s"), "fs_min": values("0.1", "2"), "fs_max": values("256", "20"),
		"min_window": values("15B", "20KB", crowd), "max_window": values("bdp", "10KB"), "initial_window": values("bdp", "10KB"),
		"retx_reset": values("1", "5", cut, "transport.swift.rto_min=1ms"), "bolt_compat": values("true", "false"),
		"recovery": values("go-back-n", "selective-repeat", lossy), "rto_min": values("200us", "3ms", lossy), "tries": values("1", "7", cut),
	},
	"hpcc": {
		"eta": values("0.95", "0.5"), "max_stage": values("0", "5"), "wai": values("auto", "5KB"), "flows": values("100", "2"), "t": values("auto", "20us"),
		"min_rate": values("100Mbps", "20Gbps", crowd), "recovery": values("go-back-n", "selective-repeat", lossy), "rto_min": values("200us", "3ms", lossy), "tries": values("1", "7", cut),
	},
	"pc4": {
		"target_qtime": values("1us", "scaled"), "adjust_interval": values("1.25rtt", "off", "transport.pc4.base_rate=off"), "ai": values("1%", "50%"), "hai": values("1%", "90%", "transport.pc4.initial=10KB"),
		"beta": values("0.1", "0.9", "transport.pc4.base_rate=off"), "max_mdf": values("0.05", "0.5", "transport.pc4.base_rate=off", "transport.pc4.beta=1", "transport.pc4.initial=line"), "paced_below": values("1", "8"),
		"base_rate": values("controller", "off"), "initial": values("base-rate", "line"), "rtt": values("base", "measured", "transport.pc4.initial=line"),
		"rto_min": values("200us", "3ms", lossy), "tries": values("1", "7", cut), "epsilon": values("0s", "50us"),
		"negative_delay": values("zero", "literal", "clocks.noise=±2us"), "recovery": values("go-back-n", "selective-repeat", lossy),
	},
	"strack": adaptiveEffects(), "spray": strackEffects(), "uec": uecEffects(),
	"queues": {
		"buffer":         values("20KB", "2MB", "queues.ecn=off", "transport.pc4.initial=line"),
		"ecn":            values("off", "on", "transport.kind=strack", "queues={buffer: 2MB}"),
		"ecn.kmin":       values("10KB", "50KB", "transport.kind=strack"),
		"ecn.kmax":       values("21KB", "90KB", "transport.kind=strack"),
		"ecn.pmax":       values("0.1", "1", "transport.kind=strack"),
		"ecn.mark":       values("egress", "ingress", "transport.kind=strack"),
		"shared":         values("off", "{total: 100KB}", "queues={ecn: off}", "transport.pc4.initial=line"),
		"shared.total":   values("100KB", "2MB", shared, "transport.pc4.initial=line"),
		"shared.per":     values("port", "switch", "queues={ecn: off, shared: {total: 100KB/100Gbps}}", "transport.pc4.initial=line"),
		"shared.alpha":   values("1/16", "8", shared, "transport.pc4.initial=line"),
		"pfc":            values("off", "on", "queues={ecn: off, shared: {total: 300KB}}", "transport.pc4.initial=line"),
		"pfc.xoff":       values("20KB", "200KB", paused, "transport.pc4.initial=line"),
		"pfc.xon":        values("auto", "0B", paused, "transport.kind=roce"),
		"pfc.xon_offset": values("0B", "20KB", dynamic, "queues.shared.alpha=1/64", "transport.pc4.initial=line"),
		"pfc.reserve":    values("0B", "40KB", dynamic, "queues.shared.alpha=1/64", "transport.pc4.initial=line"),
		"pfc.headroom":   values("auto", "300KB", dynamic, "queues.shared.alpha=1/64", "transport.pc4.initial=line"),
		"pfc.response":   values("0s", "5us", paused, "transport.kind=roce"),
		"trim":           values("off", "on", "transport.kind=uec", "queues={buffer: 60KB, ecn: {kmin: 20KB, kmax: 50KB}}"),
		"routing":        values("ecmp", "spray", forks, across, "transport.kind=strack"),
		"light":          values("1KB", "200KB", "queues.routing=adaptive", forks, across, "transport.kind=strack"),
	},
}

// adaptiveEffects has the keys of the transport adaptive: those of strack, and its own.
func adaptiveEffects() map[string]effect {
	all := strackEffects()
	marks := []string{forks, across, "queues.ecn={kmin: 4500B, kmax: 4500B}"}
	all["fresh_paths"] = values("true", "false", forks, across)
	all["clear_all"] = values("true", "false", marks...)
	all["paths_per_packet"] = values("0", "1", append(marks, "transport.strack.fresh_paths=true")...)
	all["forget_after"] = values("0", "0.1", marks...)
	return all
}

// strackEffects has the keys of the transport strack.
func strackEffects() map[string]effect {
	shrink := "transport.strack.target=2us"
	return map[string]effect{
		"target": values("2us", "20us", noLimit), "high": values("1", "8", shrink), "ewma": values("0.05", "1", shrink), "alpha": values("0", "20", shrink), "beta": values("0", "50", "queues.ecn=off", shrink),
		"eta": values("0", "5", shrink), "gamma": values("0.1", "1", shrink), "max_mdf": values("0.05", "0.9", shrink, "transport.strack.high=50"), "max_cwnd": values("0.5", "2"),
		"md_requires_ecn": values("true", "false", shrink, "queues.ecn={kmin: 300KB, kmax: 400KB}"), "paths": values("1", "8", forks, across),
		"ack_every": values("4KiB", "64KiB"), "threshold": values("1", "30", lossy, "transport.strack.max_cwnd=0.2"), "probe_after": values("1", "20", lossy), "rto_min": values("200us", "3ms", silent, "transport.strack.tries=2"), "tries": values("1", "7", silent),
	}
}

// uecEffects has the keys of the transport uec.
func uecEffects() map[string]effect {
	const trim = "queues={buffer: 60KB, ecn: {kmin: 20KB, kmax: 50KB}, trim: on}"
	const one = "transport.uec.cwnd=4"
	many := func(a, b string, with ...string) effect { return values(a, b, append(with, forks, across)...) }
	return map[string]effect{
		"cc": values("nscc", "rccc", trim), "paths": many("reps", "oblivious"), "entropies": many("2", "64"),
		"max_cwnd": values("0.5", "2"), "cwnd": values("4", "auto"), "target": values("1us", "20us"), "target_rtt": values("0.2", "3"),
		"ewma": values("1", "1/80"), "alpha": values("0", "100", one), "fair": values("0", "50", one), "eta": values("0", "20", one),
		"fast": values("0", "3", one), "fast_below": values("1ns", "30us", one), "gamma": values("0.1", "1", "transport.uec.target=1us"),
		"max_mdf": values("0.05", "0.9", "transport.uec.target=1us", "transport.uec.qa_high=900"),
		"qa_gate": values("0", "20", trim), "qa_high": values("1", "50", "transport.uec.target=1us"),
		"credit_rate": values("0.5", "1", trim, "transport.uec.cc=rccc"), "per_credit": values("4KiB", "64KiB", trim, "transport.uec.cc=rccc"),
		"ack_every": values("4KiB", "64KiB"), "rto_min": values("200us", "3ms", silent, "transport.uec.tries=2"), "tries": values("1", "7", silent),
	}
}

// summaryJSON returns the summary of a lab without the fields that differ between two runs.
func summaryJSON(t *testing.T, sets ...string) string {
	t.Helper()
	s, err := simulateLab(t, incastLab, sets...)
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

// Every parameter that a lab can set has an effect: two of its values give different results. A
// parameter without a case fails.
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
				a, b := summaryJSON(t, append(sets, path+"."+key+"="+e.a)...), summaryJSON(t, append(sets, path+"."+key+"="+e.b)...)
				if a == b {
					t.Errorf("%s: %s and %s make no difference with %q", key, e.a, e.b, sets)
				}
			})
		}
	}
}

// effects has every key for which a lab has a value, without those of CCM and of modules.
func TestEffectsHaveAllParameters(t *testing.T) {
	all := [][]string{
		{"transport.kind=roce", "transport.roce.preset=paper"}, {"transport.kind=uec", "transport.uec.cc=both"},
		{shared}, {paused}, {dynamic}, {"queues.routing=adaptive"},
	}
	for _, kind := range transport.Kinds() {
		if kind != "ccm" && kind != "wasm" {
			all = append(all, []string{"transport.kind=" + kind})
		}
	}
	for _, sets := range all {
		for _, s := range parse(t, incastLab, sets...).Sources {
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
