package swift

import (
	"fmt"
	"strconv"

	"weft/params"
	"weft/units"
)

// Params are the parameters of Swift (SIGCOMM 2020, section 3).
type Params struct {
	AI     float64 // additive increase in packets per RTT
	Beta   float64 // β, the strength of the multiplicative decrease
	MaxMDF float64 // the largest decrease in one step, as a ratio of the window

	BaseTarget units.Time // target delay of a path without hops; 0: Bolt's, or what the path needs
	PerHop     units.Time // ħ, added per link of the path
	FSRange    units.Time // the largest addition of flow scaling; 0: no flow scaling
	FSMin      float64    // window in packets at which flow scaling adds FSRange
	FSMax      float64    // window in packets from which flow scaling adds nothing; above FSMin

	MinWindow     units.Bytes
	MaxWindow     units.Bytes // 0: the bandwidth-delay product of the path, in whole packets
	InitialWindow units.Bytes // 0: the same
	RetxReset     int         // timeouts in a row after which the window drops to MinWindow

	BoltCompat bool // behave as Bolt's simulator does; see bolt and target.scaling
}

// Keys implements params.Section. The defaults are those of Bolt's simulations of 100 Gb/s links.
func (p *Params) Keys() []params.Key {
	const bolt = "Bolt, NSDI 2023: its authors' simulations of Swift at 100 Gb/s"
	const most = 1_000_000 // packets of a window
	return []params.Key{
		params.New("ai", params.Decimal(&p.AI, 0.001, 1000), "Packets added per RTT.").Default("1", bolt),
		params.New("beta", params.Share(&p.Beta, 0.001, 1),
			"Decrease: window × (1 - beta (RTT - target) / RTT).").Default("0.8", bolt),
		params.New("max_mdf", params.Share(&p.MaxMDF, 0.001, 0.999), "Maximum decrease.").Default("0.5", bolt),
		params.New("base_target", params.Time(&p.BaseTarget, units.Nanosecond, maxDelay).Or("auto", 0),
			"Target without hops; auto: 10us, more on long paths.").
			Default("auto", bolt),
		params.New("per_hop", params.Time(&p.PerHop, 0, maxDelay), "Added to the target per link of the path.").
			Default("1us", bolt),
		params.New("fs_range", params.Time(&p.FSRange, 0, maxDelay), "Maximum flow scaling of the target; 0s: off.").
			Default("100us", bolt),
		params.New("fs_min", params.Decimal(&p.FSMin, 0.0001, most), "Window (packets) with full flow scaling.").
			Default("0.1", bolt),
		params.New("fs_max", params.Decimal(&p.FSMax, 0.0001, most), "Window (packets) without flow scaling.").
			Default("256", bolt),
		params.New("min_window", params.Bytes(&p.MinWindow, 1, units.GB), "Minimum window.").Default("15B", bolt),
		params.New("max_window", params.Bytes(&p.MaxWindow, 1, units.GB).Or("bdp", 0),
			"Maximum window; bdp: the path's.").Default("bdp", bolt),
		params.New("initial_window", params.Bytes(&p.InitialWindow, 1, units.GB).Or("bdp", 0), "Initial window.").
			Default("bdp", bolt),
		params.New("retx_reset", params.Integer(&p.RetxReset, 1, 1000),
			"Timeouts in a row before the minimum window.").
			Default("5", "csg-htsim, swift.cpp; Bolt has no such rule"),
		params.New("bolt_compat", params.Flag(&p.BoltCompat), "Target as in Bolt's simulator, 4us higher.").
			Default("false", "ours: Bolt's target is above the paper's at every window"),
	}
}

// Rules implements params.Ruled. It rejects windows that contradict each other, and parameters
// without effect.
func (p *Params) Rules(r params.Rules) {
	if r.Good("fs_min", "fs_max") && p.FSMin >= p.FSMax {
		r.Refuse("fs_min", "%v is not below fs_max, %v", p.FSMin, p.FSMax)
	}
	if r.Good("fs_range") && p.FSRange == 0 {
		for _, key := range []string{"fs_min", "fs_max"} {
			r.Idle(key, "fs_range", "fs_range is 0, so that flow scaling adds nothing between these windows; leave "+
				"it out, or expected an fs_range such as 100us")
		}
	}
	if p.MaxWindow != 0 && p.MaxWindow < p.MinWindow {
		r.Refuse("max_window", "%v is below min_window, %v", p.MaxWindow, p.MinWindow)
	}
	switch {
	case p.InitialWindow == 0:
	case p.MaxWindow != 0 && p.InitialWindow > p.MaxWindow:
		r.Idle("initial_window", "max_window", "%v is above max_window, %v; expected at most that", p.InitialWindow,
			p.MaxWindow)
	case p.InitialWindow < p.MinWindow:
		r.Refuse("initial_window", "%v is below min_window, %v; expected at least that", p.InitialWindow, p.MinWindow)
	}
	if tries, err := strconv.Atoi(r.Shown("tries")); err == nil && p.RetxReset > tries {
		r.Idle("retx_reset", "tries", "%d is above tries, %d, after which the connection has failed; expected at "+
			"most that", p.RetxReset, tries)
	}
}

// Exceeds implements cc.Fitted: an initial window above the bandwidth-delay product is an error,
// unless MaxWindow is set.
func (p Params) Exceeds(_ string, _ units.Bandwidth, bdp units.Bytes) (key, why string) {
	if p.MaxWindow == 0 && p.InitialWindow > max(bdp, p.MinWindow) {
		return "initial_window", fmt.Sprintf("%v is above max_window, which is the bandwidth-delay product of the "+
			"path, at most %v here; "+
			"expected at most that, or a max_window", p.InitialWindow, bdp)
	}
	return "", ""
}

// Check returns an error that names the first parameter out of range, or nil.
func (p Params) Check() error {
	switch err := params.Check("swift", &p); {
	case err != nil:
		return err
	case p.FSMin >= p.FSMax:
		return fmt.Errorf("swift: fs_min: flow scaling from %v to %v packets: the first must be below the second",
			p.FSMin, p.FSMax)
	case p.MaxWindow != 0 && p.MaxWindow < p.MinWindow:
		return fmt.Errorf("swift: max_window: %v is below the least, %v", p.MaxWindow, p.MinWindow)
	}
	return nil
}

// maxDelay bounds the terms of the target, so that their sum cannot overflow.
const maxDelay = units.Second
