package lab

import (
	"weft/transport/cc/swift"
	"weft/units"
)

const maxPackets = 1_000_000 // of a window

// swift reads Swift.
func (c *section) swift() Section {
	var s Swift
	s.AI, _ = c.field("ai").decimal(0.001, 1000)
	s.Beta, _ = c.field("beta").share(0.001, 1)
	s.MaxMDF, _ = c.field("max_mdf").share(0.001, 0.999)
	s.BaseTarget, _ = quantity(c.field("base_target"), units.ParseTime, units.Nanosecond, units.Second)
	s.PerHop, _ = quantity(c.field("per_hop"), units.ParseTime, 0, units.Second)
	span := c.field("fs_range")
	var okSpan bool
	s.FSRange, okSpan = quantity(span, units.ParseTime, 0, units.Second)
	least, greatest := c.field("fs_min"), c.field("fs_max")
	var okMin, okMax bool
	s.FSMin, okMin = least.decimal(0.0001, maxPackets)
	s.FSMax, okMax = greatest.decimal(0.0001, maxPackets)
	if okMin && okMax && s.FSMin >= s.FSMax {
		least.problem("%v is not below fs_max, %v", s.FSMin, s.FSMax)
	}
	if okSpan && s.FSRange == 0 {
		for _, f := range []field{least, greatest} {
			f.idle(span, "fs_range is 0, so that flow scaling adds nothing between these windows; leave it out, or expected an fs_range such as 100us")
		}
	}
	s.MinWindow, _ = c.field("min_window").window()
	most := c.field("max_window")
	s.MaxWindow = unless(most, "bdp", field.window)
	if s.MaxWindow != 0 && s.MaxWindow < s.MinWindow {
		most.problem("%v is below min_window, %v", s.MaxWindow, s.MinWindow)
	}
	first := c.field("initial_window")
	switch s.InitialWindow = unless(first, "bdp", field.window); {
	case s.InitialWindow == 0:
	case s.MaxWindow != 0 && s.InitialWindow > s.MaxWindow:
		first.idle(most, "%v is above max_window, %v; expected at most that", s.InitialWindow, s.MaxWindow)
	case s.InitialWindow < s.MinWindow:
		first.problem("%v is below min_window, %v; expected at least that", s.InitialWindow, s.MinWindow)
	}
	reset := c.field("retx_reset")
	s.RetxReset = reset.integer(1, maxTries)
	s.BoltCompat = c.field("bolt_compat").flag()
	s.Timeouts = c.timeouts()
	if s.RetxReset > s.Tries {
		reset.idle(c.field("tries"), "%d is above tries, %d, after which the connection has failed; expected at most that", s.RetxReset, s.Tries)
	}
	return s
}

// window reads a window in bytes.
func (f field) window() (units.Bytes, bool) { return quantity(f, units.ParseBytes, 1, maxWindow) }

// Connection returns the parameters of Swift.
func (p Swift) Connection(units.Bandwidth) Connection {
	return Connection{Timeouts: p.Timeouts, Params: swift.Params{
		AI: p.AI, Beta: p.Beta, MaxMDF: p.MaxMDF,
		BaseTarget: p.BaseTarget, PerHop: p.PerHop, FSRange: p.FSRange, FSMin: p.FSMin, FSMax: p.FSMax,
		MinWindow: p.MinWindow, MaxWindow: p.MaxWindow, InitialWindow: p.InitialWindow,
		RetxReset: p.RetxReset, BoltCompat: p.BoltCompat,
	}}
}
