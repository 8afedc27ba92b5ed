package lab

import (
	"strings"
	"testing"

	"weft/results/expect"
)

// Expectations name every quantity of the lab by its path, in whichever section it is.
func TestExpectationsNameEverySetting(t *testing.T) {
	l := mustParse(t, `
weft: 1
name: lab
seed: 7
topology: {kind: star, hosts: 4}
clocks: {sync: ptp}
background: {load: 10%}
transport: {kind: pc4}
workload: [{collective: all-reduce, size: 1MB, repeat: 2}]
faults: [{at: 5us, host: h1, pause: 1us}]
measure: {rates: 5us}
engine: {dilation: 1000}
`, Options{})[0]
	for _, s := range l.Sources {
		if s.Path == "name" || s.Path == "about" || s.Path == "report" { // never quantities
			continue
		}
		if _, err := expect.Parse(s.Path + " == " + s.Path); err != nil {
			t.Errorf("%s: %v", s.Path, err)
		}
	}
	for _, line := range []string{"seed <= 7", "seed == 7", "faults.0.at == 5us"} {
		if e, err := expect.Parse(line); err != nil || !e.Eval(nil, l.Scope()).OK {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A lab names each section that only a run has a use for.
func TestRunOnly(t *testing.T) {
	const network = "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\n"
	for text, want := range map[string]string{
		"": "", "clocks: {sync: ptp}\nqueues: {ecn: off}\n": "",
		"workload: [{collective: all-reduce, size: 1MB}]\n":                             "workload",
		"workload: [{program: [true], hosts: [h0]}]\n":                                  "workload",
		"faults: [{at: 5us, host: h1, pause: 1us}]\n":                                   "faults",
		"workload: [{collective: all-reduce, size: 1MB}]\nexpect: [verified == true]\n": "workload, expect",
		"workload: [{collective: all-reduce, size: 1MB}]\nbackground: {load: 10%}\nexpect: [drops == 0 when engine.kind == emu]\n" +
			"sweep: {seed: [1, 2]}\n": "background, workload, expect, sweep",
	} {
		if got := strings.Join(mustParse(t, network+text, Options{})[0].RunOnly(), ", "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
