package lab

import "slices"

// value is a default as it would be written, and where it is from.
type value struct{ text, source string }

// A preset is a set of DCQCN's parameters that somebody uses, by the keys of the section roce. Rates and queue lengths
// that a source scales with the line are written as such: 5Mbps/25Gbps. The one set that
// package dcqcn has as numbers is its defaults; tests of package run hold those to the preset nvidia, and every preset to its source.
type preset struct {
	name, source string
	values       map[string]string
	ecn          [3]string // kmin, kmax and pmax of its switches; empty where the source says nothing
}

// paperNIC and mellanoxNIC are what the sets of a mode have in common.
func paperNIC(over map[string]string) map[string]string {
	return with(map[string]string{
		"mode": "paper", "clamp": "always", "cnp_interval": "50us", "g": "1/256", "initial_alpha": "1", "alpha_interval": "55us",
		"min_rate": "100Mbps", "rp_timer": "55us", "byte_counter": "10MB", "f": "5", "rai": "40Mbps", "rhai": "200Mbps",
	}, over)
}

func mellanoxNIC(over map[string]string) map[string]string {
	return with(map[string]string{
		"mode": "mellanox", "clamp": "after-increase", "cnp_interval": "0s", "g": "1/256", "initial_alpha": "1", "alpha_interval": "1us",
		"decrease_interval": "4us", "first_rate": "1", "min_rate": "1Gbps", "rp_timer": "300us", "f": "1",
		"rai": "5Mbps/25Gbps", "rhai": "50Mbps/25Gbps",
	}, over)
}

func with(values, over map[string]string) map[string]string {
	for k, v := range over {
		values[k] = v
	}
	return values
}

// presets returns every preset, the default first.
func presets() []preset {
	scaled := [3]string{"100KB/25Gbps", "400KB/25Gbps", "0.2"}
	doc := map[string]string{"rp_timer": "900us", "rai": "50Mbps", "rhai": "100Mbps", "min_rate": "100Mbps"}
	return []preset{
		{name: "nvidia", source: "NVIDIA DOCA, DCQCN parameters; mlxconfig defaults of ConnectX NICs", values: mellanoxNIC(map[string]string{
			"cnp_interval": "4us", "g": "5/1024", "initial_alpha": "1023/1024", "min_rate": "1Mbps", "rai": "5Mbps", "rhai": "50Mbps"})},
		{name: "paper", source: "DCQCN paper, SIGCOMM 2015, as quoted by later work", values: paperNIC(nil), ecn: [3]string{"5KB", "200KB", "0.01"}},
		{name: "mellanox", source: "alibaba-edu/High-Precision-Congestion-Control, run.py, dcqcn", values: mellanoxNIC(nil), ecn: scaled},
		{name: "ns3-rdma", source: "bobzhuyb/ns3-rdma, class defaults", values: paperNIC(map[string]string{
			"clamp": "after-bytes", "alpha_first": "true", "g": "1/16", "rp_timer": "1500us", "byte_counter": "150KB", "rai": "5Mbps", "rhai": "50Mbps"})},
		{name: "ns3-rdma-sample", source: "bobzhuyb/ns3-rdma, sample configuration for 40 Gb/s", values: paperNIC(map[string]string{
			"alpha_first": "true", "rp_timer": "60us", "byte_counter": "300MB"}), ecn: [3]string{"40KB", "1MB", "1"}},
		{name: "alibaba-paper", source: "alibaba-edu/High-Precision-Congestion-Control, run.py, dcqcn_paper", values: mellanoxNIC(map[string]string{
			"alpha_interval": "50us", "decrease_interval": "50us", "rp_timer": "55us"}), ecn: scaled},
		{name: "alibaba-doc", source: "alibaba-edu/High-Precision-Congestion-Control, config_doc.txt", values: mellanoxNIC(doc), ecn: scaled},
		{name: "conweave", source: "conweave-project/conweave-ns3, run.py", values: mellanoxNIC(map[string]string{
			"rai": "10Mbps/25Gbps", "rhai": "25Mbps/25Gbps", "min_rate": "100Mbps"}), ecn: [3]string{"100KB", "400KB", "0.2"}},
		{name: "simai", source: "aliyun/SimAI, SimAI.conf; its queue lengths are those of 100 Gb/s, scaled", values: mellanoxNIC(doc), ecn: scaled},
		{name: "uet-htsim", source: "ultraethernet/uet-htsim, dcqcn.cpp", values: paperNIC(map[string]string{
			"rai": "1Gbps/20Gbps", "rhai": "1Gbps/10Gbps"})},
	}
}

func presetNames() choice {
	var names choice
	for _, p := range presets() {
		names.built = append(names.built, p.name)
	}
	return names
}

// nvidiaECN is how switches mark for RoCE where the preset does not say.
var nvidiaECN = preset{
	source: "DCQCN as alibaba-edu/High-Precision-Congestion-Control runs it, run.py; NVIDIA gives no values for switches",
	ecn:    [3]string{"100KB/25Gbps", "400KB/25Gbps", "0.2"},
}

// overlay returns the defaults that follow from the transport and its preset, by path.
func overlay(root *node) map[string]value {
	transport := root.at0("transport")
	kind := transport.at0("kind").textOr(defaults["transport.kind"].text)
	marked, innerPC4 := kind == "roce", false
	section := transport
	if kind == "ccm" {
		section = transport.at0("ccm")
		inner := section.at0("inner").textOr(defaults["transport.ccm.inner"].text)
		marked = inner == "roce"
		innerPC4 = inner == "pc4"
	}
	name := section.at0("roce").at0("preset").textOr(defaults["transport.roce.preset"].text)
	all := presets()
	i := max(0, slices.IndexFunc(all, func(p preset) bool { return p.name == name }))
	p, over := all[i], make(map[string]value)
	for k, v := range p.values {
		over["transport.roce."+k] = value{v, "preset " + p.name + ": " + p.source}
	}
	if marked {
		marking := p
		if p.ecn[0] == "" {
			marking = nvidiaECN
		}
		for i, k := range []string{"kmin", "kmax", "pmax"} {
			over["queues.ecn."+k] = value{marking.ecn[i], marking.source}
		}
	}
	if innerPC4 {
		over["transport.ccm.recovery"] = value{"go-back-n", "ours: selective acknowledgements do not carry the rates that PC4's receivers allot"}
	}
	congested := defaults["transport.ccm.congested"]
	if v, ok := over["queues.ecn.kmin"]; ok {
		congested.text = v.text
	}
	congested.text = root.at0("queues").at0("ecn").at0("kmin").textOr(congested.text)
	over["transport.ccm.congested"] = congested
	return over
}

// at0 returns the value of a key, nil where there is none.
func (n *node) at0(name string) *node {
	if n == nil || n.kind != mapping {
		return nil
	}
	return n.get(name)
}

// textOr returns the text of a scalar, or another.
func (n *node) textOr(text string) string {
	if n == nil || n.kind != scalar || n.null() {
		return text
	}
	return n.text
}
