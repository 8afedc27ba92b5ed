package huygens

import (
	"cmp"
	"fmt"

	"weft/clocksync"
	"weft/params"
	"weft/units"
)

// Params are the parameters of Huygens that a lab sets.
type Params struct {
	Degree       int        // neighbours of each node in the mesh
	Window       units.Time // interval of solving the mesh; 0: see Fit
	Pairs        int        // coded probes per window, edge and direction; 0: see Fit
	Spacing      units.Time // between the two packets of a pair; 0: see Config
	Epsilon      units.Time // a pair whose gap changes by less is pure; 0: see Config
	Share        float64    // share of the pure points that a fit uses
	SlopeTrust   float64    // largest change of a slope from earlier windows, once it is trusted; relative
	Coordinators int        // number of nodes that solve the mesh, from the reference on
	// StepLimit is the change above which a clock steps; a smaller one is slewed over the next
	// window. units.Never: it never steps.
	StepLimit units.Time
	// AsymmetryBound is half of the largest difference between the two directions of a path.
	AsymmetryBound units.Time
}

// maxDegree is the number of edges that a node can report.
const maxDegree = maxParts * perReport

// Windows of a run that leaves them open. Our choices.
const (
	maxAutoWindow = 20 * units.Millisecond // Huygens' 2 s, scaled to a lab; a longer one filters more
	pairsPerMS    = 25
	minPairs      = 32 // a fit needs 20 points per direction, 2 per pair; half may meet queues
	minWindows    = 3  // per run; shorter windows see only queues if the run begins under load
	minRounds     = 10 // base RTTs; the reports of a window travel in a tenth of it
	warmWindows   = 8  // before a workload; joining takes up to two, a line needs four
)

// WarmUp is how long a workload waits for clocks if the lab leaves the window open.
var WarmUp = fmt.Sprintf("%d Huygens windows", warmWindows)

// Spacing and filter that are left open.
const (
	// minSpacing must exceed what the filter can see. It must also be short, so that both
	// packets meet the same queue: at 90 % load in bursts, 1 us leaves a quarter of the pairs that
	// 200 ns leaves.
	minSpacing = 200 * units.Nanosecond
	minEpsilon = 50 * units.Nanosecond
)

// Keys implements params.Section.
func (p *Params) Keys() []params.Key {
	const stamp = units.Millisecond // the largest error of a timestamp
	return []params.Key{
		params.New("degree", params.Integer(&p.Degree, 1, maxDegree), "Neighbours of each host in the probe mesh.").
			Default("10", "Huygens: 10 to 20"),
		params.New("window", params.Time(&p.Window, 10*units.Microsecond, 100*units.Second).Or("auto", 0),
			"Interval of solving the mesh.").
			Default("auto", fmt.Sprintf("ours: 1/%d of the run, at most %v: Huygens' 2 s, scaled to a lab",
				minWindows, maxAutoWindow)),
		params.New("pairs", params.Integer(&p.Pairs, 1, 1<<16).Or("auto", 0),
			"Coded probes per window, neighbour pair and direction.").
			Default("auto", fmt.Sprintf("ours: %d per ms, at least %d", pairsPerMS, minPairs)),
		params.New("spacing", params.Time(&p.Spacing, units.Nanosecond, stamp).Or("auto", 0),
			"Between the two packets of a coded probe.").
			Default("auto", fmt.Sprintf("ours: %v, or three times filter", minSpacing)),
		params.New("filter", params.Time(&p.Epsilon, units.Nanosecond, stamp).Or("auto", 0),
			"Discard probes whose spacing changed this much.").
			Default("auto", fmt.Sprintf("ours: %v, or four times jitter", minEpsilon)),
		params.New("share", params.Share(&p.Share, 0.001, 1), "Share of remaining probes that the fit uses.").
			Default("10%", "ours"),
		params.New("prior", params.Ratio(&p.SlopeTrust, "±", "", 0.001, "50ppb"),
			"Largest frequency change from earlier windows.").Default("50ppb", "ours"),
		params.New("coordinators", params.Integer(&p.Coordinators, 1, 2),
			"Hosts that solve the mesh, from the reference on.").
			Default("2", "ours: the reference and one in its place"),
		params.New("step", params.Time(&p.StepLimit, units.Nanosecond, 1000*units.Second).Or("off", units.Never),
			"Larger changes are stepped, others slewed.").Default("10us", "ours"),
		params.New("asymmetry", params.Deviation(&p.AsymmetryBound, stamp), "As clocks.ptp.asymmetry.").
			Default("off", "ours"),
	}
}

// Fit chooses the window and the number of pairs where they are left open, for a run of the given
// length (0: unknown) in a network with the given base RTT. Short runs have short windows. It
// returns how long clocks with a chosen window take before a workload may rely on them, and 0 if
// the window was set.
func (p *Params) Fit(length, rtt units.Time) (warm units.Time) {
	if p.Window == 0 {
		p.Window = maxAutoWindow
		if length > 0 {
			p.Window = min(maxAutoWindow, max(length/minWindows, minRounds*rtt))
		}
		warm = warmWindows * p.Window
	}
	if p.Pairs == 0 {
		p.Pairs = max(minPairs, int(pairsPerMS*p.Window/units.Millisecond))
	}
	return warm
}

// Config returns the configuration of a node. Parameters that are still open are chosen for its
// hardware, and for a run of unknown length.
func (p Params) Config(s clocksync.Setup) Config {
	p.Fit(0, 0)
	epsilon := max(minEpsilon, 4*s.Jitter, 4*s.Quantum/3) // a gap changes by less than a quantum
	p.Spacing = cmp.Or(p.Spacing, max(minSpacing, 3*epsilon, 3*p.Epsilon))
	p.Epsilon = cmp.Or(p.Epsilon, epsilon)
	skew := s.Skew
	if skew <= 0 {
		skew = 100e-6
	}
	return Config{
		Params: p, FewShare: min(0.02, p.Share), Few: 100, MinPoints: 20,
		MaxSkew: min(1e-3, 2.2*skew), Sigma: units.Nanosecond / 2,
		Memory: 4, StepAlarm: units.Nanosecond,
	}
}

// Rate returns about how many messages per second a node sends, in a lab with that many nodes.
func (c *Config) Rate(nodes int) float64 {
	return 2 * float64(c.Pairs*min(c.Degree, nodes-1)) / c.Window.Seconds()
}

// Probes returns the maximum number of probes per second that a node sends, in a lab with that many
// nodes. It receives as many.
func (c *Config) Probes(nodes int) float64 {
	return float64(2*c.Pairs*min(max(c.Degree, 2), nodes-1)) / c.Window.Seconds()
}
