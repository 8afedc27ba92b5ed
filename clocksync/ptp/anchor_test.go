package ptp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/clocksync/servo"
	"weft/internal/golden"
	"weft/units"
)

// pairWorld is a master and a slave with a path between.
type pairWorld struct {
	interval units.Time
	base     units.Time
	jitter   units.Time
	wander   float64
	offset   units.Time
	skew     float64
	stamp    units.Time
	path     func(r *rand.Rand) testnet.Path // nil means Jittery
	change   func(*Config)
	seed     uint64
}

// world returns a simulated master and slave.
func (p pairWorld) world(t testing.TB) *testnet.World {
	t.Helper()
	return testnet.New(p.config(t, 2))
}

func (p pairWorld) config(t testing.TB, nodes int) testnet.Config {
	t.Helper()
	path := p.path
	if path == nil {
		path = func(r *rand.Rand) testnet.Path { return &testnet.Jittery{Base: p.base, Jitter: p.jitter, Random: r} }
	}
	return testnet.Config{
		Nodes: nodes, Seed: p.seed + 1, Grid: p.interval / 10, Path: path,
		Oscillator: func(n clocksync.Node) testnet.Oscillator {
			if n == 0 {
				return testnet.Oscillator{Jitter: p.stamp}
			}
			return testnet.Oscillator{Offset: p.offset, Skew: p.skew, Wander: p.wander, Jitter: p.stamp}
		},
		Start: func(n clocksync.Node) clocksync.Protocol {
			s := clocksync.Setup{Self: n, Nodes: nodes, Seed: p.seed + 7}
			cfg := Default(s, 0)
			cfg.Interval, cfg.AnnounceInterval = p.interval, 2*p.interval
			if p.change != nil {
				p.change(&cfg)
			}
			c, err := New(s, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	}
}

// measureErrors runs a world, compares node 1 with node 0 once per interval, and returns the root
// mean square and the largest error.
func measureErrors(w *testnet.World, interval units.Time, from, to int) (rms, worst units.Time) {
	var sum float64
	w.Every(units.Time(from)*interval, interval, func() {
		e := w.Time(1) - w.Time(0)
		sum += float64(e) * float64(e)
		worst = max(worst, e, -e)
	})
	w.Run(units.Time(to)*interval - 1)
	return units.Time(math.Sqrt(sum / float64(to-from))), worst
}

// The limits of linuxptp-testsuite 17: wander 1e-9, base delay 100 ns, exponential jitter. At an
// interval T of 1 ms the wander is 10^4.5 times as large, so that jitter / (wander T^1.5) is the
// same, and with it everything else.
func TestAnchorTable(t *testing.T) {
	samples := 4000
	if testing.Short() {
		samples = 1500
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%8s  %6s  %-6s  %8s  %9s  %8s  %9s\n",
		"interval", "jitter", "servo", "RMS ns", "limit ns", "max ns", "limit ns")
	for _, interval := range []units.Time{units.Second, units.Millisecond} {
		wander := 1e-9 * math.Pow(interval.Seconds(), -1.5)
		for _, row := range []struct {
			jitter                 units.Time
			pi, piMax, reg, regMax float64 // ns
			wait                   int     // samples until settled
		}{
			{10 * units.Nanosecond, 15, 120, 19, 95, 100},
			{100 * units.Nanosecond, 84, 675, 110, 510, 200},
			{units.Microsecond, 474, 3800, 700, 4200, 600},
			{10 * units.Microsecond, 2670, 21000, 6100, 40000, 1500},
		} {
			if row.wait*2 > samples {
				continue
			}
			for _, kind := range []ServoKind{PI, LinReg} {
				rms, worst := row.pi, row.piMax
				if kind == LinReg {
					rms, worst = row.reg, row.regMax
				}
				p := pairWorld{interval: interval, base: 100 * units.Nanosecond, jitter: row.jitter, wander: wander, skew: 100e-6,
					offset: 100 * units.Millisecond, change: func(c *Config) {
						c.Servo = kind
						c.Gains = tuned(row.jitter, wander, interval)
						c.Gear = false
						c.Limits = servo.Limits{FirstStep: 20 * units.Microsecond, MaxRate: 900e-6}
						c.SyncTimeout = 0
					}}
				gotRMS, gotMax := measureErrors(p.world(t), interval, row.wait, samples)
				name := [...]string{"pi", "linreg"}[kind]
				fmt.Fprintf(&text, "%8v  %6v  %-6s  %8.1f  %9.0f  %8.1f  %9.0f\n", interval, row.jitter, name,
					gotRMS.Nanoseconds(), rms, gotMax.Nanoseconds(), worst)
				if gotRMS.Nanoseconds() > rms || gotMax.Nanoseconds() > worst {
					t.Errorf("T=%v jitter %v %s: rms %v, max %v; limits %v and %v ns", interval, row.jitter, name, gotRMS, gotMax, rms, worst)
				}
			}
		}
	}
	t.Log("\n" + text.String())
	if !testing.Short() {
		golden.Table(t, "anchor", "PTP servos: RMS and largest error of the slave's clock, and the limit of each.", text.String())
	}
}

// TestConvergence shows how a slave that starts 300 us and 20 ppm off converges.
func TestConvergence(t *testing.T) {
	var text strings.Builder
	instants := []units.Time{5, 10, 12, 14, 16, 20, 30, 50, 100, 200, 400}
	fmt.Fprintf(&text, "%-10s  %-6s", "delay", "servo")
	for _, at := range instants {
		fmt.Fprintf(&text, "  %6v", at*ms)
	}
	fmt.Fprintln(&text, "  state after the last")
	for _, peer := range []bool{false, true} {
		for _, kind := range []ServoKind{PI, LinReg} {
			p := pairOver(nil)
			p.change = func(c *Config) { c.Servo, c.PeerDelay = kind, peer }
			w := p.world(t)
			delay, name := "end to end", [...]string{"pi", "linreg"}[kind]
			if peer {
				delay = "peer"
			}
			fmt.Fprintf(&text, "%-10s  %-6s", delay, name)
			for _, at := range instants {
				w.Run(at * ms)
				fmt.Fprintf(&text, "  %6d", (w.Time(1)-w.Time(0))/units.Nanosecond)
			}
			fmt.Fprintf(&text, "  %v\n", w.Protocol(1).Correction().State)
		}
	}
	golden.Table(t, "convergence", "PTP: error in ns of a slave that starts 300 us and 20 ppm off, by time.", text.String())
}

// tuned returns gains near the optimum for a jitter of the measured offsets and a random walk of
// the frequency (wander, per square root of a second), by the rule of linuxptp-testsuite 17 made
// free of scale: with J = jitter / (wander T^1.5), P = min(0.7, 1.5/sqrt J) and I = min(0.3,
// 1.2/J).
func tuned(jitter units.Time, wander float64, interval units.Time) servo.Gains {
	g := servo.DefaultGains()
	j := jitter.Seconds() / (wander * math.Pow(interval.Seconds(), 1.5))
	return servo.Gains{P: min(g.P, 1.5/math.Sqrt(j)), I: min(g.I, 1.2/j)}
}

// The table of linuxptp-testsuite 17 (wander 1e-9, T = 1 s), and the same at 1 ms with wander times
// 10^4.5.
func TestTunedGainsFollowTheTable(t *testing.T) {
	for _, c := range []struct {
		jitter units.Time
		want   servo.Gains
	}{
		{10 * units.Nanosecond, servo.Gains{P: .474, I: .12}}, {100 * units.Nanosecond, servo.Gains{P: .15, I: .012}},
		{units.Microsecond, servo.Gains{P: .047, I: .0012}}, {10 * units.Microsecond, servo.Gains{P: .015, I: .00012}},
	} {
		slow := tuned(c.jitter, 1e-9, units.Second)
		fast := tuned(c.jitter, 1e-9*math.Pow(10, 4.5), units.Millisecond)
		for _, g := range []servo.Gains{slow, fast} {
			if math.Abs(g.P/c.want.P-1) > 0.02 || math.Abs(g.I/c.want.I-1) > 0.02 {
				t.Errorf("jitter %v: %+v, want %+v", c.jitter, g, c.want)
			}
		}
	}
}
