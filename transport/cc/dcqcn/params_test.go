package dcqcn_test

import (
	"math"
	"strings"
	"testing"

	"weft/params"
	"weft/transport/cc/dcqcn"
)

func TestCheckNamesWhatIsWrong(t *testing.T) {
	if err := params.Defaults[dcqcn.Params]().Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*dcqcn.Params){
		"cnp_interval":      func(p *dcqcn.Params) { p.CNPInterval = -1 },
		"g NaN":             func(p *dcqcn.Params) { p.G = math.NaN() },
		"g 0":               func(p *dcqcn.Params) { p.G = 0 },
		"initial_alpha":     func(p *dcqcn.Params) { p.InitialAlpha = 1.1 },
		"alpha_interval":    func(p *dcqcn.Params) { p.AlphaInterval = 0 },
		"rp_timer":          func(p *dcqcn.Params) { p.RPTimer = 0 },
		"f: 0":              func(p *dcqcn.Params) { p.F = 0 },
		"rai":               func(p *dcqcn.Params) { p.RAI.Rate = 0 },
		"min_rate":          func(p *dcqcn.Params) { p.MinRate.Rate = 0 },
		"clamp":             func(p *dcqcn.Params) { p.Clamp = "" },
		"mode":              func(p *dcqcn.Params) { p.Mode = "rocev3" },
		"decrease_interval": func(p *dcqcn.Params) { p.DecreaseInterval = 0 },
		"first_rate":        func(p *dcqcn.Params) { p.FirstRate = 0 },
		"byte_counter":      func(p *dcqcn.Params) { p.ByteCounter = 1 },
		"alpha":             func(p *dcqcn.Params) { p.AlphaFirst = true },
	} {
		p := params.Defaults[dcqcn.Params]()
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*dcqcn.Params){
		"byte_counter":      func(p *dcqcn.Params) { p.ByteCounter = -1 },
		"decrease_interval": func(p *dcqcn.Params) { p.DecreaseInterval = us },
		"first_rate":        func(p *dcqcn.Params) { p.FirstRate = 1 },
	} {
		p := set(t, "paper")
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("paper, %s: %v", name, err)
		}
	}
}
