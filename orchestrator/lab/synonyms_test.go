package lab

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// What a synonym stands for exists, and no synonym is itself a key of the section that it is about.
func TestSynonymsAreOfTheFormat(t *testing.T) {
	paths, words := map[string]bool{}, map[string]bool{}
	for _, p := range Keys() {
		paths[p.Path] = true
		for _, v := range p.Values {
			words[v] = true
		}
	}
	exists := func(path string) bool {
		if paths[path] {
			return true
		}
		return slices.ContainsFunc(slices.Collect(maps.Keys(paths)), func(p string) bool { return matches(path, p) })
	}
	for word, meant := range keySynonyms {
		if squash(word) != word {
			t.Errorf("%q would never be found; expected %q", word, squash(word))
		}
		for _, path := range meant {
			if !exists(path) {
				t.Errorf("%s: there is no key %s", word, path)
			}
			if _, key := parentOf(path); squash(key) == word {
				t.Errorf("%s: %s needs no synonym", word, path)
			}
		}
	}
	for word, meant := range valueSynonyms {
		if squash(word) != word {
			t.Errorf("%q would never be found; expected %q", word, squash(word))
		}
		for _, v := range meant {
			if !words[v] {
				t.Errorf("%s: no key has the value %q", word, v)
			}
		}
	}
	for section, key := range shorthands {
		if !exists(section+"."+key) && !exists(strings.TrimSuffix(section, ".*")) {
			t.Errorf("%s has no key %s", section, key)
		}
	}
	for path := range examples {
		if !exists(path) {
			t.Errorf("there is no %s", path)
		}
	}
}

// What people who come from other tools type is answered with what to type here.
func TestWordsOfOtherToolsAreAnswered(t *testing.T) {
	const top = "weft: 1\nname: a\ntopology: {kind: star, hosts: 4}\n"
	for text, want := range map[string]string{
		// sections and keys
		top + "failures: []":              `did you mean "faults"?`,
		top + "link_failures: []":         `did you mean "faults"?`,
		top + "traffic: []":               `did you mean "workload"?`,
		top + "Workload: []":              `did you mean "workload"?`,
		top + "flows: []":                 `did you mean "workload"?`,
		top + "assertions: []":            `did you mean "expect"?`,
		top + "matrix: {}":                `did you mean "sweep"?`,
		top + "metrics: {}":               `did you mean "measure"?`,
		top + "description: x":            `did you mean "about"?`,
		top + "seeds: [1, 2]":             `(several seeds are a sweep: --set 'sweep.seed=[1, 2]', or `,
		top + "rng_seed: 3":               `did you mean "seed"?`,
		top + "host_link: {rate: 1Gbps}":  "in a lab file this is topology.tiers.host",
		top + "bandwidth: 100Gbps":        "in a lab file this is topology.link.rate",
		top + "latency: 1us":              "in a lab file this is topology.link.delay",
		top + "ecn: true":                 "in a lab file this is queues.ecn",
		top + "loss: 1%":                  "in a lab file this is topology.link.loss",
		top + "kmin: 1KB":                 "in a lab file this is queues.ecn.kmin",
		top + "mtu: 1500":                 "in a lab file this is topology.mtu",
		top + "packet_size: 1500":         "in a lab file this is topology.mtu",
		top + "cc: dcqcn":                 "in a lab file this is transport.kind",
		top + "congestion_control: dcqcn": "in a lab file this is transport.kind",
		top + "load_balancing: ecmp":      "in a lab file this is queues.routing",
		top + "runtime: docker":           "in a lab file this is engine.runtime",
		top + "sim_time: 4s":              "a run ends when its workload is done",
		top + "workload: [{collective: permute, bytes: 4MB}]":                                     `did you mean "size"?`,
		top + "workload: [{collective: permute, size: 4MB, iters: 3}]":                            `did you mean "repeat"?`,
		top + "workload: [{collective: permute, size: 4MB, algo: x}]":                             `did you mean "algorithm"?`,
		top + "workload: [{coll: permute, size: 4MB}]":                                            `did you mean "collective"?`,
		top + "workload: [{collective: permute, size: 4MB, dtype: x}]":                            `did you mean "type"?`,
		top + "queues: {buffer_size: 1MB}":                                                        `did you mean "buffer"?`,
		top + "queues: {RED: on}":                                                                 `did you mean "ecn"?`,
		"weft: 1\nname: a\ntopology: {kind: star, hosts: 4, link: {bw: 1Gbps, latency: 1us}}":     `did you mean "rate"?`,
		"weft: 1\nname: a\ntopology: {kind: star, servers: 4}":                                    `did you mean "hosts"?`,
		"weft: 1\nname: a\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_tor: 4}":  `did you mean "hosts_per_leaf"?`,
		"weft: 1\nname: a\ntopology: {kind: leaf-spine, leafs: 2, spines: 2, hosts_per_leaf: 4}":  `did you mean "leaves"?`,
		"weft: 1\nname: a\ntopology: {kind: star, hosts: 4, tiers: {host: {bandwidth: 1Gbps}}}":   `did you mean "rate"?`,
		"weft: 1\nname: a\ntopology: {kind: fat-tree, k: 4, oversubscription_ratio: 4}":           "in a lab file this is topology.oversubscription",
		"weft: 1\nname: a\ntopology: {kind: something, bandwidth: 4Gbps}":                         "topology.bandwidth: unknown key",
		"weft: 1\nname: a\ntopology: {kind: fattree, k: 4}":                                       `did you mean "fat-tree"?`,
		"weft: 1\nname: a\ntopology: {kind: leafspine, leaves: 2, spines: 2, hosts_per_leaf: 4}":  `did you mean "leaf-spine"?`,
		"weft: 1\nname: a\ntopology: {kind: spine_leaf, leaves: 2, spines: 2, hosts_per_leaf: 4}": `did you mean "leaf-spine"?`,
		"weft: 1\nname: a\ntopology: {kind: dragonfly}":                                           `did you mean "dragonfly-plus"?`,
		"weft: 1\nname: a\ntopology: fattree":                                                     "expected a section of keys: topology: {kind: fat-tree}",
		"weft: 1\nname: a\ntopology: {kind: star, hosts: 4, link: 100Gbps}":                       "expected a section of keys: link: {rate: 100Gbps}",
		"weft: 1\nname: a\ntopology: {kind: star, hosts: 4, link: {rate: 100gbps}}":               "did you mean 100Gbps?",
		"weft: 1\nname: a\ntopology: {kind: star, hosts: 4, link: {rate: 100G, delay: 1 usec}}":   "did you mean 1us?",
		top + "queues: {trimming: on}":                                                            `did you mean "trim"?`,
		top + "queues: {lb: spray}":                                                               `did you mean "routing"?`,
		top + "transport: {kind: uec, uec: {lb: reps}}":                                           `did you mean "paths"?`,
		top + "transport: {kind: uec, uec: {ev: 64}}":                                             `did you mean "entropies"?`,
		top + "transport: {kind: uec, uec: {target_qdelay: 4us}}":                                 `did you mean "target"?`,
		// values
		top + "transport: {kind: ultra-ethernet}":                                `did you mean "uec"?`,
		top + "transport: {kind: nscc}":                                          `did you mean "uec"?`,
		top + "transport: {kind: dcqcn}":                                         `did you mean "roce"?`,
		top + "transport: {kind: RoCEv2}":                                        `did you mean "roce"?`,
		top + "transport: {kind: PC4}":                                           `did you mean "pc4"?`,
		top + "transport: {kind: packet_spraying}":                               `did you mean "spray"?`,
		top + "transport: pc4":                                                   "expected a section of keys: transport: {kind: pc4}",
		top + "transport: DCQCN":                                                 "expected a section of keys: transport: {kind: roce}",
		top + "queues: {ecn: true}":                                              "such as ecn: {kmin: 25%bdp, kmax: 75%bdp}, on, or off",
		top + "queues: {pfc: true}":                                              `did you mean "on"?`,
		top + "queues: {routing: flowlet}":                                       `did you mean "adaptive"?`,
		top + "queues: {routing: rps}":                                           `did you mean "spray"?`,
		top + "queues: {buffer: 16MB, ecn: {mark: enqueue}}":                     `did you mean "ingress"?`,
		top + "workload: all-reduce":                                             "such as workload: [{collective: all-reduce, size: 4MB}]",
		top + "workload: [allreduce]":                                            "such as {collective: all-reduce}",
		top + "workload: [{collective: allreduce, size: 4MB}]":                   `did you mean "all-reduce"?`,
		top + "workload: [{collective: all_to_all, size: 4MB}]":                  `did you mean "all-to-all"?`,
		top + "workload: [{collective: AllGather, size: 4MB}]":                   `did you mean "all-gather"?`,
		top + "workload: [{collective: bcast, size: 4MB}]":                       `did you mean "broadcast"?`,
		top + "workload: [{collective: permutation, size: 4MB}]":                 `did you mean "permute"?`,
		top + "workload: [{collective: all-reduce, algorithm: rhd, size: 4MB}]":  `did you mean "halving-doubling"?`,
		top + "workload: [{collective: all-reduce, algorithm: tree, size: 4MB}]": `did you mean "double-binary-tree"?`,
		top + "workload: [{collective: all-reduce, type: fp32, size: 4MB}]":      `did you mean "float32"?`,
		top + "workload: [{collective: permute, size: 4M}]":                      "did you mean 4MB or 4MiB?",
		top + "engine: emulation":                                                "expected a section of keys: engine: {kind: emu}",
		top + "engine: {kind: ns3}":                                              `did you mean "sim"?`,
		top + "engine: {runtime: container}":                                     `did you mean "docker"?`,
		top + "engine: {datapath: linux}":                                        `did you mean "kernel"?`,
		top + "clocks: ptp":                                                      "expected a section of keys: clocks: {sync: ptp}",
		top + "clocks: {sync: ideal}":                                            `did you mean "perfect"?`,
		top + "faults: {at: 1ms}":                                                "expected a list such as faults: [{at: 1ms",
	} {
		_, err := Parse("lab.yaml", []byte(text+"\n"), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}
