package dcqcn

import "weft/units"

// A Set is a set of parameters that somebody uses, by name, for a NIC of a given rate.
type Set struct {
	Name   string
	Source string
	Params func(line units.Bandwidth) Params
	// Marking is what the same source sets in its switches; nil where it says nothing.
	Marking func(link units.Bandwidth) Marking
}

// Marking is how a switch marks by queue length: never up to Kmin, from there with a probability that rises to
// Pmax at Kmax, and always above (package fabric).
type Marking struct {
	Kmin, Kmax units.Bytes
	Pmax       float64
}

// Sets returns all named sets, the default first.
func Sets() []Set {
	return []Set{
		{"nvidia", "NVIDIA DOCA, DCQCN parameters; mlxconfig defaults of ConnectX NICs", nvidia, nil},
		{"sigcomm15", "Zhu et al., SIGCOMM 2015, as quoted by later work; hyper increase after the authors' sample configuration", sigcomm15, fixed(5*units.KB, 200*units.KB, 0.01)},
		{"ns3-rdma", "bobzhuyb/ns3-rdma, class defaults", ns3RDMA, nil},
		{"ns3-rdma-sample", "bobzhuyb/ns3-rdma, sample configuration for 40 Gb/s", ns3RDMASample, fixed(40*units.KB, 1000*units.KB, 1)},
		{"alibaba", "alibaba-edu/High-Precision-Congestion-Control, run.py, dcqcn", alibaba, perLink(100*units.KB, 400*units.KB, 0.2)},
		{"alibaba-paper", "alibaba-edu/High-Precision-Congestion-Control, run.py, dcqcn_paper", alibabaPaper, perLink(100*units.KB, 400*units.KB, 0.2)},
		{"alibaba-doc", "alibaba-edu/High-Precision-Congestion-Control, config_doc.txt", alibabaDoc, perLink(100*units.KB, 400*units.KB, 0.2)},
		{"conweave", "conweave-project/conweave-ns3, run.py", conweave, fixed(100*units.KB, 400*units.KB, 0.2)},
		{"simai", "aliyun/SimAI, SimAI.conf", simAI, simAIMarking},
		{"uet-htsim", "ultraethernet/uet-htsim, dcqcn.cpp: increments of 5 and 10 % of the line", uetHTSim, nil},
	}
}

// ByName returns the set of a name.
func ByName(name string) (Set, bool) {
	for _, s := range Sets() {
		if s.Name == name {
			return s, true
		}
	}
	return Set{}, false
}

// nvidia is the row of the NICs' own defaults: DCE_TCP_G 1019 of 1024, INITIAL_ALPHA_VALUE 1023 of 1024,
// DCE_TCP_RTT, RATE_REDUCE_MONITOR_PERIOD, RPG_TIME_RESET, RPG_THRESHOLD, RPG_AI_RATE, RPG_HAI_RATE, RPG_MIN_RATE,
// RATE_TO_SET_ON_FIRST_CNP 0 (off), CLAMP_TGT_RATE 0, CLAMP_TGT_RATE_AFTER_TIME_INC 1, MIN_TIME_BETWEEN_CNPS 4.
func nvidia(units.Bandwidth) Params {
	return Params{
		Mode: Mellanox, Clamp: ClampAfterIncrease,
		CNPInterval: 4 * units.Microsecond,
		G:           5.0 / 1024, InitialAlpha: 1023.0 / 1024, AlphaInterval: units.Microsecond,
		DecreaseInterval: 4 * units.Microsecond, FirstRate: 1, MinRate: units.Mbps,
		RPTimer: 300 * units.Microsecond, F: 1, RAI: 5 * units.Mbps, RHAI: 50 * units.Mbps,
	}
}

func sigcomm15(units.Bandwidth) Params {
	return Params{
		Mode: Paper, Clamp: ClampAlways,
		CNPInterval: 50 * units.Microsecond,
		G:           1.0 / 256, InitialAlpha: 1, AlphaInterval: 55 * units.Microsecond, MinRate: 100 * units.Mbps,
		RPTimer: 55 * units.Microsecond, ByteCounter: 10 * units.MB, F: 5, RAI: 40 * units.Mbps, RHAI: 200 * units.Mbps,
	}
}

func ns3RDMA(line units.Bandwidth) Params {
	p := sigcomm15(line)
	p.Clamp, p.AlphaFirst, p.G = ClampAfterBytes, true, 1.0/16
	p.RPTimer, p.ByteCounter, p.RAI, p.RHAI = 1500*units.Microsecond, 150*units.KB, 5*units.Mbps, 50*units.Mbps
	return p
}

func ns3RDMASample(line units.Bandwidth) Params {
	p := sigcomm15(line)
	p.AlphaFirst = true
	p.RPTimer, p.ByteCounter = 60*units.Microsecond, 300*units.MB
	return p
}

// alibaba is the "production" set. Its simulator answers every marked packet and leaves the limit to the decrease interval.
func alibaba(line units.Bandwidth) Params {
	p := nvidia(line)
	p.CNPInterval, p.G, p.InitialAlpha, p.MinRate = 0, 1.0/256, 1, units.Gbps
	p.RAI, p.RHAI = scaled(5*units.Mbps, line), scaled(50*units.Mbps, line)
	return p
}

// alibabaPaper is not the paper's machine but the NICs' with intervals like the paper's.
func alibabaPaper(line units.Bandwidth) Params {
	p := alibaba(line)
	p.AlphaInterval, p.DecreaseInterval, p.RPTimer = 50*units.Microsecond, 50*units.Microsecond, 55*units.Microsecond
	return p
}

func alibabaDoc(line units.Bandwidth) Params {
	p := alibaba(line)
	p.RPTimer, p.RAI, p.RHAI, p.MinRate = 900*units.Microsecond, 50*units.Mbps, 100*units.Mbps, 100*units.Mbps
	return p
}

func conweave(line units.Bandwidth) Params {
	p := alibaba(line)
	p.RAI, p.RHAI, p.MinRate = scaled(10*units.Mbps, line), scaled(25*units.Mbps, line), 100*units.Mbps
	return p
}

func simAI(line units.Bandwidth) Params { return alibabaDoc(line) }

func uetHTSim(line units.Bandwidth) Params {
	p := sigcomm15(line)
	p.RAI, p.RHAI = max(line/20, 1), max(line/10, 1)
	return p
}

// scaled is a rate that a source states for 25 Gb/s and scales with the line.
func scaled(at25G, line units.Bandwidth) units.Bandwidth {
	return max(units.Bandwidth(float64(at25G)*(float64(line)/float64(25*units.Gbps))), 1)
}

func fixed(kmin, kmax units.Bytes, pmax float64) func(units.Bandwidth) Marking {
	return func(units.Bandwidth) Marking { return Marking{kmin, kmax, pmax} }
}

// perLink is marking stated for 25 Gb/s and scaled with the link.
func perLink(kmin, kmax units.Bytes, pmax float64) func(units.Bandwidth) Marking {
	return func(link units.Bandwidth) Marking {
		by := float64(link) / float64(25*units.Gbps)
		return Marking{units.Bytes(float64(kmin) * by), units.Bytes(float64(kmax) * by), pmax}
	}
}

// simAIMarking is a table over 100, 200 and 400 Gb/s; other rates take the row below.
func simAIMarking(link units.Bandwidth) Marking {
	switch {
	case link >= 400*units.Gbps:
		return Marking{800 * units.KB, 3200 * units.KB, 0.2}
	case link >= 200*units.Gbps:
		return Marking{300 * units.KB, 1200 * units.KB, 0.8}
	default:
		return Marking{400 * units.KB, 1600 * units.KB, 0.2}
	}
}
