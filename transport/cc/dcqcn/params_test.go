package dcqcn_test

import (
	"math"
	"strings"
	"testing"

	"weft/transport/cc/dcqcn"
	"weft/units"
)

func TestSetsAreGood(t *testing.T) {
	for _, s := range dcqcn.Sets() {
		for _, line := range []units.Bandwidth{units.Mbps, 25 * gbps, 100 * gbps, 1600 * gbps} {
			if err := s.Params(line).Check(); err != nil {
				t.Errorf("%s at %v: %v", s.Name, line, err)
			}
			if s.Marking != nil {
				if m := s.Marking(line); m.Kmin < 0 || m.Kmax < m.Kmin || m.Pmax <= 0 || m.Pmax > 1 {
					t.Errorf("%s at %v: %+v", s.Name, line, m)
				}
			}
		}
		if got, ok := dcqcn.ByName(s.Name); !ok || got.Source != s.Source || s.Source == "" {
			t.Errorf("%s: %q, %v", s.Name, got.Source, ok)
		}
	}
	if _, ok := dcqcn.ByName("none"); ok {
		t.Error("a set named none")
	}
}

// The rows of the sources, where they scale.
func TestSetsScaleWithTheLine(t *testing.T) {
	for _, c := range []struct {
		set       string
		rai, rhai units.Bandwidth // at 100 Gb/s
	}{
		{"nvidia", 5 * units.Mbps, 50 * units.Mbps},
		{"alibaba", 20 * units.Mbps, 200 * units.Mbps},
		{"alibaba-paper", 20 * units.Mbps, 200 * units.Mbps},
		{"alibaba-doc", 50 * units.Mbps, 100 * units.Mbps},
		{"conweave", 40 * units.Mbps, 100 * units.Mbps},
		{"simai", 50 * units.Mbps, 100 * units.Mbps},
		{"ns3-rdma", 5 * units.Mbps, 50 * units.Mbps},
		{"ns3-rdma-sample", 40 * units.Mbps, 200 * units.Mbps},
		{"uet-htsim", 5 * gbps, 10 * gbps},
	} {
		if p := set(t, c.set); p.RAI != c.rai || p.RHAI != c.rhai {
			t.Errorf("%s: RAI %v, RHAI %v; want %v, %v", c.set, p.RAI, p.RHAI, c.rai, c.rhai)
		}
	}
	for _, c := range []struct {
		set  string
		link units.Bandwidth
		want dcqcn.Marking
	}{
		{"alibaba", 100 * gbps, dcqcn.Marking{Kmin: 400 * units.KB, Kmax: 1600 * units.KB, Pmax: 0.2}},
		{"simai", 100 * gbps, dcqcn.Marking{Kmin: 400 * units.KB, Kmax: 1600 * units.KB, Pmax: 0.2}},
		{"simai", 200 * gbps, dcqcn.Marking{Kmin: 300 * units.KB, Kmax: 1200 * units.KB, Pmax: 0.8}},
		{"simai", 400 * gbps, dcqcn.Marking{Kmin: 800 * units.KB, Kmax: 3200 * units.KB, Pmax: 0.2}},
		{"conweave", 400 * gbps, dcqcn.Marking{Kmin: 100 * units.KB, Kmax: 400 * units.KB, Pmax: 0.2}},
	} {
		s, _ := dcqcn.ByName(c.set)
		if got := s.Marking(c.link); got != c.want {
			t.Errorf("%s at %v: %+v, want %+v", c.set, c.link, got, c.want)
		}
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	if err := dcqcn.Defaults().Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*dcqcn.Params){
		"cnp interval":      func(p *dcqcn.Params) { p.CNPInterval = -1 },
		"g NaN":             func(p *dcqcn.Params) { p.G = math.NaN() },
		"g 0":               func(p *dcqcn.Params) { p.G = 0 },
		"initial alpha":     func(p *dcqcn.Params) { p.InitialAlpha = 1.1 },
		"alpha interval":    func(p *dcqcn.Params) { p.AlphaInterval = 0 },
		"rp timer":          func(p *dcqcn.Params) { p.RPTimer = 0 },
		"threshold":         func(p *dcqcn.Params) { p.F = 0 },
		"increments":        func(p *dcqcn.Params) { p.RAI = 0 },
		"least rate":        func(p *dcqcn.Params) { p.MinRate = 0 },
		"clamp":             func(p *dcqcn.Params) { p.Clamp = "" },
		"mode":              func(p *dcqcn.Params) { p.Mode = "rocev3" },
		"decrease interval": func(p *dcqcn.Params) { p.DecreaseInterval = 0 },
		"first rate":        func(p *dcqcn.Params) { p.FirstRate = 0 },
		"byte counter":      func(p *dcqcn.Params) { p.ByteCounter = 1 },
		"alpha":             func(p *dcqcn.Params) { p.AlphaFirst = true },
	} {
		p := dcqcn.Defaults()
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*dcqcn.Params){
		"byte counter":      func(p *dcqcn.Params) { p.ByteCounter = -1 },
		"decrease interval": func(p *dcqcn.Params) { p.DecreaseInterval = us },
		"notification":      func(p *dcqcn.Params) { p.FirstRate = 1 },
	} {
		p := set(t, "sigcomm15")
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("paper, %s: %v", name, err)
		}
	}
}
