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

// Config configures a Clock. Params.Config makes it; Check says what is allowed.
type Config struct {
	Params

	// Ports lists the neighbours behind each port of the clock: one port for an ordinary clock,
	// several for a boundary clock. Each neighbour is behind one port only.
	Ports [][]clocksync.Node
	// SlaveOnly keeps the clock from becoming a master. DataSet.Class is then set to 255.
	SlaveOnly bool
	// Domain is the PTP domain. Messages of others are refused.
	Domain uint8
	// DataSet describes the clock itself. Grandmaster and Steps are set by New.
	DataSet DataSet

	// AnnounceTimeout is the number of announce intervals without an Announce after which a master
	// is dropped, at least 2.
	AnnounceTimeout int
	// SyncTimeout is the number of intervals without a measurement after which a master is dropped.
	// 0 means never.
	SyncTimeout int

	// Bridge is the switch at the other end of the clock's link, if that is a peer-to-peer
	// transparent clock, and 0 otherwise. Then the clock measures the delay of that link instead of
	// the delays to its neighbours; the rest of the path is in the messages that the switch passes
	// on. Switches are numbered from Setup.Nodes. It needs PeerDelay.
	Bridge clocksync.Node
	// Gear makes PI begin with the gains of a regression; see servo.PIConfig.
	Gear bool

	// StepAlarm is the change of the hardware clock against the monotonic clock that counts as a
	// step of the hardware clock. With 0 they are not compared, and a step shows in the offset
	// only.
	StepAlarm units.Time
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
	slew := max(c.Limits.FirstStep, c.Limits.Step).Seconds() / (slewIntervals * c.Interval.Seconds())
	c.Limits.MaxRate = min(servo.DefaultLimits().MaxRate, max(drift, slew))
	c.Limits.MaxDrift = min(c.Limits.MaxRate, drift)
}

// slewIntervals is the number of sync intervals in which the largest offset that is not stepped
// over is slewed away. It is our choice.
const slewIntervals = 10

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
	}{{"sync", c.Interval}, {"announce", c.AnnounceInterval}} {
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
func (c *Config) newServo() (servo.Servo, error) {
	if c.Servo == LinReg {
		return servo.NewLinReg(servo.LinRegConfig{Interval: c.Interval, Limits: c.Limits})
	}
	return servo.NewPI(servo.PIConfig{Interval: c.Interval, Gains: c.Gains, Gear: c.Gear, Limits: c.Limits})
}
