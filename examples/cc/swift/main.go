// Command swift is Swift (Kumar et al., SIGCOMM 2020, Algorithm 1) as a module. It computes what
// package transport/cc/swift computes, in the same order, so that runs have the same data files.
package main

import (
	"math"

	"weft/sdk/cc"
)

// Positions of the parameters.
const (
	ai = iota
	beta
	maxMDF
	baseTarget
	perHop
	fsRange
	fsMin
	fsMax
	minWindow
	maxWindow
	initialWindow
	retxReset
)

const bolt = "Bolt, NSDI 2023: its authors' simulations of Swift at 100 Gb/s"

var _ = cc.Serve(cc.Module{
	Name: "swift-module", About: "Swift: a window that follows a target delay.",
	Params: []cc.Param{
		ai: {Name: "ai", Kind: cc.Number, Min: 0.001, Max: 1000, Default: "1",
			Source: bolt, About: "Packets added per RTT."},
		beta: {Name: "beta", Kind: cc.Share, Min: 0.001, Max: 1, Default: "0.8",
			Source: bolt, About: "Decrease: window × (1 - beta (RTT - target) / RTT)."},
		maxMDF: {Name: "max_mdf", Kind: cc.Share, Min: 0.001, Max: 0.999, Default: "0.5",
			Source: bolt, About: "Maximum decrease."},
		baseTarget: {Name: "base_target", Kind: cc.Delay, Min: float64(cc.Nanosecond), Max: float64(cc.Second),
			Default: "10us",
			Source:  bolt, About: "Target delay without hops."},
		perHop: {Name: "per_hop", Kind: cc.Delay, Max: float64(cc.Second), Default: "1us",
			Source: bolt, About: "Added to the target per link of the path."},
		fsRange: {Name: "fs_range", Kind: cc.Delay, Max: float64(cc.Second), Default: "100us",
			Source: bolt, About: "Maximum flow scaling of the target; 0s: off."},
		fsMin: {Name: "fs_min", Kind: cc.Number, Min: 0.0001, Max: 1e6, Default: "0.1",
			Source: bolt, About: "Window (packets) with full flow scaling."},
		fsMax: {Name: "fs_max", Kind: cc.Number, Min: 0.0001, Max: 1e6, Default: "256",
			Source: bolt, About: "Window (packets) without flow scaling."},
		minWindow: {Name: "min_window", Kind: cc.Bytes, Min: 1, Max: 1e9, Default: "15B", Source: bolt,
			About: "Minimum window."},
		maxWindow: {Name: "max_window", Kind: cc.Bytes, Min: 1, Max: 1e9, Zero: "bdp", Default: "bdp", Source: bolt,
			About: "Maximum window; bdp: the path's."},
		initialWindow: {Name: "initial_window", Kind: cc.Bytes, Min: 1, Max: 1e9, Zero: "bdp", Default: "bdp",
			Source: bolt,
			About:  "Initial window."},
		retxReset: {Name: "retx_reset", Kind: cc.Integer, Min: 1, Max: 1000, Default: "5",
			Source: "csg-htsim, swift.cpp",
			About:  "Consecutive timeouts before the window drops to its minimum."},
	},
}, &sender{})

func main() {}

// sender is the state of a connection.
type sender struct {
	// Parameters, resolved for the path.
	ai, beta, maxMDF float64
	retxReset        int
	line             float64 // b/s
	packet           float64 // bytes
	minWindow        float64 // packets
	maxWindow        float64 // packets

	// Target delay (section 3.5).
	fixed         cc.Time
	span          float64 // ps
	alpha, betaFS float64 // ps·√packets, and ps

	cwnd      float64 // packets
	rtt       cc.Time // last measured RTT, or the base RTT
	decreased cc.Time // when the window was last decreased
	anyDrop   bool    // decreased is valid
	timeouts  int     // in a row
}

// Init begins with the bandwidth-delay product of the path, in whole packets.
func (s *sender) Init(l *cc.Link, p *cc.Values) {
	packet := float64(l.Packet)
	bdp := max(l.Line*l.BaseRTT.Seconds()/8, p[minWindow])
	bdp = math.Ceil(bdp/packet) * packet // a partial packet would not fill the path
	largest, initial := p[maxWindow], p[initialWindow]
	if largest == 0 {
		largest = bdp
	}
	if initial == 0 {
		initial = bdp
	}
	s.ai, s.beta, s.maxMDF, s.retxReset = p[ai], p[beta], p[maxMDF], int(p.Int(retxReset))
	s.line, s.packet, s.rtt = l.Line, packet, l.BaseRTT
	s.minWindow, s.maxWindow, s.cwnd = p[minWindow]/packet, largest/packet, initial/packet

	s.fixed, s.span = p.Time(baseTarget)+cc.Time(l.Hops)*p.Time(perHop), p[fsRange]
	s.alpha = s.span / (1/math.Sqrt(p[fsMin]) - 1/math.Sqrt(p[fsMax]))
	s.betaFS = -s.alpha / math.Sqrt(p[fsMax])
	s.clamp()
}

// target returns the target delay for the window.
func (s *sender) target() cc.Time {
	add := s.alpha/math.Sqrt(s.cwnd) + s.betaFS
	if add < 0 {
		add = 0
	}
	if add > s.span {
		add = s.span
	}
	return s.fixed + cc.Time(add)
}

// Ack is Algorithm 1, "On Receiving ACK".
func (s *sender) Ack(now cc.Time, a *cc.Ack) {
	s.rtt = a.RTT
	s.timeouts = 0
	switch t := s.target(); {
	case a.RTT < t:
		s.increase(float64(a.Size) / s.packet)
	case s.mayDecrease(now):
		over := float64(a.RTT-t) / float64(a.RTT)
		s.decrease(now, max(1-float64(s.beta*over), 1-s.maxMDF))
	}
	s.clamp()
}

// increase adds AI packets per acknowledged window, or per acknowledged packet if the window is
// below one.
func (s *sender) increase(acked float64) {
	if s.cwnd >= 1 {
		s.cwnd += s.ai * acked / s.cwnd
		return
	}
	s.cwnd += float64(s.ai * acked)
}

// mayDecrease reports whether the last decrease is an RTT ago, so that its effect shows.
func (s *sender) mayDecrease(now cc.Time) bool { return !s.anyDrop || now-s.decreased >= s.rtt }

// decrease multiplies the window by factor.
func (s *sender) decrease(now cc.Time, factor float64) {
	if factor < 1 {
		s.decreased, s.anyDrop = now, true
	}
	s.cwnd *= factor
}

// Loss is Algorithm 1, "On Retransmit Timeout" and "On Fast Recovery".
func (s *sender) Loss(now cc.Time, l *cc.Loss) {
	if l.Kind == cc.Timeout {
		s.timeouts++
	} else {
		s.timeouts = 0
	}
	switch {
	case s.timeouts >= s.retxReset:
		s.cwnd = s.minWindow
		s.decreased, s.anyDrop = now, true
	case s.mayDecrease(now):
		s.decrease(now, 1-s.maxMDF)
	}
	s.clamp()
}

// clamp limits the window to its range. On WebAssembly, Go calls a function for min and max of
// floating-point numbers; comparisons are several times as fast.
func (s *sender) clamp() {
	if s.cwnd < s.minWindow {
		s.cwnd = s.minWindow
	}
	if s.cwnd > s.maxWindow {
		s.cwnd = s.maxWindow
	}
}

// Window returns the whole packets in the window, or one byte below one: one packet at a time,
// paced.
func (s *sender) Window() float64 {
	if s.cwnd < 1 {
		return 1
	}
	return math.Floor(s.cwnd) * s.packet
}

// Rate spaces packets rtt/cwnd apart while the window is below one packet.
func (s *sender) Rate() float64 {
	if s.cwnd >= 1 {
		return 0
	}
	return min(math.Ceil(8*s.cwnd*s.packet/s.rtt.Seconds()), s.line)
}
