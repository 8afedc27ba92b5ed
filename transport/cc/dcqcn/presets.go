package dcqcn

import "slices"

// A Preset is a published set of DCQCN parameters, by the keys of transport.roce. Rates and queue
// lengths that the source scales with the line rate are written that way: 5Mbps/25Gbps.
type Preset struct {
	Name, Source string
	values       map[string]string
	ECN          [3]string // kmin, kmax and pmax of its switches; empty if the source gives none
}

// paperNIC and mellanoxNIC return the parameters that the sets of a mode have in common, replaced
// by those in over.
func paperNIC(over map[string]string) map[string]string {
	return with(map[string]string{
		"mode": "paper", "clamp": "always", "cnp_interval": "50us", "g": "1/256", "initial_alpha": "1",
		"alpha_interval": "55us", "min_rate": "100Mbps", "rp_timer": "55us", "byte_counter": "10MB", "f": "5",
		"rai": "40Mbps", "rhai": "200Mbps",
	}, over)
}

func mellanoxNIC(over map[string]string) map[string]string {
	return with(map[string]string{
		"mode": "mellanox", "clamp": "after-increase", "cnp_interval": "0s", "g": "1/256", "initial_alpha": "1",
		"alpha_interval": "1us", "decrease_interval": "4us", "first_rate": "1", "min_rate": "1Gbps",
		"rp_timer": "300us", "f": "1", "rai": "5Mbps/25Gbps", "rhai": "50Mbps/25Gbps",
	}, over)
}

// with replaces values by those in over.
func with(values, over map[string]string) map[string]string {
	for k, v := range over {
		values[k] = v
	}
	return values
}

// presets returns all presets, the default first.
func presets() []Preset {
	scaled := [3]string{"100KB/25Gbps", "400KB/25Gbps", "0.2"}
	doc := map[string]string{"rp_timer": "900us", "rai": "50Mbps", "rhai": "100Mbps", "min_rate": "100Mbps"}
	return []Preset{
		// In DOCA: MIN_TIME_BETWEEN_CNPS 4, DCE_TCP_G 1019 of 1024 (1 - g), INITIAL_ALPHA_VALUE
		// 1023 of 1024, RPG_MIN_RATE, RPG_AI_RATE, RPG_HAI_RATE, CLAMP_TGT_RATE 0,
		// CLAMP_TGT_RATE_AFTER_TIME_INC 1.
		{Name: "nvidia", Source: "NVIDIA DOCA, DCQCN parameters; mlxconfig defaults of ConnectX NICs",
			values: mellanoxNIC(map[string]string{
				"cnp_interval": "4us", "g": "5/1024", "initial_alpha": "1023/1024", "min_rate": "1Mbps",
				"rai": "5Mbps", "rhai": "50Mbps"})},
		{Name: "paper", Source: "DCQCN paper, SIGCOMM 2015, as quoted by later work", values: paperNIC(nil),
			ECN: [3]string{"5KB", "200KB", "0.01"}},
		{Name: "mellanox", Source: "alibaba-edu/High-Precision-Congestion-Control, run.py, dcqcn",
			values: mellanoxNIC(nil), ECN: scaled},
		{Name: "ns3-rdma", Source: "bobzhuyb/ns3-rdma, class defaults", values: paperNIC(map[string]string{
			"clamp": "after-bytes", "alpha_first": "true", "g": "1/16", "rp_timer": "1500us", "byte_counter": "150KB",
			"rai": "5Mbps", "rhai": "50Mbps"})},
		{Name: "ns3-rdma-sample", Source: "bobzhuyb/ns3-rdma, sample configuration for 40 Gb/s",
			values: paperNIC(map[string]string{
				"alpha_first": "true", "rp_timer": "60us", "byte_counter": "300MB"}),
			ECN: [3]string{"40KB", "1MB", "1"}},
		{Name: "alibaba-paper", Source: "alibaba-edu/High-Precision-Congestion-Control, run.py, dcqcn_paper",
			values: mellanoxNIC(map[string]string{
				"alpha_interval": "50us", "decrease_interval": "50us", "rp_timer": "55us"}), ECN: scaled},
		{Name: "alibaba-doc", Source: "alibaba-edu/High-Precision-Congestion-Control, config_doc.txt",
			values: mellanoxNIC(doc), ECN: scaled},
		{Name: "conweave", Source: "conweave-project/conweave-ns3, run.py", values: mellanoxNIC(map[string]string{
			"rai": "10Mbps/25Gbps", "rhai": "25Mbps/25Gbps", "min_rate": "100Mbps"}),
			ECN: [3]string{"100KB", "400KB", "0.2"}},
		{Name: "simai", Source: "aliyun/SimAI, SimAI.conf; its queue lengths are those of 100 Gb/s, scaled",
			values: mellanoxNIC(doc), ECN: scaled},
		{Name: "uet-htsim", Source: "ultraethernet/uet-htsim, dcqcn.cpp", values: paperNIC(map[string]string{
			"rai": "1Gbps/20Gbps", "rhai": "1Gbps/10Gbps"})},
	}
}

// PresetOf returns the preset of the given name, or the default if there is none.
func PresetOf(name string) Preset {
	all := presets()
	return all[max(0, slices.IndexFunc(all, func(p Preset) bool { return p.Name == name }))]
}

// presetNames returns the names of all presets.
func presetNames() (names []string) {
	for _, p := range presets() {
		names = append(names, p.Name)
	}
	return names
}

// Marking returns the preset with the ECN thresholds of switches for p: p itself if its source has
// them.
func (p Preset) Marking() Preset {
	if p.ECN[0] != "" {
		return p
	}
	return Preset{
		Source: "DCQCN as alibaba-edu/High-Precision-Congestion-Control runs it, run.py; NVIDIA gives no values " +
			"for switches",
		ECN: [3]string{"100KB/25Gbps", "400KB/25Gbps", "0.2"},
	}
}
