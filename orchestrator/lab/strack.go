package lab

import (
	"weft/transport/cc/strack"
	"weft/units"
)

const (
	maxPaths     = 256    // STrack paper, section 4.1
	maxIncrease  = 1000   // packets
	maxThreshold = 10_000 // packets
)

// strack reads STrack, whose paths are to be a power of two where they are taken in turn.
func (c *section) strack() Section {
	var s STrack
	s.Target = unless(c.field("target"), "auto", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, units.Nanosecond, units.Second)
	})
	s.High, _ = c.field("high").decimal(1, 1000)
	ewma := c.field("ewma")
	s.EWMA, _ = ewma.gain()
	s.Alpha, _ = c.field("alpha").decimal(0, maxIncrease)
	s.Beta, _ = c.field("beta").decimal(0, maxIncrease)
	s.Eta, _ = c.field("eta").decimal(0, maxIncrease)
	gamma, most := c.field("gamma"), c.field("max_mdf")
	s.Gamma, _ = gamma.share(0.001, 1)
	s.MaxMDF, _ = most.share(0.001, 0.999)
	s.MaxCWND, _ = c.field("max_cwnd").decimal(0.01, 1000)
	if s.NeedMark = c.field("md_requires_ecn").flag(); s.NeedMark && c.d.ecnOff.n != nil && c.d.aside == 0 {
		for _, f := range []field{ewma, gamma, most} {
			f.idle(c.d.ecnOff, "windows shrink on marked packets only (md_requires_ecn), and queues.ecn is off; leave it out, or expected queues.ecn: on")
		}
	}
	s.Paths = c.field("paths").integer(1, maxPaths)
	s.AckEvery, _ = c.field("ack_every").window()
	s.Threshold = c.field("threshold").integer(1, maxThreshold)
	s.ProbeAfter, _ = c.field("probe_after").decimal(0.1, 1000)
	s.Timeouts = c.timeouts()
	return s
}

// Connection returns the parameters of STrack, and of its recovery.
func (p STrack) Connection(units.Bandwidth) Connection {
	return Connection{Selective: p.Selective, Timeouts: p.Timeouts, Params: strack.Params{
		Target: p.Target, High: p.High, EWMA: p.EWMA, Alpha: p.Alpha, Beta: p.Beta, Eta: p.Eta,
		Gamma: p.Gamma, MaxMDF: p.MaxMDF, MaxCWND: p.MaxCWND, MDRequiresECN: p.NeedMark, Paths: p.Paths,
	}}
}
