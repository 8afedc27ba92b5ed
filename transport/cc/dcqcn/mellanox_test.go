package dcqcn_test

import (
	"math"
	"testing"

	"weft/transport/cc/dcqcn"
	"weft/units"
)

// "first CNP: Rt = Rc; start α clock and decrease clock": the first cut comes a decrease interval
// later.
func TestFirstCutWaitsForTheDecreaseClock(t *testing.T) {
	c := newScript(t, set(t, "mellanox"))
	c.wait(3 * us)
	c.cnp()
	c.wantRate(100)
	c.wait(4*us - 1)
	c.wantRate(100)
	c.wait(1) // four α ticks without a notification, the one at this instant included
	alpha := math.Pow(255.0/256, 4)
	c.wantAlpha(alpha)
	c.wantRate(100 * (1 - alpha/2))
}

// "every DecreaseInterval, if a CNP arrived since": notifications in between count once.
func TestOneCutPerDecreaseInterval(t *testing.T) {
	p := set(t, "mellanox")
	p.G = 1.0 / (1 << 40) // α stays 1
	c := newScript(t, p)
	c.cnp()
	c.wait(4 * us)
	c.wantRate(50)
	for range 3 {
		c.wait(us)
		c.cnp()
	}
	c.wantRate(50)
	c.wait(us)
	c.wantRate(25)
	c.wait(40 * us) // no notification, no cut
	c.wantRate(25)
	c.wait(us)
	c.cnp() // the clock kept its phase: the next tick is at 52 us
	c.wait(7 * us / 2)
	c.wantRate(12.5)
}

// "every AlphaInterval: α = (1-g)*α + g*[a CNP arrived in this interval]".
func TestAlphaMovesByWhetherANotificationCame(t *testing.T) {
	p := set(t, "mellanox")
	p.G = 0.5
	c := newScript(t, p)
	c.cnp() // the first one starts the clock and does not count in its first interval
	c.wait(us)
	c.wantAlpha(0.5)
	c.wait(us / 2)
	c.cnp()
	c.cnp()
	c.wantAlpha(0.5)
	c.wait(us / 2)
	c.wantAlpha(0.75)
	c.wait(2 * us)
	c.wantAlpha(0.1875)
}

// α after a millisecond of 1 us intervals: 0.01996 at g 1/256, 0.00749 at 5/1024.
func TestAlphaClockOfOneMicrosecond(t *testing.T) {
	p := set(t, "mellanox")
	c := newScript(t, p)
	c.cnp()
	c.wait(units.Millisecond)
	c.wantAlpha(0.01996)
	p.G = 5.0 / 1024
	c = newScript(t, p)
	c.cnp()
	c.wait(units.Millisecond)
	c.wantAlpha(0.00749)
}

// α is computed when it is used, by squaring; that is what a clock that ticks would have.
func TestAlphaIsThatOfATickingClock(t *testing.T) {
	c := newScript(t, set(t, "mellanox"))
	c.cnp()
	alpha := 1.0
	for range 777 {
		alpha *= 255.0 / 256
	}
	c.wait(777 * us)
	c.wantAlpha(alpha)
	c.wait(1000 * units.Second)
	c.wantAlpha(0)
}

// The stage is compared before it is counted: with F of 1 one step of fast recovery, one additive,
// then hyper.
func TestStagesOfTheNIC(t *testing.T) {
	c := newScript(t, set(t, "nvidia"))
	c.s.At(0, 10*gbps, 20*gbps)
	c.wait(300 * us)
	c.wantTarget(20)
	c.wantRate(15)
	c.wait(300 * us)
	c.wantTarget(20.005)
	c.wantRate(17.5025)
	c.wait(300 * us)
	c.wantTarget(20.055)
	c.wait(300 * us)
	c.wantTarget(20.105) // RHAI again, not a multiple
}

// "if clamp or stage != 0: Rt = Rc".
func TestConsecutiveCutsKeepTheTarget(t *testing.T) {
	p := set(t, "nvidia")
	p.InitialAlpha, p.G = 1, 1.0/(1<<40)
	c := newScript(t, p)
	for range 3 {
		c.cnp()
		c.wait(4 * us)
	}
	c.wantRate(12.5)
	c.wantTarget(100)
	c.wait(300 * us) // halfway back up
	c.wantRate(56.25)
	c.cnp()
	c.wait(4 * us)
	c.wantTarget(56.25)

	p.Clamp = dcqcn.ClampAlways
	c = newScript(t, p)
	for range 3 {
		c.cnp()
		c.wait(4 * us)
	}
	c.wantTarget(25)
}

// RateOnFirstCnp.
func TestRateOnFirstNotification(t *testing.T) {
	p := set(t, "nvidia")
	p.FirstRate = 0.25
	c := newScript(t, p)
	c.cnp()
	c.wantRate(25)
	c.wantTarget(25)
	c.cnp()
	c.wantRate(25)
}

// A cut restarts the RP timer; both at one instant: the cut comes first.
func TestCutBeforeTimerAtTheSameInstant(t *testing.T) {
	p := set(t, "nvidia")
	p.RPTimer, p.InitialAlpha, p.G = 8*us, 1, 1.0/(1<<40)
	c := newScript(t, p)
	c.cnp()
	c.wait(4 * us) // 50; the timer is due at 12 us
	c.wait(7 * us)
	c.cnp()
	c.wait(us)
	c.wantRate(25)
	c.wait(8*us - 1)
	c.wantRate(25)
}

// A driver may come late; every stage still happens at its own instant.
func TestLateAdvance(t *testing.T) {
	a, b := newScript(t, set(t, "nvidia")), newScript(t, set(t, "nvidia"))
	a.cnp()
	b.cnp()
	a.wait(3 * units.Millisecond)
	b.s.Advance(3 * units.Millisecond)
	if a.s.PacingRate() != b.s.PacingRate() {
		t.Errorf("%v when served in time, %v when late", a.s.PacingRate(), b.s.PacingRate())
	}
}
