package ptp

import (
	"errors"
	"fmt"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// ServoKind chooses the servo of a Clock.
type ServoKind uint8

// Servos.
const (
	PI ServoKind = iota
	LinReg
)

// Config says what a clock is and how it measures. Default fills it in.
type Config struct {
	// Ports are the neighbours behind each port of the clock: one port for an ordinary clock, more for a boundary
	// clock. A neighbour is behind one port only.
	Ports     [][]clocksync.Node
	SlaveOnly bool // never becomes a master; then Class is not used
	Domain    uint8
	DataSet   DataSet // its own; Grandmaster and Steps are not used

	SyncInterval     units.Time // of Sync, as a master
	DelayInterval    units.Time // mean, of Delay_Req or Pdelay_Req
	AnnounceInterval units.Time
	AnnounceTimeout  int // announce intervals without one until a master is given up; at least 2
	SyncTimeout      int // sync intervals without a measurement until a master is given up; 0: never

	PeerDelay bool // the peer delay mechanism, instead of end to end
	// Bridge is the switch at the other end of the clock's link, a peer-to-peer transparent clock: the delay of that link is
	// measured instead of those to the neighbours, the rest is in the messages that it passes on. Switches are numbered behind
	// Setup.Nodes. 0: none. With PeerDelay only.
	Bridge     clocksync.Node
	Filter     servo.FilterKind
	FilterSize int
	RawDelay   bool // the last delay measured is used, instead of the filtered one
	Weighted   bool // samples are weighted by filtered delay / delay
	Servo      ServoKind
	Gains      servo.Gains // of PI, in steady state; none: servo.Tuned for the jitter that is expected and Wander
	Wander     float64     // random walk of the frequency, relative per square root of a second
	Gear       bool        // PI begins with the gains of a regression: see servo.PIConfig
	Limits     servo.Limits

	// Asymmetry is what the path from the master is known to take longer than the mean of both ways
	// (delayAsymmetry). AsymmetryBound is added to the bound that is published: half of the most by which the two ways
	// may differ without anybody knowing.
	Asymmetry      units.Time
	AsymmetryBound units.Time

	// StepAlarm is the change of the hardware clock against the monotonic one that is taken for a step of it. 0: the
	// two are not compared, and a step shows in the offset only.
	StepAlarm units.Time
}

// DefaultBackups is how many nodes after the reference may take its place.
const DefaultBackups = 1

// Default returns the configuration of an ordinary clock in a lab: the reference is the best master, the nodes that
// follow it (backups of them, cyclically) may take its place in that order, and all others are slaves of whichever is
// the best. Intervals are 1 ms, of lab time; gains follow from the interval and the jitter that is expected.
func Default(s clocksync.Setup, backups int) Config {
	n := clocksync.Node(s.Nodes)
	backups = max(0, min(backups, s.Nodes-1))
	rank := int((s.Self - s.Reference + n) % max(n, 1))
	var peers []clocksync.Node
	for k := range n {
		peer := (s.Reference + k) % n
		if peer != s.Self && (rank <= backups || int(k) <= backups) {
			peers = append(peers, peer)
		}
	}
	cfg := Config{
		Ports:     [][]clocksync.Node{peers},
		SlaveOnly: rank > backups,
		DataSet: DataSet{Priority1: DefaultPriority, Class: DefaultClass, Accuracy: accuracyUnknown, Variance: varianceUnknown,
			Priority2: uint8(min(rank, 255))},
		SyncInterval: units.Millisecond, DelayInterval: units.Millisecond, AnnounceInterval: 2 * units.Millisecond,
		AnnounceTimeout: 3, SyncTimeout: 8,
		Filter: servo.Median, FilterSize: 10,
		Gear:      true,
		Limits:    servo.DefaultLimits(),
		Wander:    1e-8, // 0.01 ppm per square root of a second: a usual server
		StepAlarm: units.Nanosecond,
	}
	cfg.DataSet.Priority1 += uint8(min(rank, 255-DefaultPriority))
	cfg.LimitRate(s.Skew)
	return cfg
}

// LimitRate bounds what is taken for the frequency by what oscillators that are wrong by up to skew need, and the rate by
// what slews an offset that is not stepped over away within slewIntervals: how good an oscillator is says nothing of how
// far off a clock begins.
func (c *Config) LimitRate(skew float64) {
	if skew <= 0 {
		return
	}
	drift := max(10*skew, 1e-5)
	slew := max(c.Limits.FirstStep, c.Limits.Step).Seconds() / (slewIntervals * c.SyncInterval.Seconds())
	c.Limits.MaxRate = min(servo.DefaultLimits().MaxRate, max(drift, slew))
	c.Limits.MaxDrift = min(c.Limits.MaxRate, drift)
}

// slewIntervals is how long an offset that is not stepped over may take to be slewed away. Ours.
const slewIntervals = 10

// leastGain keeps the loop from taking seconds to forget a disturbance: ours, a time constant of 33 samples.
var leastGain = servo.Gains{P: 0.03, I: 0.0005}

// Check returns everything that is wrong with the configuration of a clock, joined.
func (c *Config) Check(s clocksync.Setup) error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, v := range []struct {
		name string
		t    units.Time
	}{{"sync", c.SyncInterval}, {"delay", c.DelayInterval}, {"announce", c.AnnounceInterval}} {
		refuse(v.t <= 0 || v.t > 1000*units.Second, "ptp: %s interval %v is not between 0 and 1000 s", v.name, v.t)
	}
	refuse(s.Nodes < 1 || s.Self < 0 || int(s.Self) >= s.Nodes,
		"ptp: node %d of %d nodes", s.Self, s.Nodes)
	refuse(c.AnnounceTimeout < 2,
		"ptp: announce timeout of %d intervals; the least is 2", c.AnnounceTimeout)
	refuse(c.SyncTimeout < 0,
		"ptp: sync timeout of %d intervals", c.SyncTimeout)
	refuse(c.AsymmetryBound < 0 || c.StepAlarm < 0,
		"ptp: bound of asymmetry %v or step alarm %v below 0", c.AsymmetryBound, c.StepAlarm)
	refuse(c.Limits.MaxRate > clocksync.MaxRate,
		"ptp: largest rate %g is beyond %g", c.Limits.MaxRate, clocksync.MaxRate)
	refuse(c.Bridge != 0 && (!c.PeerDelay || int(c.Bridge) < s.Nodes),
		"ptp: node %d of %d is no switch whose link is measured, or peer delay is off", c.Bridge, s.Nodes)
	refuse(len(c.Ports) > 1<<15,
		"ptp: %d ports", len(c.Ports))
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	seen := make([]bool, s.Nodes)
	for i, peers := range c.Ports {
		for _, p := range peers {
			if p < 0 || int(p) >= s.Nodes || p == s.Self || seen[p] {
				return fmt.Errorf("ptp: node %d behind port %d: no such node, this one, or named twice", p, i+1)
			}
			seen[p] = true
		}
	}
	return nil
}

// newServo makes the servo that the configuration asks for.
func (c *Config) newServo(s clocksync.Setup) (servo.Servo, error) {
	if c.Servo == LinReg {
		return servo.NewLinReg(servo.LinRegConfig{Interval: c.SyncInterval, Limits: c.Limits})
	}
	gains := c.Gains
	if gains == (servo.Gains{}) {
		gains = servo.Tuned(s.Jitter, c.Wander, c.SyncInterval)
		if gains.P < leastGain.P {
			gains = leastGain
		}
	}
	return servo.NewPI(servo.PIConfig{Interval: c.SyncInterval, Gains: gains, Gear: c.Gear, Limits: c.Limits})
}
