package hpcc

import (
	"fmt"
	"math"

	"weft/units"
)

// Params are the parameters of HPCC. Defaults returns a full set; Check says what is wrong with one.
type Params struct {
	Eta      float64         // η, target utilization, above 0, at most 1
	MaxStage int             // additive increases in a row before a multiplicative one; 0: each is multiplicative
	WAI      units.Bytes     // W_AI, added on each update; 0: Winit·(1-η)/Flows
	Flows    int             // N, flows expected to share a link; used when WAI is 0
	BaseRTT  units.Time      // T, the same for all flows: 0: the longest base RTT of the network, Link.NetRTT
	MinRate  units.Bandwidth // least rate; 0: none, as in the paper
}

// Defaults returns the authors' parameters. Flows is ours: at 100 Gb/s and 5 us, 100 flows give a W_AI of 31 bytes; the
// authors' script sets 40 Mb/s, which is 25 bytes. MinRate is their simulator's (their script's is 1 Gb/s): without one
// a flow whose window is W_AI alone learns of a free line only every few milliseconds, with a packet.
func Defaults() Params {
	return Params{Eta: 0.95, MaxStage: 0, Flows: 100, MinRate: 100 * units.Mbps}
}

// Check returns an error naming the first parameter that is out of range or not used.
func (p Params) Check() error {
	switch {
	case !(p.Eta > 0 && p.Eta <= 1):
		return fmt.Errorf("hpcc: eta %v is not above 0 and at most 1", p.Eta)
	case p.MaxStage < 0:
		return fmt.Errorf("hpcc: max stage %d is negative", p.MaxStage)
	case p.WAI < 0:
		return fmt.Errorf("hpcc: additive increase of %d bytes is negative", p.WAI)
	case p.WAI == 0 && p.Flows < 1:
		return fmt.Errorf("hpcc: additive increase for %d flows", p.Flows)
	case p.WAI == 0 && p.Eta == 1:
		return fmt.Errorf("hpcc: with eta 1 no room is left that an additive increase could be a share of: give it in bytes")
	case p.WAI > 0 && p.Flows > 0:
		return fmt.Errorf("hpcc: additive increase both of %v and for %d flows", p.WAI, p.Flows)
	case p.BaseRTT < 0:
		return fmt.Errorf("hpcc: base rtt %v is negative", p.BaseRTT)
	case p.MinRate < 0:
		return fmt.Errorf("hpcc: least rate %v is negative", p.MinRate)
	}
	return nil
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
