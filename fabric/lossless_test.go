package fabric

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"weft/units"
)

// headroom >= 2·delay·rate + 2·MTU + response·rate.
func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		rate            units.Bandwidth
		delay, response units.Time
		mtu, want       units.Bytes
	}{
		{100 * units.Gbps, us, 0, 4096, 25_000 + 8192},
		{100 * units.Gbps, us, 500 * ns, 4096, 31_250 + 8192},
		{400 * units.Gbps, 600 * ns, 0, 9000, 60_000 + 18_000},
		{3 * units.Gbps, 1, 0, 64, 1 + 128}, // less than a byte on the way
		{100 * units.Gbps, 0, 0, 1500, 3000},
	} {
		if got := Headroom(c.rate, c.delay, c.response, c.mtu); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// sound is a switch that loses nothing and whose ECN comes first.
func sound() *wiring {
	w := funnel(2, PortConfig{Link: Link{Rate: 100 * units.Gbps, Delay: us}, Buffer: mB, ECN: ECNConfig{On: true, Kmin: 100_000, Kmax: 400_000, Pmax: 0.2}})
	w.Switches[0].Name = "tor"
	w.Switches[0].Buffer.Total = 2 * mB
	return w.protect(PFCConfig{Alpha: 0.125, Offset: 3000, Reserve: 4000, Headroom: 33_192})
}

func TestCheckLossless(t *testing.T) {
	const mtu = 4096
	static := PFCConfig{On: true, Xoff: 100_001, Xon: 90_000, Headroom: 33_192}
	for _, c := range []struct {
		name       string
		change     func(w *wiring)
		rules      []LosslessRule
		says       string
		need, have units.Bytes
	}{
		{name: "sound", change: func(*wiring) {}},
		{name: "no PFC at all", change: func(w *wiring) { w.protect(PFCConfig{}); turnOffPFC(w) }},
		{
			"short headroom", func(w *wiring) { w.Ports[2].PFC[1].Headroom = 33_191 }, []LosslessRule{RuleHeadroom},
			"tor: port 2 from node 1: headroom of 33191 bytes, needs 33192: 2 x 1.000 us + 0.000 us at 100000000000 b/s, and 2 x 4096 bytes",
			33_192, 33_191,
		},
		{
			"longer line", func(w *wiring) { w.Ports[2].Delay = 2 * us }, []LosslessRule{RuleHeadroom},
			"needs 58192: 2 x 2.000 us", 58_192, 33_192,
		},
		{
			"slow response", func(w *wiring) { w.Ports[2].PFC[1].Response = us }, []LosslessRule{RuleHeadroom},
			"needs 45692", 45_692, 33_192,
		},
		{
			"small buffer", func(w *wiring) { w.Switches[0].Buffer.Total = 3 * (33_192 + 4000) },
			[]LosslessRule{RuleMemory, RuleECN, RuleECN, RuleECN},
			"tor: headrooms and reserves of 3 ports take 111576 bytes, the buffer has 111576", 111_576, 111_576,
		},
		{
			"uncovered", func(w *wiring) { w.Ports[4].PFC[1] = PFCConfig{} }, []LosslessRule{RuleCovered},
			"tor: port 4 from node 2 has no PFC in class 1, 2 others have", 0, 0,
		},
		{
			// 2 MB - 111,576 = 1,888,424 shared; paused at 4000 + 1,888,424/9 = 213,824.
			"late ECN", func(w *wiring) { w.Ports[0].ECN.Kmin = 213_824 }, []LosslessRule{RuleECN, RuleECN, RuleECN},
			"tor: port 0 marks above 213824 bytes (Kmin), but a port that feeds it (1, from node 0) is paused at 213824",
			213_824, 213_824,
		},
		{name: "just in time", change: func(w *wiring) { w.Ports[0].ECN.Kmin = 213_823 }},
		{name: "no ECN", change: func(w *wiring) { w.Ports[0].ECN = ECNConfig{Kmin: mB} }},
		{name: "static", change: func(w *wiring) { w.protect(static) }},
		{
			"static, late ECN", func(w *wiring) { w.protect(static); w.Ports[0].ECN.Kmin = 100_001; w.Switches[0].Name = "" },
			[]LosslessRule{RuleECN, RuleECN, RuleECN}, "switch 0: port 0 marks", 100_001, 100_001,
		},
		{
			"static without a total", func(w *wiring) {
				w.protect(static)
				w.Switches[0].Buffer.Total, w.Ports[2].PFC[1].Headroom = 0, 0
			}, []LosslessRule{RuleHeadroom}, "headroom of 0 bytes", 33_192, 0,
		},
	} {
		w := sound()
		c.change(w)
		cfg := w.route()
		faults := CheckLossless(&cfg, mtu)
		var rules []LosslessRule
		for _, f := range faults {
			rules = append(rules, f.Rule)
		}
		if len(rules) != len(c.rules) {
			t.Errorf("%s: %v", c.name, faults)
			continue
		}
		for i := range rules {
			if rules[i] != c.rules[i] {
				t.Errorf("%s: rule %v, want %v", c.name, rules[i], c.rules[i])
			}
		}
		if len(faults) == 0 {
			continue
		}
		if f := faults[0]; !strings.Contains(f.Error(), c.says) || f.Need != c.need || f.Have != c.have || f.Switch != 3 {
			t.Errorf("%s: %+v\nwant %q", c.name, f, c.says)
		}
	}
}

// turnOffPFC takes the PFC settings off all ports.
func turnOffPFC(w *wiring) {
	for i := range w.Ports {
		w.Ports[i].PFC = [Classes]PFCConfig{}
	}
}

// What a network with PFC cannot mean is refused.
func TestPFCConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*wiring){
		"PFC of class 1: has settings, but is not on":             func(w *wiring) { w.Ports[2].PFC[1].On = false },
		"PFC of class 0: node 0 is a host":                        func(w *wiring) { w.Ports[0].PFC[0] = w.Ports[2].PFC[1] },
		"reserve of 4000 bytes, headroom of -1 bytes":             func(w *wiring) { w.Ports[2].PFC[1].Headroom = -1 },
		"dynamic threshold alpha 0.125, offset 3000, xoff 1":      func(w *wiring) { w.Ports[2].PFC[1].Xoff = 1 },
		"static threshold xoff 0, xon 0, offset 3000":             func(w *wiring) { w.Ports[2].PFC[1].Alpha = 0 },
		"static threshold xoff 10, xon 11":                        func(w *wiring) { w.Ports[2].PFC[1] = PFCConfig{On: true, Xoff: 10, Xon: 11} },
		"the switch's buffer has no total":                        func(w *wiring) { w.Switches[0].Buffer.Total = 0 },
		"reserves and headrooms of 111576 bytes leave nothing":    func(w *wiring) { w.Switches[0].Buffer.Total = 111_576 },
		"buffer of -1 bytes with alpha 0":                         func(w *wiring) { w.Switches[0].Buffer.Total = -1 },
		"buffer of 2000000 bytes with alpha -1":                   func(w *wiring) { w.Switches[0].Buffer.Alpha = -1 },
		"buffer of -1 bytes":                                      func(w *wiring) { w.Ports[0].Buffer = -1 },
		"loss of 1.5 and bit errors of 0":                         func(w *wiring) { w.Ports[0].Loss = 1.5 },
		"loss of 0 and bit errors of -1":                          func(w *wiring) { w.Ports[0].BitErrors = -1 },
		"port 2 (node 1 to node 3): PFC of class 1: static thres": func(w *wiring) { w.Ports[2].PFC[1] = PFCConfig{On: true} },
	} {
		w := sound()
		change(w)
		if _, err := New(w.route(), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A configuration with everything is plain data, too; without PFC it says nothing of it.
func TestPFCConfigIsPlainData(t *testing.T) {
	cfg := sound().route()
	cfg.Ports[0].Loss, cfg.Ports[0].BitErrors = 0.1, 1e-9
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var back Config
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(cfg, back) {
		t.Fatalf("%v\n%+v\n%+v", err, cfg, back)
	}
	if text, err = json.Marshal(chain(1).route()); err != nil || strings.Contains(string(text), "pfc") {
		t.Errorf("%v: %s", err, text)
	}
}
