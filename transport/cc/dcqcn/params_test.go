package dcqcn_test

import (
	"math"
	"strings"
	"testing"

	"weft/transport/cc/dcqcn"
)

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
		p := set(t, "paper")
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("paper, %s: %v", name, err)
		}
	}
}
