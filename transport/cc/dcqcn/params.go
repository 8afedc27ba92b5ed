package dcqcn

import (
	"fmt"

	"weft/params"
	"weft/transport/cc"
	"weft/units"
)

// The two algorithms, for Params.Mode.
const (
	Paper    = "paper"
	Mellanox = "mellanox"
)

// Rules for Params.Clamp: when a cut first lowers the target rate to the current rate. Otherwise
// consecutive cuts leave the target where it was before the burst, and the first recovery returns
// there.
const (
	// ClampAlways lowers it at every cut (CLAMP_TGT_RATE).
	ClampAlways = "always"
	// ClampAfterIncrease lowers it if timer or bytes have raised the rate since the last cut
	// (CLAMP_TGT_RATE_AFTER_TIME_INC).
	ClampAfterIncrease = "after-increase"
	// ClampAfterBytes lowers it if bytes have raised the rate since the last cut, so never without
	// a byte counter. It is what NICs do without either flag.
	ClampAfterBytes = "after-bytes"
)

// Params are the parameters of DCQCN.
type Params struct {
	Preset string `json:"-"` // name of the preset that provides the values not set

	Mode  string // Paper, Mellanox
	Clamp string // ClampAlways, ClampAfterIncrease, ClampAfterBytes

	// Notification point.
	CNPInterval units.Time // minimum between two notifications of a connection; 0: one per marked packet

	// α, the estimate of congestion.
	G             float64    // gain, above 0, at most 1
	InitialAlpha  float64    // α at the first notification, 0 to 1
	AlphaInterval units.Time // α decays by 1-G once per interval
	AlphaFirst    bool       // Paper: raise α before the cut (the authors' simulator), not after (the text)

	// Decrease.
	DecreaseInterval units.Time  // Mellanox: minimum between two cuts
	FirstRate        float64     // Mellanox: the ratio that the first notification leaves of the rate; 1: off
	MinRate          params.Rate // minimum rate

	// Increase.
	RPTimer     units.Time  // one stage per interval
	ByteCounter units.Bytes // Paper: bytes sent per stage; 0: only time counts
	F           int         // stages of fast recovery, RPG_THRESHOLD
	RAI, RHAI   params.Rate // increase of the target rate per stage, additive and hyper

	// Repath makes the connection change to another one of RepathPorts source ports after that many
	// congested rounds in a row (package path, PLB). 0 means never.
	Repath int `json:",omitempty"`
}

// RepathPorts is the number of source ports of a connection that repaths.
const RepathPorts = 16

// SourcePorts returns the number of source ports of the connection.
func (p Params) SourcePorts() int {
	if p.Repath > 0 {
		return RepathPorts
	}
	return 1
}

// Keys implements params.Section. The default of a key is its value in the preset. The defaults
// here are for keys of the mode that the preset does not use.
func (p *Params) Keys() []params.Key {
	const most, tick = 10 * units.Second, 100 * units.Nanosecond // of the clocks of a NIC
	keys := []params.Key{
		params.New("preset", params.Word(&p.Preset, presetNames()...),
			"Published DCQCN parameter set; written keys override it.").
			Default("nvidia", "ours: what NICs come with"),
		params.New("mode", params.Word(&p.Mode, Paper, Mellanox),
			"Algorithm of the DCQCN paper, or of NVIDIA (Mellanox) NICs."),
		params.New("clamp", params.Word(&p.Clamp, ClampAlways, ClampAfterIncrease, ClampAfterBytes),
			"When a cut lowers the target rate."),
		params.New("cnp_interval", params.Time(&p.CNPInterval, 0, most),
			"Minimum between CNPs of a connection; 0s: one per mark."),
		params.New("g", params.Gain(&p.G), "Gain of alpha."),
		params.New("initial_alpha", params.Gain(&p.InitialAlpha), "Alpha at the first CNP."),
		params.New("alpha_interval", params.Time(&p.AlphaInterval, tick, most), "Alpha decay period."),
		params.New("alpha_first", params.Flag(&p.AlphaFirst), "paper: update alpha before the cut.").
			Default("false", "DCQCN paper, Algorithm 1").Only(p.in(Paper)),
		params.New("decrease_interval", params.Time(&p.DecreaseInterval, tick, most),
			"mellanox: minimum between cuts.").
			Default("4us", "NVIDIA DOCA, DCQCN parameters: RATE_REDUCE_MONITOR_PERIOD").Only(p.in(Mellanox)),
		params.New("first_rate", params.Share(&p.FirstRate, 0.001, 1), "mellanox: rate left by the first CNP; 1: off.").
			Default("1", "NVIDIA DOCA, DCQCN parameters: RATE_TO_SET_ON_FIRST_CNP, off").Only(p.in(Mellanox)),
		params.New("min_rate", params.LineRate(&p.MinRate), "Minimum rate."),
		params.New("rp_timer", params.Time(&p.RPTimer, tick, most), "Period of a recovery stage."),
		params.New("byte_counter", params.Bytes(&p.ByteCounter, 1, 1000*units.GB).Or("off", 0),
			"paper: bytes per recovery stage.").
			Default("off", "ours: the NICs' counter of 32 MB never leads their timer").Only(p.in(Paper)),
		params.New("f", params.Integer(&p.F, 1, 1000), "Fast recovery stages."),
		params.New("rai", params.LineRate(&p.RAI), "Additive increase."),
		params.New("rhai", params.LineRate(&p.RHAI), "Hyper increase."),
	}
	for i := range keys {
		keys[i] = keys[i].Following(func() (text, source string) {
			set := PresetOf(p.Preset)
			return set.values[keys[i].Name], "preset " + set.Name + ": " + set.Source
		})
	}
	return keys
}

// Repaths reports whether the source changes its path by itself.
func (p Params) Repaths() bool { return p.Repath > 0 }

// Repathing returns the key of Repath.
func (p *Params) Repathing() params.Key {
	return params.New("repath", params.Integer(&p.Repath, 1, 1000).Or("off", 0),
		"PLB: change path after this many congested rounds.").
		Default("off", "ours: RoCE has no repathing; PLB (SIGCOMM 2022) leaves a path after 3 rounds")
}

// in restricts a key to one mode.
func (p *Params) in(mode string) func() (bool, string) {
	return func() (bool, string) {
		if p.Mode == "" {
			return false, "" // reported
		}
		return p.Mode == mode, "applies to mode " + mode + ", not to " + p.Mode
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

// lateCuts is how often rates may be lowered before senders see what came of the first time. From
// there on they swing between the least and the line: 81 to 88 % of the line with four flows and
// base RTTs of 4 and 40 ms. Ours.
const lateCuts = 100

// Misfits implements cc.Conditional: marks are answered long before their effect shows, or rates
// that they have lowered stay low for more than a tenth of a run.
func (p Params) Misfits(n cc.Network) []cc.Misfit {
	if late := n.BaseRTT / lateCuts; n.Took > 0 && p.CNPInterval > 0 && p.CNPInterval < late {
		return []cc.Misfit{{Key: "cnp_interval", What: fmt.Sprintf("marks lower rates every %v, and what came of it "+
			"shows after a base RTT of %v, %d times later: rates swing between the least and the line, and queues run "+
			"empty in between; expected shorter links, or a cnp_interval of at least %v", p.CNPInterval,
			n.BaseRTT.Rounded(), n.BaseRTT/p.CNPInterval, late.Rounded())}}
	}
	step := p.RAI.At(n.Line)
	if p.Mode == Mellanox { // hyper increase follows the first additive one
		step = p.RHAI.At(n.Line)
	}
	regains := units.Time(float64(n.Line) / 2 / float64(max(step, 1)) * float64(p.RPTimer))
	if n.Took == 0 || regains <= n.Took/10 || p.CNPInterval >= p.RPTimer {
		return nil
	}
	return []cc.Misfit{{Key: "cnp_interval", What: fmt.Sprintf("marks lower rates every %v, and they rise by %v every "+
		"%v: DCQCN takes %v to regain half of %v, more than a tenth of the run; expected longer flows, or a "+
		"cnp_interval of %v", p.CNPInterval, step, p.RPTimer, regains.Rounded(), n.Line, p.RPTimer)}}
}

// Check returns an error that names the first parameter out of range or unused by the mode, or nil.
func (p Params) Check() error { return params.Check("dcqcn", &section{&p}) }

// section has the parameters that Check checks: all but Preset, which only says where values came
// from.
type section struct{ p *Params }

func (s section) Keys() []params.Key { return append(s.p.Keys()[1:], s.p.Repathing()) }

// on returns p with all rates resolved for a line rate.
func (p Params) on(line units.Bandwidth) Params {
	p.MinRate, p.RAI, p.RHAI = p.MinRate.On(line), p.RAI.On(line), p.RHAI.On(line)
	return p
}

// maxStage is where stages stop counting, so that they do not overflow on a long connection.
const maxStage = 1 << 20
