package hpcc

import (
	"errors"
	"fmt"
	"math"

	"weft/params"
	"weft/units"
)

// Params are the parameters of HPCC (SIGCOMM 2019, section 3).
type Params struct {
	Eta      float64     // η, target utilization
	MaxStage int         // additive increases in a row before a multiplicative one; 0: each is multiplicative
	WAI      units.Bytes // W_AI, added on each update; 0: Winit·(1-η)/Flows
	Flows    int         // N, flows expected to share a link; 0 when WAI is not
	BaseRTT  units.Time  // T, the same for all flows: 0: the longest base RTT of the network, Link.NetRTT
	MinRate  params.Rate // least rate; 0: none, as in the paper
}

// Keys implements params.Section. The default of flows is ours: at 100 Gb/s and 5 us, 100 flows give a W_AI of 31 bytes; the
// authors' script sets 40 Mb/s, which is 25 bytes. That of min_rate is their simulator's (their script's is 1 Gb/s): without one
// a flow whose window is W_AI alone learns of a free line only every few milliseconds, with a packet.
func (p *Params) Keys() []params.Key {
	return []params.Key{
		params.New("eta", params.Share(&p.Eta, 0.01, 1), "Target utilization.").Default("0.95", "HPCC paper, SIGCOMM 2019, section 5.1"),
		params.New("max_stage", params.Integer(&p.MaxStage, 0, 1000), "Additive increases before a multiplicative one; 0: always multiplicative.").
			Default("0", "alibaba-edu/High-Precision-Congestion-Control, run.py; its authors call the paper's 5 a slip"),
		params.New("wai", params.Bytes(&p.WAI, 1, units.GB).Or("auto", 0), "Additive window increase.").
			Default("auto", "HPCC paper, section 3.3: Winit (1 - eta) / N"),
		params.New("flows", params.Integer(&p.Flows, 1, 1_000_000), "Expected flows per link, for wai: auto.").
			Default("100", "ours: a W_AI near the 25 bytes of the authors' run.py at 100 Gb/s").
			Only(func() (bool, string) {
				return p.WAI == 0, "says what wai auto is, but wai is " + p.WAI.String() + "; expected one of them"
			}),
		params.New("t", params.Time(&p.BaseRTT, 10*units.Nanosecond, 10*units.Second).Or("auto", 0), "Base RTT for utilization; auto: the network's longest.").
			Default("auto", "HPCC paper, section 3.2: the base RTT of the network, the same for all"),
		params.New("min_rate", params.LineRate(&p.MinRate).Or("off", params.Rate{}), "Minimum rate.").
			Default("100Mbps", "alibaba-edu/High-Precision-Congestion-Control, the simulator's default; without one a window of W_AI alone cannot recover"),
	}
}

// noRoom says that an additive increase would be a share of nothing.
func (p *Params) noRoom() bool { return p.WAI == 0 && p.Eta == 1 }

// Rules refuses what cannot be.
func (p *Params) Rules(r params.Rules) {
	if r.Good("wai", "eta") && p.noRoom() {
		r.Refuse("wai", "auto is a share of what eta leaves, which is nothing at eta 1; expected a size such as 80B")
	}
}

// Defaults returns the authors' parameters.
func Defaults() (p Params) {
	params.SetDefaults(&p)
	return p
}

// Exceeds implements cc.Fitted.
func (p Params) Exceeds(host string, line units.Bandwidth, _ units.Bytes) (key, why string) {
	if p.MinRate.At(line) > line {
		return "min_rate", fmt.Sprintf("%v is above the line of %s, %v, which nothing exceeds; expected at most that", p.MinRate, host, line)
	}
	return "", ""
}

// Check returns an error naming the first parameter that is out of range or not used.
func (p Params) Check() error {
	if err := params.Check("hpcc", &p); err != nil || !p.noRoom() {
		return err
	}
	return errors.New("hpcc: with eta 1 no room is left that an additive increase could be a share of: give it in bytes")
}

// initialWindow is Winit = B·T (section 3.2), in bytes.
func initialWindow(line units.Bandwidth, t units.Time) float64 {
	return max(float64(line)*t.Seconds()/8, 1)
}

// increase is W_AI in bytes: "Winit·(1-η)/N" (section 3.3), at least what moves a window of this size at all.
func (p Params) increase(winit float64) float64 {
	if p.WAI > 0 {
		return float64(p.WAI)
	}
	return max(winit*(1-p.Eta)/float64(p.Flows), math.SmallestNonzeroFloat32)
}
