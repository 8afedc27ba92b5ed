package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/clocksync/clock"
	clocks "weft/clocksync/node"
	"weft/clocksync/noise"
	"weft/clocksync/servo"
	"weft/units"
)

// Clocks is the clocks section: what is wrong with the hosts' clocks, and what keeps them together.
type Clocks struct {
	Sync   string     // perfect, none, ptp, huygens
	Preset string     // of clock.Presets
	Offset units.Time // each clock's first offset is uniform within ±Offset
	Skew   float64    // its frequency error within ±Skew
	Wander float64    // and walks by so much in a second, in 1/sqrt(s)
	Stamp  noise.Stamp
	Noise  noise.Delay // added to measured one-way delays

	Reference   string     // host whose clock the others follow; "": the first
	Control     bool       // messages are served before data
	Transparent bool       // switches correct PTP's event messages
	PeerToPeer  bool       // and by the delay of the link that they came by: of Transparent
	Sample      units.Time // distance of two samples of the error; 0: none
	Limit       units.Time // clocks have converged when they stay within so much of each other
	For         units.Time // the run lasts at least so long
	Warmup      units.Time // how long clocks are kept before the workload begins; 0: as the run sees fit, negative: not at all

	PTP      clocks.PTPParams     // of sync: ptp
	Boundary Boundary             // of sync: ptp
	Huygens  clocks.HuygensParams // of sync: huygens
}

// Imperfect says whether a host has a clock that is not lab time, or measures with noise.
func (c *Clocks) Imperfect() bool {
	return c.Sync != "perfect" || c.Stamp != (noise.Stamp{}) || c.Noise != (noise.Delay{})
}

// Bounds of the clocks section. Delays of as much as two offsets fit into an acknowledgement of STrack.
const (
	maxOffset = units.Second
	maxSkew   = 0.001
	maxWander = 0.001
	maxJitter = units.Millisecond
	maxFor    = 10_000 * units.Second // a hundred and more samples of PTP's longest usual interval, 16 s
)

var (
	syncKinds  = choice{built: []string{"perfect", "none", "ptp", "huygens"}}
	priorities = choice{built: []string{"data", "control"}}
)

func oscillators() choice { return choice{built: clock.Presets()} }

// clocks reads the section. What is wrong with a perfect clock is read too, so that a sweep may compare, and has no
// defaults.
func (d *decoder) clocks(s *section) Clocks {
	defer s.close()
	var c Clocks
	c.Sync, _ = s.field("sync").enum(syncKinds)
	given := func(name, value, source string) field {
		f := s.field(name)
		if c.Sync != "perfect" && c.Sync != "" {
			f = f.or(value, source)
		}
		return f
	}
	if f := given("preset", "server", "ours: what NICs have"); f.n != nil {
		c.Preset, _ = f.enum(oscillators())
	}
	preset, _ := clock.PresetOf(c.Preset)
	from := "preset " + c.Preset
	c.Offset = given("offset", "off", "ours: clocks are right when the lab begins").plusMinus(maxOffset)
	skew := given("skew", "±"+ShowRatio(preset.Skew), from)
	c.Skew = skew.ratio("±", "", maxSkew, "±20ppm")
	if most := servo.DefaultLimits().MaxRate / 2; c.Sync == "ptp" && c.Skew > most {
		skew.problem("two clocks may differ by twice that, and PTP's servos correct up to %s; expected up to ±%s, or sync: huygens",
			ShowRatio(2*most), ShowRatio(most))
	}
	c.Wander = given("wander", ShowRatio(preset.Wander)+"/√s", from).ratio("", "/√s", maxWander, "0.01ppm/√s")
	c.Stamp.Jitter = given("jitter", "5ns", "ours: of stamps by hardware").plusMinus(maxJitter)
	c.Stamp.Quantum = given("granularity", "1ns", "ours: of stamps by hardware").plusMinus(maxJitter)
	if f := s.field("stalls"); f.n != nil {
		c.Stamp.Stalled = unless(f, "off", func(f field) (float64, bool) { return f.share(0, 1) })
	}
	if f := s.field("stall"); f.n != nil {
		c.Stamp.Stall = f.plusMinus(maxJitter)
	} else if c.Stamp.Stalled > 0 {
		c.Stamp.Stall = f.or("200ns", "ours: of the order of what Huygens saw").plusMinus(maxJitter)
	}
	c.Noise = s.field("noise").delayNoise()
	if f := s.field("reference"); f.n != nil {
		c.Reference, _ = f.enumLike("the name of a host")
	}
	if f := given("priority", "data", "ours: no switch is set up for synchronization"); f.n != nil {
		p, _ := f.enum(priorities)
		c.Control = p == "control"
	}
	if f := given("transparent", "false", "ours: most switches are not"); f.n != nil {
		c.Transparent, c.PeerToPeer = f.transparent()
	}
	if f := given("sample", "10us", "ours"); f.n != nil {
		c.Sample = f.interval()
	}
	if f := given("limit", "100ns", "PC4 paper, section III-B: what its clocks cannot tell apart"); f.n != nil {
		c.Limit, _ = quantity(f, units.ParseTime, units.Nanosecond, units.Second)
	}
	if f := given("warmup", "auto", "ours: eight windows of Huygens, if the lab leaves them open"); f.n != nil {
		c.Warmup = f.warmup()
	}
	if p := s.field("ptp"); c.Sync == "ptp" {
		c.PTP, c.Boundary = p.open().ptp(c.PeerToPeer)
	} else if p.written() { // for other runs of the same file
		d.aside++
		p.open().ptp(c.PeerToPeer)
		d.aside--
	}
	if p := s.field("huygens"); c.Sync == "huygens" {
		c.Huygens = p.open().huygens()
	} else if p.written() {
		d.aside++
		p.open().huygens()
		d.aside--
	}
	if f := s.field("for"); f.n != nil {
		c.For, _ = quantity(f, units.ParseTime, 0, maxFor)
	}
	return c
}

// transparent reads true or false, or peer, which is true and more.
func (f field) transparent() (some, peer bool) {
	if f.n.kind == scalar && f.n.text == "peer" {
		f.record("peer")
		return true, true
	}
	return f.flagOr("peer"), false
}

// enumLike reads a word.
func (f field) enumLike(expected string) (string, bool) {
	return read(f, expected, func(text string) (string, error) {
		if !nameText.MatchString(text) {
			return "", fmt.Errorf("%q is not %s", clip(text), expected)
		}
		return text, nil
	}, func(v string) string { return v })
}

// warmup reads a time, auto, which is 0, or off, which is negative.
func (f field) warmup() units.Time {
	if f.n.kind == scalar && f.n.text == "off" {
		f.record("off")
		return -1
	}
	return f.autoTime(maxStart)
}

// plusMinus reads a time, with or without ± before it, or off. Absent is off.
func (f field) plusMinus(most units.Time) units.Time {
	if f.n == nil {
		return 0
	}
	if f.n.kind == scalar && f.n.text == "off" {
		f.record("off")
		return 0
	}
	signed := false
	v, _ := read(f, "off or a time such as 20ns", func(text string) (units.Time, error) {
		text, signed = strings.CutPrefix(text, "±")
		t, err := units.ParseTime(text)
		if err == nil && (t < 0 || t > most) {
			err = fmt.Errorf("%q is out of range; expected off, or up to %v", clip(text), most)
		}
		return t, err
	}, func(t units.Time) string {
		if signed {
			return "±" + t.String()
		}
		return t.String()
	})
	return v
}

// ratio reads a frequency error such as ±20ppm, with what may be before and must be behind it, or off. Absent is off.
func (f field) ratio(before, after string, most float64, example string) float64 {
	if f.n == nil {
		return 0
	}
	if f.n.kind == scalar && f.n.text == "off" {
		f.record("off")
		return 0
	}
	v, _ := read(f, "off or a value such as "+example, func(text string) (float64, error) {
		v, ok := parseRatio(strings.TrimPrefix(text, before), after)
		switch {
		case !ok:
			return 0, fmt.Errorf("%q is not understood; expected off or a value such as %s", clip(text), example)
		case v > most:
			return 0, fmt.Errorf("%q is out of range; expected up to %s", clip(text), ShowRatio(most)+after)
		}
		return v, nil
	}, func(v float64) string { return before + ShowRatio(v) + after })
	return v
}

// parseRatio reads a number and its unit, ppm or ppb, and what is behind them: /√s may be written /sqrt(s).
func parseRatio(text, after string) (float64, bool) {
	if after == "/√s" {
		text = strings.Replace(text, "/sqrt(s)", after, 1)
	}
	text, ok := strings.CutSuffix(text, after)
	exponent := "e-6"
	number, isPPM := strings.CutSuffix(text, "ppm")
	if !isPPM {
		var isPPB bool
		if number, isPPB = strings.CutSuffix(text, "ppb"); !isPPB {
			return 0, false
		}
		exponent = "e-9"
	}
	if _, err := parseDecimal(number); err != nil || !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(number+exponent, 64)
	return v, err == nil
}

// ShowRatio writes a ratio in ppm, or in ppb where that is shorter, so that parseRatio reads the same number back.
func ShowRatio(v float64) string {
	for _, u := range []struct {
		unit, exponent string
		scale          float64
	}{{"ppm", "e-6", 1e6}, {"ppb", "e-9", 1e9}} {
		text := strconv.FormatFloat(v*u.scale, 'g', 12, 64)
		if back, err := strconv.ParseFloat(text+u.exponent, 64); err == nil && back == v && !strings.Contains(text, "e") && (v == 0 || v*u.scale >= 1 || u.unit == "ppb") {
			return text + u.unit
		}
	}
	return strconv.FormatFloat(v*1e9, 'f', -1, 64) + "ppb"
}

// delayNoise reads what is added to delays: uniform ±100ns, normal 100ns (a standard deviation) or exponential 100ns (a mean);
// ±100ns alone is uniform. Absent is off.
func (f field) delayNoise() noise.Delay {
	if f.n == nil {
		return noise.Delay{}
	}
	if f.n.kind == scalar && f.n.text == "off" {
		f.record("off")
		return noise.Delay{}
	}
	v, _ := read(f, "off or noise such as uniform ±100ns", func(text string) (noise.Delay, error) {
		kind, amount, two := strings.Cut(text, " ")
		if !two {
			kind, amount = string(noise.Uniform), text
		}
		t, err := units.ParseTime(strings.TrimPrefix(amount, "±"))
		switch {
		case !slices.Contains([]string{"uniform", "normal", "exponential"}, kind):
			return noise.Delay{}, fmt.Errorf("%q is not understood; expected off, uniform ±100ns, normal 100ns or exponential 100ns", clip(text))
		case err != nil:
			return noise.Delay{}, err
		case t < 0 || t > maxJitter:
			return noise.Delay{}, fmt.Errorf("%q is out of range; expected up to %v", clip(text), maxJitter)
		case t == 0:
			return noise.Delay{}, nil
		case kind == "uniform":
			return noise.Delay{Kind: noise.Uniform, Low: -t, High: t}, nil
		}
		return noise.Delay{Kind: noise.Kind(kind), High: t}, nil
	}, showNoise)
	return v
}

func showNoise(d noise.Delay) string {
	switch d.Kind {
	case "":
		return "off"
	case noise.Uniform:
		return "uniform ±" + d.High.String()
	}
	return string(d.Kind) + " " + d.High.String()
}
