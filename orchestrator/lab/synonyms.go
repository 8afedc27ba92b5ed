package lab

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/clip"
	"weft/params"
)

// keySynonyms maps what other tools (ns-3, htsim, containerlab, SimAI, nccl-tests, mininet) call a
// key to the path of the key here. Words are lower case without dashes and underscores. If a word
// means several keys, the one in the current section is suggested, and otherwise the first.
var keySynonyms = map[string][]string{
	"version": {"weft"}, "apiversion": {"weft"},
	"title": {"name", "about"}, "description": {"about"}, "comment": {"about"},
	"randomseed": {"seed"}, "rngseed": {"seed"}, "rng": {"seed"},

	"network": {"topology"}, "topo": {"topology"}, "net": {"topology"},
	"shape":     {"topology.kind"},
	"type":      {"topology.kind", "transport.kind", "engine.kind", "workload.*.collective"},
	"bandwidth": {"topology.link.rate", "topology.tiers.*.rate", "topology.links.*.rate", "faults.*.rate"},
	"bw":        {"topology.link.rate", "topology.tiers.*.rate", "topology.links.*.rate", "faults.*.rate"},
	"speed":     {"topology.link.rate", "topology.tiers.*.rate", "topology.links.*.rate", "faults.*.rate"},
	"capacity":  {"topology.link.rate", "topology.tiers.*.rate", "topology.links.*.rate", "faults.*.rate"},
	"datarate":  {"topology.link.rate", "topology.tiers.*.rate", "topology.links.*.rate", "faults.*.rate"},
	"linkrate":  {"topology.link.rate"}, "linespeed": {"topology.link.rate"}, "linkspeed": {"topology.link.rate"},
	"linerate":    {"topology.link.rate"},
	"latency":     {"topology.link.delay", "topology.tiers.*.delay", "topology.links.*.delay", "faults.*.delay"},
	"propagation": {"topology.link.delay", "topology.tiers.*.delay", "topology.links.*.delay", "faults.*.delay"},
	"linkdelay":   {"topology.link.delay"}, "linklatency": {"topology.link.delay"},
	"propagationdelay": {"topology.link.delay"}, "propdelay": {"topology.link.delay"},
	"packetloss": {"topology.link.loss"}, "lossrate": {"topology.link.loss"}, "errorrate": {"topology.link.loss"},
	"droprate": {"topology.link.loss"},
	"ber":      {"topology.link.bit_errors"},
	"hostlink": {"topology.tiers.host"}, "accesslink": {"topology.tiers.host"}, "edgelink": {"topology.tiers.host"},
	"nic": {"topology.tiers.host"}, "nicrate": {"topology.tiers.host.rate"},
	"uplink": {"topology.tiers.leaf"}, "fabriclink": {"topology.tiers.leaf"}, "spinelink": {"topology.tiers.leaf"},
	"corelink":   {"topology.tiers.core"},
	"packetsize": {"topology.mtu"}, "mss": {"topology.mtu"}, "payload": {"topology.mtu"},
	"segmentsize": {"topology.mtu"}, "packetpayloadsize": {"topology.mtu"},
	"oversub": {"topology.oversubscription"}, "oversubscriptionratio": {"topology.oversubscription"},
	"servers": {"topology.hosts"}, "gpus": {"workload.*.ranks", "topology.hosts"},
	"ngpus": {"workload.*.ranks", "topology.hosts"}, "nhosts": {"topology.hosts"}, "numhosts": {"topology.hosts"},
	"nodecount":   {"topology.hosts"},
	"hostspertor": {"topology.hosts_per_leaf"}, "hostsperrack": {"topology.hosts_per_leaf"},
	"serversperrack": {"topology.hosts_per_leaf"}, "gpusperserver": {"topology.hosts_per_leaf"},
	"tors": {"topology.leaves"}, "leafs": {"topology.leaves"}, "nleaf": {"topology.leaves"},
	"numleaves": {"topology.leaves"},
	"nspine":    {"topology.spines"}, "numspines": {"topology.spines"}, "pods": {"topology.k"}, "npods": {"topology.k"},
	"endpoints": {"topology.links.*.between"}, "ends": {"topology.links.*.between"},
	"switches": {"topology.nodes"}, "downlinks": {"topology.down"},

	"queue": {"queues"}, "switch": {"queues"}, "buffers": {"queues.buffer"}, "buffersize": {"queues.buffer"},
	"queuesize": {"queues.buffer"}, "qsize": {"queues.buffer"}, "queuelimit": {"queues.buffer"},
	"red": {"queues.ecn"}, "ecnthreshold": {"queues.ecn"}, "marking": {"queues.ecn"}, "sharedbuffer": {"queues.shared"},
	"loadbalancing": {"queues.routing", "transport.uec.paths"}, "lb": {"queues.routing", "transport.uec.paths"},
	"lbmode": {"queues.routing"}, "loadbalancingalgo": {"transport.uec.paths"},
	"trimming": {"queues.trim"}, "packettrimming": {"queues.trim"},
	"ecmp":     {"queues.routing"},
	"lossless": {"queues.pfc"}, "flowcontrol": {"queues.pfc"},

	"cc": {"transport.kind"}, "ccmode": {"transport.kind"}, "congestioncontrol": {"transport.kind"},
	"protocol": {"transport.kind"}, "dcqcn": {"transport.roce"}, "rto": {"transport.*.rto_min"},
	"minrto": {"transport.*.rto_min"},
	"ev":     {"transport.uec.entropies"}, "evs": {"transport.uec.entropies"}, "entropy": {"transport.uec.entropies"},
	"entropyvalues": {"transport.uec.entropies"}, "pathentropysize": {"transport.uec.entropies"},
	"targetqdelay": {"transport.uec.target"}, "qdelay": {"transport.uec.target"}, "delayalpha": {"transport.uec.ewma"},
	"fi": {"transport.uec.fair"}, "fiscale": {"transport.uec.fast"}, "qathreshold": {"transport.uec.qa_high"},
	"maxwnd": {"transport.uec.max_cwnd"}, "creditperpull": {"transport.uec.per_credit"},
	"ultraethernet": {"transport.uec"}, "uet": {"transport.uec"},
	"retries": {"transport.*.tries"}, "retrycnt": {"transport.*.tries"},

	"traffic": {"workload"}, "flows": {"workload"}, "jobs": {"workload"}, "collectives": {"workload"},
	"applications": {"workload"}, "tasks": {"workload"},
	"operation": {"workload.*.collective"}, "coll": {"workload.*.collective"}, "pattern": {"workload.*.collective"},
	"algo":  {"workload.*.algorithm"},
	"bytes": {"workload.*.size"}, "messagesize": {"workload.*.size"}, "msgsize": {"workload.*.size"},
	"datasize": {"workload.*.size"}, "flowsize": {"workload.*.size"}, "minbytes": {"workload.*.size"},
	"maxbytes": {"workload.*.size"},
	"iters":    {"workload.*.repeat"}, "iterations": {"workload.*.repeat"}, "loops": {"workload.*.repeat"},
	"repetitions": {"workload.*.repeat"},
	"nranks":      {"workload.*.ranks"}, "participants": {"workload.*.ranks"}, "worldsize": {"workload.*.ranks"},
	"senders": {"workload.*.ranks"}, "degree": {"workload.*.ranks"},
	"receiver": {"workload.*.root"}, "dst": {"workload.*.root"},
	"dtype": {"workload.*.type"}, "datatype": {"workload.*.type"}, "redop": {"workload.*.op"},
	"reduction": {"workload.*.op"},
	"starttime": {"workload.*.start"}, "concurrency": {"workload.*.parallel"}, "chunksize": {"workload.*.chunk"},

	"failures": {"faults"}, "failure": {"faults"}, "events": {"faults"}, "linkfailures": {"faults"},
	"linkdown": {"faults"}, "chaos": {"faults"}, "impairments": {"faults"},
	"time": {"faults.*.at"}, "duration": {"faults.*.for"}, "node": {"faults.*.host"},
	"state": {"faults.*.down"}, "crash": {"faults.*.kill"},
	"metrics": {"measure"}, "monitor": {"measure"}, "monitoring": {"measure"}, "telemetry": {"measure"},
	"tracing": {"measure"}, "warmup": {"measure.from"},
	"assert": {"expect"}, "asserts": {"expect"}, "assertions": {"expect"}, "checks": {"expect"},
	"expectations": {"expect"},
	"matrix":       {"sweep"}, "parameters": {"sweep"}, "params": {"sweep"}, "sweeps": {"sweep"}, "grid": {"sweep"},
	"simulator": {"engine.kind"}, "backend": {"engine.kind"}, "mode": {"engine.kind"},
	"clocksync": {"clocks.sync"}, "clock": {"clocks"}, "ntp": {"clocks.sync"}, "drift": {"clocks.skew"},
}

// noKey maps keys of other tools that a lab has no key for to what it has instead.
var noKey = map[string]string{
	"simtime": runEnds, "simulationtime": runEnds, "stoptime": runEnds, "simulatorstoptime": runEnds,
	"endtime": runEnds, "duration": runEnds,
	"seeds": ` (several seeds are a sweep: --set 'sweep.seed=[1, 2]', or sweep: {seed: [1, 2]} in the file)`,
}

const runEnds = " (a run ends when its workload is done; clocks.for watches clocks alone for a time)"

// valueSynonyms maps what others call a value, a word as in keySynonyms, to values here. The first
// that is valid for the key is suggested.
var valueSynonyms = map[string][]string{
	"2tier": {"leaf-spine"}, "twotier": {"leaf-spine"}, "spineleaf": {"leaf-spine"}, "3tier": {"fat-tree"},
	"threetier": {"fat-tree"}, "kary": {"fat-tree"},
	"dragonfly": {"dragonfly-plus"}, "dfplus": {"dragonfly-plus"}, "2dtorus": {"torus"}, "3dtorus": {"torus"},
	"mesh": {"torus"}, "grid": {"torus"},
	"true": {"on"}, "false": {"off"}, "yes": {"on"}, "no": {"off"},

	"singleswitch": {"star"}, "onebigswitch": {"star"}, "switch": {"star"}, "crossbar": {"star"},
	"linear": {"dumbbell"}, "barbell": {"dumbbell"},

	"ultraethernet": {"uec"}, "uet": {"uec"}, "nscc": {"uec"}, "rccc": {"uec"},
	"dcqcn": {"roce"}, "rocev2": {"roce"}, "rdma": {"roce"}, "ib": {"roce"}, "infiniband": {"roce"},
	"verbs": {"roce"}, "gobackn": {"go-back-n"},
	"gbn": {"go-back-n"}, "sr": {"selective-repeat"}, "sack": {"selective-repeat"}, "irn": {"selective-repeat"},
	"packetspraying": {"spray"}, "packetspray": {"spray"}, "rps": {"spray"}, "oblivious": {"spray"},
	"random": {"spray"}, "perpacket": {"spray"},
	"conga": {"adaptive"}, "letflow": {"adaptive"}, "flowlet": {"adaptive"}, "ar": {"adaptive", "all-reduce"},
	"drill": {"adaptive"}, "adaptiverouting": {"adaptive"},
	"hash": {"ecmp"}, "fivetuple": {"ecmp"}, "5tuple": {"ecmp"}, "flow": {"ecmp"},
	"dequeue": {"egress"}, "enqueue": {"ingress"},

	"a2a": {"all-to-all"}, "alltoallv": {"all-to-all"}, "ag": {"all-gather"}, "rs": {"reduce-scatter"},
	"bcast":       {"broadcast"},
	"permutation": {"permute"}, "perm": {"permute"}, "shift": {"permute"}, "sendrecv": {"permute"},
	"hypercube":       {"permute"},
	"parameterserver": {"ps"}, "nto1": {"incast"}, "manytoone": {"incast"}, "fanin": {"incast"},
	"rhd": {"halving-doubling"}, "recursivehalving": {"halving-doubling"}, "recursivedoubling": {"halving-doubling"},
	"tree": {"double-binary-tree"}, "dbt": {"double-binary-tree"},
	"fp32": {"float32"}, "float": {"float32"}, "f32": {"float32"}, "bf16": {"bfloat16"}, "fp16": {"bfloat16"},
	"half": {"bfloat16"}, "int": {"int32"}, "i32": {"int32"},

	"simulation": {"sim"}, "simulator": {"sim"}, "simulate": {"sim"}, "ns3": {"sim"}, "htsim": {"sim"},
	"emulation": {"emu"}, "emulator": {"emu"}, "emulate": {"emu"}, "containerlab": {"emu"}, "mininet": {"emu"},
	"container": {"docker"}, "containers": {"docker"}, "netns": {"namespace"}, "namespaces": {"namespace"},
	"native": {"namespace"}, "process": {"namespace"},
	"linux": {"kernel"}, "tc": {"kernel"}, "netem": {"kernel"}, "ideal": {"perfect"}, "off": {"perfect"},
	"free": {"none"}, "ieee1588": {"ptp"}, "ptp4l": {"ptp"}, "ptpv2": {"ptp"},
}

// shorthands maps sections in whose place people write one value to the key of that value.
var shorthands = map[string]string{
	"topology": "kind", "transport": "kind", "engine": "kind", "clocks": "sync", "workload.*": "collective",
	"topology.link": "rate", "topology.tiers.*": "rate", "topology.nodes.*": "name",
}

// examples are valid values of sections and lists in whose place people write something else.
var examples = map[string]string{
	"queues":        "{buffer: 5bdp}",
	"queues.ecn":    "{kmin: 25%bdp, kmax: 75%bdp}, on, or off",
	"queues.shared": "{total: 32MB}, or off",
	"measure":       "{queues: 10us}",
	"workload":      "[{collective: all-reduce, size: 4MB}]",
	"faults":        "[{at: 1ms, link: leaf0-spine1, down: 1ms}]",
	"expect":        `["drops == 0"]`,
	"report":        "[busbw]",
	"topology.down": "[leaf0-spine3]",
}

// squash returns a word without what people spell differently: case, and characters that join its
// parts.
func squash(word string) string {
	return strings.ToLower(strings.Map(func(c rune) rune {
		if strings.ContainsRune("-_ ./", c) {
			return -1
		}
		return c
	}, word))
}

// knownKey returns a hint at what an unknown key probably means: a key of the section in another
// spelling, what others call one, or a key of another section.
func (s *section) knownKey(word string) string {
	plain := squash(word)
	if i := slices.IndexFunc(s.asked, func(k string) bool { return squash(k) == plain }); i >= 0 {
		return didYouMean(s.asked[i])
	}
	meant := keySynonyms[plain]
	for _, path := range meant {
		section, key := parentOf(path)
		if matches(section, s.pattern) && slices.Contains(s.asked, key) {
			return didYouMean(key)
		}
	}
	outer := !strings.Contains(s.pattern, ".") // within an inner section, a key of another is hardly meant
	if len(meant) > 0 && outer {
		return elsewhere(meant[0])
	}
	if why, ok := noKey[plain]; ok && s.path == "" {
		return why
	}
	if hint := s.d.nearest(word, s.asked); hint != "" || !outer {
		return hint
	}
	for _, p := range Keys() {
		if _, key := parentOf(p.Path); squash(key) == plain && strings.HasPrefix(p.Path, s.path) {
			return elsewhere(p.Path)
		}
	}
	return noKey[plain]
}

// didYouMean returns a hint at a word.
func didYouMean(word string) string { return fmt.Sprintf(" (did you mean %q?)", word) }

// elsewhere returns a hint at the path where a key belongs.
func elsewhere(path string) string {
	return fmt.Sprintf(" (in a lab file this is %s)", strings.ReplaceAll(path, "workload.*", "workload.0"))
}

// parentOf splits a path before its last name.
func parentOf(path string) (section, key string) {
	if cut := strings.LastIndexByte(path, '.'); cut >= 0 {
		return path[:cut], path[cut+1:]
	}
	return "", path
}

// knownValue returns a hint at which of a key's values a word probably means.
func (d *decoder) knownValue(word string, values []string) string {
	if v, ok := meantValue(word, values); ok {
		return didYouMean(v)
	}
	return d.nearest(word, values)
}

// meantValue returns the value that a word is another spelling or another name of.
func meantValue(word string, values []string) (string, bool) {
	plain := squash(word)
	for _, v := range values {
		if squash(v) == plain {
			return v, true
		}
	}
	for _, v := range valueSynonyms[plain] {
		if slices.Contains(values, v) {
			return v, true
		}
	}
	return "", false
}

// unlike returns what was expected of f, as it would be written, if its value is of another YAML
// kind than a section or a list.
func (f field) unlike(expected string) string {
	_, name := parentOf(f.path)
	key, ok := shorthands[f.pattern]
	switch {
	case ok && f.n.kind == scalar && !f.n.null():
		value := f.n.text
		if word, ok := meantValue(value, Values(join(f.pattern, key))); ok {
			value = word
		}
		if params.Digits(name) {
			return fmt.Sprintf("expected %s such as {%s: %s}", expected, key, clip.Text(value))
		}
		return fmt.Sprintf("expected %s: %s: {%s: %s}", expected, name, key, clip.Text(value))
	case examples[f.pattern] != "":
		return fmt.Sprintf("expected %s such as %s: %s", expected, name, examples[f.pattern])
	}
	return "expected " + expected
}
