package hpcc

import (
	"errors"
	"fmt"
	"math"

	"weft/params"
	"weft/transport/cc"
	"weft/units"
)

// Params are the parameters of HPCC (SIGCOMM 2019, section 3).
type Params struct {
	Eta      float64     // η, the target utilization
	MaxStage int         // additive increases in a row before a multiplicative one; 0: always multiplicative
	WAI      units.Bytes // W_AI, added at each update; 0: Winit·(1-η)/Flows
	Flows    int         // N, the expected number of flows on a link; 0 if WAI is set
	BaseRTT  units.Time  // T, the same for all flows; 0: Link.NetRTT, the largest base RTT
	MinRate  params.Rate // minimum rate; 0: none, as in the paper
}

// Keys implements params.Section. The default of flows is ours: at 100 Gb/s and 5 us, 100 flows
// give a W_AI of 31 bytes; the authors' script sets 40 Mb/s, which is 25 bytes. The default of
// min_rate is that of their simulator (their script has 1 Gb/s). Without a minimum, a flow whose
// window is W_AI alone learns of a free line only every few milliseconds, when it sends a packet.
func (p *Params) Keys() []params.Key {
	return []params.Key{
		params.New("eta", params.Share(&p.Eta, 0.01, 1), "Target utilization.").
			Default("0.95", "HPCC paper, SIGCOMM 2019, section 5.1"),
		params.New("max_stage", params.Integer(&p.MaxStage, 0, 1000),
			"Additive increases before a multiplicative one.").
			Default("0", "alibaba-edu/High-Precision-Congestion-Control, run.py; its authors call the paper's 5 a "+
				"slip"),
		params.New("wai", params.Bytes(&p.WAI, 1, units.GB).Or("auto", 0), "Additive window increase.").
			Default("auto", "HPCC paper, section 3.3: Winit (1 - eta) / N"),
		params.New("flows", params.Integer(&p.Flows, 1, 1_000_000), "Flows per link, for wai: auto.").
			Default("100", "ours: a W_AI near the 25 bytes of the authors' run.py at 100 Gb/s").
			Only(func() (bool, string) {
				return p.WAI == 0, "applies to wai: auto, but wai is " + p.WAI.String() + "; expected one of them"
			}),
		params.New("t", params.Time(&p.BaseRTT, 10*units.Nanosecond, 10*units.Second).Or("auto", 0),
			"Base RTT for utilization; auto: the network's longest.").
			Default("auto", "HPCC paper, section 3.2: the base RTT of the network, the same for all"),
		params.New("min_rate", params.LineRate(&p.MinRate).Or("off", params.Rate{}), "Minimum rate.").
			Default("100Mbps", "alibaba-edu/High-Precision-Congestion-Control, the simulator's default; without "+
				"one a window of W_AI alone cannot recover"),
	}
}

// noRoom reports whether W_AI would be 0, because η leaves nothing for it.
func (p *Params) noRoom() bool { return p.WAI == 0 && p.Eta == 1 }

// Rules implements params.Ruled. It rejects wai: auto with an eta of 1.
func (p *Params) Rules(r params.Rules) {
	if r.Good("wai", "eta") && p.noRoom() {
		r.Refuse("wai", "auto is a share of 1 - eta, which is 0; expected a size such as 80B")
	}
}

// Exceeds implements cc.Fitted: a minimum rate above a line rate is an error.
func (p Params) Exceeds(host string, line units.Bandwidth, _ units.Bytes) (key, why string) {
	if p.MinRate.At(line) > line {
		return "min_rate", fmt.Sprintf("%v is above the line of %s, %v, which nothing exceeds; expected at most that",
			p.MinRate, host, line)
	}
	return "", ""
}

// lagging is the number of base RTTs from which on t is too long: four flows share 93 % of the line
// with t: auto, 90 % if it is twice that, 84 % if it is three times, and one flow has 66 % if it is
// 600 times. Ours.
const lagging = 2

// Misfits implements cc.Conditional: a target that leaves paths empty, and a utilization averaged
// over so long a time that windows change many times before it shows. A t below the base RTT is a
// condition of the window.
func (p Params) Misfits(n cc.Network) []cc.Misfit {
	all := cc.Sparing("eta", p.Eta)
	if p.BaseRTT > lagging*n.NetBaseRTT() {
		all = append(all, cc.Misfit{Key: "t", What: fmt.Sprintf("utilization is averaged over %v, and windows change "+
			"every base RTT of %v, so that they shrink long before they see the effect; expected at most twice "+
			"that, or auto", p.BaseRTT, n.NetBaseRTT().Rounded())})
	}
	return all
}

// Check returns an error that names the first parameter out of range or unused, or nil.
func (p Params) Check() error {
	if err := params.Check("hpcc", &p); err != nil || !p.noRoom() {
		return err
	}
	return errors.New("hpcc: wai auto is a share of 1 - eta, which is 0; expected wai in bytes")
}

// initialWindow returns Winit = B·T (section 3.2) in bytes, at least 1.
func initialWindow(line units.Bandwidth, t units.Time) float64 {
	return max(float64(line)*t.Seconds()/8, 1)
}

// increase returns W_AI in bytes: "Winit·(1-η)/N" (section 3.3). It is above 0, so that a window
// can grow.
func (p Params) increase(winit float64, packet units.Bytes) float64 {
	if p.WAI > 0 {
		return float64(p.WAI)
	}
	wai := max(winit*(1-p.Eta)/float64(p.Flows), math.SmallestNonzeroFloat32)
	if winit < fewPackets*float64(packet) {
		return max(wai, float64(packet)/16)
	}
	return wai
}

// fewPackets is the window in packets below which W_AI is at least a 16th of a packet. Otherwise it
// is a thousandth of a packet there, and four flows have 89 % of an 800 Gb/s line of 10 ns, since
// windows take a thousand round trips to use what another flow left. Ours.
const fewPackets = 4
