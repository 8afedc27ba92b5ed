package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Errors of the text hide neither those of the network nor those of expectations, and cause none
// that only follow from them.
func TestValidateReportsEverythingAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		args []string
		want []string // without the name of the file
	}{
		"a fault and an expectation": {
			text: `weft: 1
name: lab
topology: {kind: star, hosts: 4}
workload: [{collective: incast, size: 1MB, ranks: 2}]
faults: [{at: 1ms, host: h99, kill: true}, {at: 1ms, link: h77-switch0, down: 1ms}]
expect: [nope == 3]
`,
			want: []string{
				`:5:26: faults.0.host: no host is named "h99"; the hosts are h0 to h3`,
				":5:60: faults.1.link: no link is named \"h77-switch0\"; `weft graph` draws the links",
				`:6:10: expect.0: unknown name "nope"`,
			},
		},
		"each section": {
			text: `weft: 1
topology: {kind: star, hosts: 4}
queues: {ecn: {kmin: much}}
workload: [{collective: incast, size: 1MB, ranks: 2}, {collective: all-reduce, size: 1}]
faults:
  - {at: 1ms, link: h1-switch0, dwn: 1ms, down: 1ms}
  - {at: 1ms, link: h2-switch0, down: 1ms}
  - {at: 1ms, link: h2-switch0, down: 1ms}
expect: [queues.ecn.kmin == 3, [x], nope < 3, collective.7.time > 0s]
measure: {queue_events: "h1->h2"}
sweep: {seed: [1, x]}
`,
			want: []string{
				":1:1: name: missing;", ":3:22: queues.ecn.kmin: ", ":4:86: workload.1.size: ", ":6:33: faults.0.dwn: unknown key",
				":8:10: faults.2.at: overlaps with fault 1 of the same link", ":9:32: expect.1: is a list", `:9:37: expect.2: unknown name "nope"`,
				`:10:25: measure.queue_events: no port is named "h1->h2"`, ":11:19: sweep.seed[1]: ",
			},
		},
		"no network": {
			text: `weft: 1
name: lab
topology: {kind: star, hosts: x}
workload: [{collective: incast, size: 1MB, ranks: [h0, h1]}]
faults: [{at: 1ms, link: h77-switch0, down: 1ms}]
expect: [nope == 3, topology.hosts == 3, 3 <]
`,
			want: []string{":3:31: topology.hosts: ", `:6:10: expect.0: unknown name "nope"`, ":6:45: expect.2: expected a number or a name"},
		},
		"a flag": {
			text: `weft: 1
name: lab
topology: {kind: star, hosts: 4}
workload: [{collective: incast, size: 1MB, ranks: 2}]
expect: [nope == 3]
`,
			args: []string{"--set", "seed=x"},
			want: []string{`:5:10: expect.0: unknown name "nope"`, "--set seed=x: seed: "},
		},
		"clocks": {
			text: `weft: 1
name: lab
topology: {kind: star, hosts: 400}
clocks: {sync: huygens, for: 10ms, huygens: {degree: 900, coordinators: 3, spacing: 900us}}
`,
			want: []string{`:4:54: clocks.huygens.degree: "900" is out of range`, `:4:73: clocks.huygens.coordinators: "3" is out of range`},
		},
		"clocks and expectations": {
			text: `weft: 1
name: lab
topology: {kind: star, hosts: 400}
clocks: {sync: huygens, for: 10ms, huygens: {spacing: 900us}}
expect: ["nope < 1"]
`,
			want: []string{":4:45: clocks.huygens: pairs of spacing 900us ", `:5:11: expect.0: unknown name "nope"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lab.yaml")
			write(t, path, c.text)
			code, _, stderr := weft(t, &fake{}, append([]string{"validate", path}, c.args...)...)
			got := strings.Split(strings.TrimSpace(stderr), "\n")
			for i, want := range c.want {
				if i >= len(got) || !strings.HasPrefix(strings.TrimPrefix(got[i], path), want) {
					t.Errorf("problem %d is not %s", i, want)
				}
			}
			if code != 2 || len(got) != len(c.want) {
				t.Errorf("exit code %d, want 2 with %d problems:\n%s", code, len(c.want), stderr)
			}
		})
	}
}

// The name of a lab file cannot write lines of its own into what weft prints.
func TestNamesThatDoNotPrint(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"\x1b[31mx.yaml", "x\n::error::y.yaml", "x\u202ey.yaml"} {
		write(t, name, "weft: 1\nname: x\ntopology: {kind: star, hosts: 2}\n")
		for _, args := range [][]string{{"validate", name}, {"validate", name, "--json"}, {"run", name}, {"explain", name},
			{"run", "quickstart", "--junit", name}, {"run", "quickstart", "--out", name}} {
			code, stdout, stderr := weft(t, &fake{}, args...)
			if code != exitUsage || !strings.Contains(stderr, "characters that do not print") || strings.Count(stderr, "\n") != 1 ||
				strings.Contains(stdout, "\x1b") || strings.ContainsAny(stderr, "\x1b\u202e") {
				t.Errorf("%q: code %d, %q, %q", args, code, stdout, stderr)
			}
		}
	}
}
