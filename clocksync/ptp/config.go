package ptp

import (
	"errors"
	"fmt"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// ServoKind selects the servo of a Clock.
type ServoKind uint8

// Servos of package servo.
const (
	PI     ServoKind = iota // proportional-integral
	LinReg                  // linear regression
)

// Config configures a Clock. Default fills it in; Check says what is allowed.
type Config struct {
	// Ports lists the neighbours behind each port of the clock: one port for an ordinary clock,
	// several for a boundary clock. Each neighbour is behind one port only.
	Ports [][]clocksync.Node
	// SlaveOnly keeps the clock from becoming a master. DataSet.Class is then set to 255.
	SlaveOnly bool
	// Domain is the PTP domain. Messages of others are refused.
	Domain uint8
	// DataSet describes the clock itself. Grandmaster and Steps are set by New.
	DataSet DataSet

	// SyncInterval is the interval of Sync as a master, and the expected one as a slave.
	SyncInterval units.Time
	// DelayInterval is the mean interval of Delay_Req or Pdelay_Req.
	DelayInterval units.Time
	// AnnounceInterval is the interval of Announce as a master.
	AnnounceInterval units.Time
	// AnnounceTimeout is the number of announce intervals without an Announce after which a master
	// is dropped, at least 2.
	AnnounceTimeout int
	// SyncTimeout is the number of intervals without a measurement after which a master is dropped.
	// 0 means never.
	SyncTimeout int

	// PeerDelay selects the peer delay mechanism instead of the end-to-end one.
	PeerDelay bool
	// Bridge is the switch at the other end of the clock's link, if that is a peer-to-peer
	// transparent clock, and 0 otherwise. Then the clock measures the delay of that link instead of
	// the delays to its neighbours; the rest of the path is in the messages that the switch passes
	// on. Switches are numbered from Setup.Nodes. It needs PeerDelay.
	Bridge clocksync.Node
	// Filter and FilterSize select the filter of measured delays.
	Filter     servo.FilterKind
	FilterSize int
	// RawDelay uses the last measured delay instead of the filtered one.
	RawDelay bool
	// Weighted weights each sample by the ratio of the filtered delay to the last one.
	Weighted bool
	// Servo selects the servo.
	Servo ServoKind
	// Gains are those of PI in steady state. The zero value takes servo.Tuned for Setup.Jitter and
	// Wander.
	Gains servo.Gains
	// Wander is the random walk of the frequency: relative, per square root of a second.
	Wander float64
	// Gear makes PI begin with the gains of a regression; see servo.PIConfig.
	Gear bool
	// Limits bounds steps and rates of the servo.
	Limits servo.Limits

	// Asymmetry is the known difference of the delay from the master and the mean delay of both
	// directions (delayAsymmetry).
	Asymmetry units.Time
	// AsymmetryBound is added to the published bound: half of the largest unknown difference of the
	// two directions.
	AsymmetryBound units.Time

	// StepAlarm is the change of the hardware clock against the monotonic clock that counts as a
	// step of the hardware clock. With 0 they are not compared, and a step shows in the offset
	// only.
	StepAlarm units.Time
}

// DefaultBackups is the default number of backup masters.
const DefaultBackups = 1

// Default returns the configuration of an ordinary clock in a lab. The reference is the best
// master. The next backups nodes, cyclically, may replace it in that order. All others are slaves
// of the best of them. Sync and delay intervals are 1 ms of lab time, and the gains follow from the
// interval and the expected jitter.
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
		DataSet: DataSet{
			Priority1: DefaultPriority, Class: DefaultClass, Accuracy: accuracyUnknown, Variance: varianceUnknown,
			Priority2: uint8(min(rank, 255)),
		},
		SyncInterval: units.Millisecond, DelayInterval: units.Millisecond, AnnounceInterval: 2 * units.Millisecond,
		AnnounceTimeout: 3, SyncTimeout: 8,
		Filter: servo.Median, FilterSize: 10,
		Gear:      true,
		Limits:    servo.DefaultLimits(),
		Wander:    1e-8, // 0.01 ppm per square root of a second, a typical server
		StepAlarm: units.Nanosecond,
	}
	cfg.DataSet.Priority1 += uint8(min(rank, 255-DefaultPriority))
	cfg.LimitRate(s.Skew)
	return cfg
}

// LimitRate sets the limits of the servo for oscillators whose relative frequency error is at most
// skew. The frequency estimate is limited to ten times that, at least 10 ppm. The rate must also be
// able to slew the largest offset that is not stepped over within slewIntervals, because a good
// oscillator may still start with a large offset. A skew of 0 leaves the limits as they are.
func (c *Config) LimitRate(skew float64) {
	if skew <= 0 {
		return
	}
	drift := max(10*skew, 1e-5)
	slew := max(c.Limits.FirstStep, c.Limits.Step).Seconds() / (slewIntervals * c.SyncInterval.Seconds())
	c.Limits.MaxRate = min(servo.DefaultLimits().MaxRate, max(drift, slew))
	c.Limits.MaxDrift = min(c.Limits.MaxRate, drift)
}

// slewIntervals is the number of sync intervals in which the largest offset that is not stepped
// over is slewed away. It is our choice.
const slewIntervals = 10

// minGains keeps the loop from taking seconds to forget a disturbance. It is our choice: a time
// constant of 33 samples.
var minGains = servo.Gains{P: 0.03, I: 0.0005}

// Check returns all errors of the configuration of a clock, joined, or nil.
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

// newServo returns the servo that the configuration selects.
func (c *Config) newServo(s clocksync.Setup) (servo.Servo, error) {
	if c.Servo == LinReg {
		return servo.NewLinReg(servo.LinRegConfig{Interval: c.SyncInterval, Limits: c.Limits})
	}
	gains := c.Gains
	if gains == (servo.Gains{}) {
		gains = servo.Tuned(s.Jitter, c.Wander, c.SyncInterval)
		if gains.P < minGains.P {
			gains = minGains
		}
	}
	return servo.NewPI(servo.PIConfig{Interval: c.SyncInterval, Gains: gains, Gear: c.Gear, Limits: c.Limits})
}
