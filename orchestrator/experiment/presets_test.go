package experiment

import (
	"testing"

	"weft/transport/cc/dcqcn"
	"weft/units"
)

// Every preset is a row of its source (the rates at 100 Gb/s, and at 25 where they scale), and good
// at every rate.
func TestPresetsAreThoseOfTheirSources(t *testing.T) {
	const us, mbps, kb = units.Microsecond, units.Mbps, units.KB
	for name, want := range map[string]struct {
		g              float64
		alpha, cnp, rp units.Time // alpha interval; decrease interval, or in mode paper that of notifications; timer
		f              int
		rai, rhai      units.Bandwidth
		scales         bool
		least          units.Bandwidth
		kmin, kmax     units.Bytes
		pmax           float64
	}{
		"nvidia":          {5.0 / 1024, us, 4 * us, 300 * us, 1, 5 * mbps, 50 * mbps, false, mbps, 400 * kb, 1600 * kb, 0.2},
		"paper":           {1.0 / 256, 55 * us, 50 * us, 55 * us, 5, 40 * mbps, 200 * mbps, false, 100 * mbps, 5 * kb, 200 * kb, 0.01},
		"mellanox":        {1.0 / 256, us, 4 * us, 300 * us, 1, 20 * mbps, 200 * mbps, true, units.Gbps, 400 * kb, 1600 * kb, 0.2},
		"ns3-rdma":        {1.0 / 16, 55 * us, 50 * us, 1500 * us, 5, 5 * mbps, 50 * mbps, false, 100 * mbps, 400 * kb, 1600 * kb, 0.2},
		"ns3-rdma-sample": {1.0 / 256, 55 * us, 50 * us, 60 * us, 5, 40 * mbps, 200 * mbps, false, 100 * mbps, 40 * kb, 1000 * kb, 1},
		"alibaba-paper":   {1.0 / 256, 50 * us, 50 * us, 55 * us, 1, 20 * mbps, 200 * mbps, true, units.Gbps, 400 * kb, 1600 * kb, 0.2},
		"alibaba-doc":     {1.0 / 256, us, 4 * us, 900 * us, 1, 50 * mbps, 100 * mbps, false, 100 * mbps, 400 * kb, 1600 * kb, 0.2},
		"conweave":        {1.0 / 256, us, 4 * us, 300 * us, 1, 40 * mbps, 100 * mbps, true, 100 * mbps, 100 * kb, 400 * kb, 0.2},
		"simai":           {1.0 / 256, us, 4 * us, 900 * us, 1, 50 * mbps, 100 * mbps, false, 100 * mbps, 400 * kb, 1600 * kb, 0.2},
		"uet-htsim":       {1.0 / 256, 55 * us, 50 * us, 55 * us, 5, 5000 * mbps, 10000 * mbps, true, 100 * mbps, 400 * kb, 1600 * kb, 0.2},
	} {
		l := parse(t, star+"transport: {kind: roce, roce: {preset: "+name+"}}")
		for _, line := range []units.Bandwidth{units.Gbps, 25 * units.Gbps, 100 * units.Gbps, 1600 * units.Gbps} {
			p := l.Transport.Section.Control().(dcqcn.Params)
			if err := p.Check(); err != nil {
				t.Errorf("%s at %v: %v", name, line, err)
			}
			by := units.Bandwidth(1)
			if want.scales && line == 25*units.Gbps {
				by = 4
			} else if line != 100*units.Gbps {
				continue
			}
			cut := p.DecreaseInterval
			if p.Mode == dcqcn.Paper {
				cut = p.CNPInterval
			}
			if p.G != want.g || p.AlphaInterval != want.alpha || cut != want.cnp || p.RPTimer != want.rp || p.F != want.f ||
				p.RAI.At(line) != want.rai/by || p.RHAI.At(line) != want.rhai/by || p.MinRate.At(line) != want.least {
				t.Errorf("%s at %v: %+v, want %+v", name, line, p, want)
			}
		}
		e, line := l.Queues.ECN, 100*units.Gbps
		if e.Kmin.On(line, 0) != want.kmin || e.Kmax.On(line, 0) != want.kmax || e.Pmax != want.pmax {
			t.Errorf("%s marks at %v and %v, %v", name, e.Kmin, e.Kmax, e.Pmax)
		}
	}
}
