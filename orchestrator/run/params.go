package run

import (
	"weft/orchestrator/lab"
	"weft/transport"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/strack"
	"weft/transport/cc/swift"
	"weft/units"
)

// setTransport hands the lab's parameters to a connection whose sender has a line of the given rate.
func setTransport(s *transport.Spec, t *lab.Transport, line units.Bandwidth) {
	s.Kind = t.Kind
	var o lab.Timeouts
	switch t.Kind {
	case "pc4":
		s.PC4 = pc4Params(t.PC4)
		o.RTOMin = t.PC4.RTOMin
	case "roce":
		s.DCQCN, o = dcqcnParams(t.RoCE, line), t.RoCE.Timeouts
		s.Recovery = t.RoCE.Recovery
	case "swift":
		s.Swift, o = swiftParams(t.Swift), t.Swift.Timeouts
	case "hpcc":
		s.HPCC, o = hpccParams(t.HPCC, line), t.HPCC.Timeouts
	case "strack", "spray":
		s.STrack, s.Selective, o = strackParams(t.STrack), selective(t.STrack), t.STrack.Timeouts
	}
	s.RTOMin, s.Tries = o.RTOMin, o.Tries
}

func pc4Params(p lab.PC4) pc4.Params {
	return pc4.Params{
		TargetQtime: p.TargetQtime, AdjustInterval: p.AdjustInterval, AI: p.AI, HAI: p.HAI,
		Beta: p.Beta, MaxMDF: p.MaxMDF, PacedBelow: p.PacedBelow, BaseRate: p.BaseRate,
		Initial: p.Initial, InitialWindow: p.InitialWindow, RTT: p.RTT, Epsilon: p.Epsilon,
	}
}

func dcqcnParams(p lab.RoCE, line units.Bandwidth) dcqcn.Params {
	return dcqcn.Params{
		Mode: p.Mode, Clamp: p.Clamp, CNPInterval: p.CNPInterval,
		G: p.G, InitialAlpha: p.InitialAlpha, AlphaInterval: p.AlphaInterval, AlphaFirst: p.AlphaFirst,
		DecreaseInterval: p.DecreaseInterval, FirstRate: p.FirstRate, MinRate: p.MinRate.At(line),
		RPTimer: p.RPTimer, ByteCounter: p.ByteCounter, F: p.F, RAI: p.RAI.At(line), RHAI: p.RHAI.At(line),
	}
}

func swiftParams(p lab.Swift) swift.Params {
	return swift.Params{
		AI: p.AI, Beta: p.Beta, MaxMDF: p.MaxMDF,
		BaseTarget: p.BaseTarget, PerHop: p.PerHop, FSRange: p.FSRange, FSMin: p.FSMin, FSMax: p.FSMax,
		MinWindow: p.MinWindow, MaxWindow: p.MaxWindow, InitialWindow: p.InitialWindow,
		RetxReset: p.RetxReset, BoltCompat: p.BoltCompat,
	}
}

func hpccParams(p lab.HPCC, line units.Bandwidth) hpcc.Params {
	return hpcc.Params{
		Eta: p.Eta, MaxStage: p.MaxStage, WAI: p.WAI, Flows: p.Flows, BaseRTT: p.T, MinRate: p.MinRate.At(line),
	}
}

func strackParams(p lab.STrack) strack.Params {
	return strack.Params{
		Target: p.Target, High: p.High, EWMA: p.EWMA, Alpha: p.Alpha, Beta: p.Beta, Eta: p.Eta,
		Gamma: p.Gamma, MaxMDF: p.MaxMDF, MaxCWND: p.MaxCWND, MDRequiresECN: p.NeedMark, Paths: p.Paths,
	}
}

// selective are the parameters of STrack's recovery.
func selective(p lab.STrack) transport.Selective {
	return transport.Selective{AckEvery: p.AckEvery, Threshold: p.Threshold, ProbeAfter: p.ProbeAfter}
}
