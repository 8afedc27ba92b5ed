package dcqcn

import (
	"fmt"

	"weft/units"
)

// The two machines.
const (
	Paper    = "paper"
	Mellanox = "mellanox"
)

// When a cut first brings the target rate down to the current rate. Where it does not, consecutive cuts leave the
// target where it was before the burst, and the first recovery goes back there.
const (
	ClampAlways        = "always"         // CLAMP_TGT_RATE
	ClampAfterIncrease = "after-increase" // CLAMP_TGT_RATE_AFTER_TIME_INC: if timer or bytes raised the rate since the last cut
	ClampAfterBytes    = "after-bytes"    // neither: if bytes raised the rate since the last cut; never without a byte counter
)

// Params are the parameters of DCQCN. Defaults returns full ones; Check says what is wrong with one.
type Params struct {
	Mode  string // Paper, Mellanox
	Clamp string // ClampAlways, ClampAfterIncrease, ClampAfterBytes

	// Notification point.
	CNPInterval units.Time // least time between two notifications of a connection; 0: every marked packet gets one

	// α, the estimate of congestion.
	G             float64    // gain, above 0, at most 1
	InitialAlpha  float64    // on the first notification, between 0 and 1
	AlphaInterval units.Time // α decays by 1-G once per interval
	AlphaFirst    bool       // Paper: raise α before it cuts the rate (the authors' simulator), not after (the text)

	// Decrease.
	DecreaseInterval units.Time // Mellanox: at most one cut in it
	FirstRate        float64    // Mellanox: the rate falls to this share of itself on the first notification; 1 is off
	MinRate          units.Bandwidth

	// Increase.
	RPTimer     units.Time      // one stage per interval
	ByteCounter units.Bytes     // Paper: one stage each time so much was sent; 0: time alone counts
	F           int             // stages of fast recovery, RPG_THRESHOLD
	RAI, RHAI   units.Bandwidth // added to the target rate in additive and in hyper increase

	// Repath has the connection take another source port, one of RepathPorts, after so many congested rounds (package path,
	// PLB); 0: never.
	Repath int `json:",omitempty"`
}

// RepathPorts is how many source ports a connection that repaths goes through.
const RepathPorts = 16

// SourcePorts is how many source ports the connection uses.
func (p Params) SourcePorts() int {
	if p.Repath > 0 {
		return RepathPorts
	}
	return 1
}

// Defaults returns the NICs' own: DCE_TCP_G 1019 of 1024, INITIAL_ALPHA_VALUE 1023 of 1024, DCE_TCP_RTT,
// RATE_REDUCE_MONITOR_PERIOD, RPG_TIME_RESET, RPG_THRESHOLD, RPG_AI_RATE, RPG_HAI_RATE, RPG_MIN_RATE, RATE_TO_SET_ON_FIRST_CNP 0
// (off), CLAMP_TGT_RATE 0, CLAMP_TGT_RATE_AFTER_TIME_INC 1, MIN_TIME_BETWEEN_CNPS 4 (NVIDIA DOCA, DCQCN parameters). Other sets that
// somebody uses are the presets of a lab (orchestrator/lab).
func Defaults() Params {
	return Params{
		Mode: Mellanox, Clamp: ClampAfterIncrease,
		CNPInterval: 4 * units.Microsecond,
		G:           5.0 / 1024, InitialAlpha: 1023.0 / 1024, AlphaInterval: units.Microsecond,
		DecreaseInterval: 4 * units.Microsecond, FirstRate: 1, MinRate: units.Mbps,
		RPTimer: 300 * units.Microsecond, F: 1, RAI: 5 * units.Mbps, RHAI: 50 * units.Mbps,
	}
}

// Check returns an error naming the first parameter that is out of range or that the mode does not use.
func (p Params) Check() error {
	switch {
	case p.Repath < 0:
		return fmt.Errorf("dcqcn: repathing after %d rounds", p.Repath)
	case p.CNPInterval < 0:
		return fmt.Errorf("dcqcn: cnp interval %v is negative", p.CNPInterval)
	case !(p.G > 0 && p.G <= 1):
		return fmt.Errorf("dcqcn: g %v is not above 0 and at most 1", p.G)
	case !(p.InitialAlpha >= 0 && p.InitialAlpha <= 1):
		return fmt.Errorf("dcqcn: initial alpha %v is not between 0 and 1", p.InitialAlpha)
	case p.AlphaInterval <= 0:
		return fmt.Errorf("dcqcn: alpha interval %v is not positive", p.AlphaInterval)
	case p.RPTimer <= 0:
		return fmt.Errorf("dcqcn: rp timer %v is not positive", p.RPTimer)
	case p.F < 1 || p.F > maxStage:
		return fmt.Errorf("dcqcn: threshold f of %d stages is not between 1 and %d", p.F, maxStage)
	case p.RAI < 1 || p.RHAI < 1:
		return fmt.Errorf("dcqcn: increments rai %v and rhai %v must be positive", p.RAI, p.RHAI)
	case p.MinRate < 1:
		return fmt.Errorf("dcqcn: least rate %v is not positive", p.MinRate)
	case p.Clamp != ClampAlways && p.Clamp != ClampAfterIncrease && p.Clamp != ClampAfterBytes:
		return fmt.Errorf("dcqcn: clamp %q is not %s, %s or %s", p.Clamp, ClampAlways, ClampAfterIncrease, ClampAfterBytes)
	}
	switch p.Mode {
	case Paper:
		return p.checkPaper()
	case Mellanox:
		return p.checkMellanox()
	default:
		return fmt.Errorf("dcqcn: mode %q is not %s or %s", p.Mode, Paper, Mellanox)
	}
}

func (p Params) checkPaper() error {
	switch {
	case p.ByteCounter < 0:
		return fmt.Errorf("dcqcn: byte counter %d is negative", p.ByteCounter)
	case p.DecreaseInterval != 0:
		return fmt.Errorf("dcqcn: the %s mode cuts on every notification; it has no decrease interval", Paper)
	case p.FirstRate != 0:
		return fmt.Errorf("dcqcn: the %s mode has no rate on the first notification", Paper)
	}
	return nil
}

func (p Params) checkMellanox() error {
	switch {
	case p.DecreaseInterval <= 0:
		return fmt.Errorf("dcqcn: decrease interval %v is not positive", p.DecreaseInterval)
	case !(p.FirstRate > 0 && p.FirstRate <= 1):
		return fmt.Errorf("dcqcn: first rate %v is not above 0 and at most 1", p.FirstRate)
	case p.ByteCounter != 0:
		return fmt.Errorf("dcqcn: the %s mode has no byte counter", Mellanox)
	case p.AlphaFirst:
		return fmt.Errorf("dcqcn: the %s mode moves alpha by a clock of its own, neither before nor after a cut", Mellanox)
	}
	return nil
}

// maxStage is where stages stop counting, so that they do not overflow on a connection that never ends.
const maxStage = 1 << 20
