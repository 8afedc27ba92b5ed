package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/privilege"
	"weft/orchestrator/deploy"
	"weft/results/store"
)

// pipeIn makes text the standard input, as a pipe, for the rest of a test.
func pipeIn(t *testing.T, text string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	t.Cleanup(func() { os.Stdin = before; r.Close() })
	os.Stdin = r
	go func() {
		defer w.Close()
		_, _ = w.WriteString(text)
	}()
}

func TestEveryVerbReadsALabFromStandardInput(t *testing.T) {
	t.Setenv(deploy.RootVar, filepath.Join(t.TempDir(), "state"))
	t.Setenv(store.RootVar, filepath.Join(t.TempDir(), "runs"))
	const text = "weft: 1\nname: piped\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: all-reduce, size: 4MB}]\n"
	for _, args := range [][]string{
		{"validate", "-"}, {"run", "-"}, {"explain", "-"}, {"plan", "-"}, {"graph", "-"},
		{"deploy", "-", "--dry-run", "--set", "engine.dilation=1000000"}, {"clock", "-", "--set", "clocks.sync=ptp"}, {"bench", "--lab", "-", "-b", "1M", "-e", "1M"},
		{"validate", "-", "-"}, // standard input is read once and used twice
	} {
		pipeIn(t, text)
		code, stdout, stderr := weft(t, &fake{}, args...)
		refused := args[0] == "deploy" && privilege.CheckNamespaces() != nil
		if refused && (code != 1 || !strings.Contains(stderr, "cannot emulate")) || !refused && (code != 0 || stdout == "") {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
		pipeIn(t, strings.Replace(text, "star", "stair", 1))
		if code, _, stderr := weft(t, &fake{}, args...); code != 2 || !strings.Contains(stderr, "stdin:3:18: topology.kind: unknown value") {
			t.Errorf("%v of a wrong lab: code %d, stderr %q", args, code, stderr)
		}
	}
}

// A directory is no lab and hides none. Where a file and a lab inside the program may be meant, a
// note says which was taken.
func TestDirectoriesAndFilesNamedLikeALab(t *testing.T) {
	t.Setenv(store.RootVar, filepath.Join(t.TempDir(), "runs"))
	t.Chdir(t.TempDir())
	if err := os.Mkdir("quickstart", 0o755); err != nil {
		t.Fatal(err)
	}
	check := func(wantCode int, said string, args ...string) {
		t.Helper()
		code, _, stderr := weft(t, &fake{}, args...)
		if code != wantCode || !strings.Contains(stderr, said) || said == "" && strings.Contains(stderr, "note") {
			t.Errorf("%v: code %d, stderr %q, want %d, %q", args, code, stderr, wantCode, said)
		}
	}
	const text = "weft: 1\nname: mine\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: all-reduce, size: 4MB}]\n"
	write := func(name string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check(0, "", "run", "quickstart")
	write("quickstart/mine.yaml")
	check(0, "note: quickstart: took the lab inside weft, not quickstart/mine.yaml in the", "run", "quickstart")
	if err := os.Rename("quickstart", "own"); err != nil {
		t.Fatal(err)
	}
	check(2, "own: is a directory; did you mean own/mine.yaml?", "run", "own")
	check(2, "own/mine.yml: no such file or directory; did you mean own/mine.yaml?", "run", "own/mine.yml")
	write("quickstart")
	check(0, "note: quickstart: took the file of that name, not the lab inside weft", "run", "quickstart")
	write("quickstart.yaml")
	check(0, "", "run", "quickstart.yaml")
}

func TestLabsInsideTheProgram(t *testing.T) {
	t.Setenv(store.RootVar, filepath.Join(t.TempDir(), "runs"))
	t.Chdir(t.TempDir())
	f := &fake{}
	for _, args := range [][]string{{"demo"}, {"demo", "--engine", "sim"}, {"run", "quickstart"}, {"run", "labs/quickstart.yaml"}} {
		if code, _, stderr := weft(t, f, args...); code != 0 {
			t.Errorf("%v: code %d, stderr %q", args, code, stderr)
		}
	}
	if got := strings.Join(f.runs, ", "); got != "quickstart sim, quickstart emu, quickstart emu, quickstart sim, quickstart auto, quickstart auto" {
		t.Errorf("ran %s", got)
	}
	// The name in its file also names a lab. The error for an unknown name suggests similar labs.
	if code, stdout, _ := weft(t, f, "validate", "pc4-incast"); code != 0 || stdout != "pc4-incast: ok, 4 runs\n" {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
	const meant = "did you mean ccm/incast or pc4/incast or smoke/incast? weft labs lists the labs inside weft\n"
	for _, verb := range []string{"run", "validate", "explain"} {
		if code, _, stderr := weft(t, f, verb, "incast"); code != 2 || !strings.HasSuffix(stderr, "no such file or directory; "+meant) {
			t.Errorf("%s: code %d, stderr %q", verb, code, stderr)
		}
	}
	// A trace that a lab inside the program names is inside too.
	if code, _, stderr := weft(t, f, "validate", "labs/collectives/traces.yaml", "pc4/incast"); code != 0 {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	// A file takes precedence over a lab inside the program, but not for the demo.
	write(t, "quickstart", "weft: 1\nname: mine\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 4MB}]\n")
	f = &fake{}
	weft(t, f, "run", "quickstart")
	weft(t, f, "demo")
	if got := strings.Join(f.runs, ", "); got != "mine auto, quickstart sim, quickstart emu, quickstart emu" {
		t.Errorf("ran %s", got)
	}
	if code, _, stderr := weft(t, f, "run", "nothing"); code != 2 || !strings.Contains(stderr, "nothing: no such file or directory; weft labs lists those that need no file") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

func TestLabsAreListed(t *testing.T) {
	code, stdout, stderr := weft(t, &fake{}, "labs")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "\npc4/incast ") || strings.Count(stdout, "\n") < 100 {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if _, stdout, _ := weft(t, &fake{}, "labs", "table II"); strings.Count(stdout, "\n") != 3 || !strings.Contains(stdout, "pc4/table2") {
		t.Errorf("table II: %q", stdout)
	}
	if code, _, stderr := weft(t, &fake{}, "labs", "elephants"); code != 2 || !strings.Contains(stderr, "weft labs lists all") {
		t.Errorf("elephants: code %d, stderr %q", code, stderr)
	}
	var all []struct{ Lab, Name, About string }
	if _, stdout, _ := weft(t, &fake{}, "labs", "--json"); json.Unmarshal([]byte(stdout), &all) != nil || len(all) < 100 {
		t.Errorf("--json: %d labs", len(all))
	}
}

func TestLabTooLarge(t *testing.T) {
	for _, size := range []int{1<<20 + 1, 3 << 20, 20 << 20} {
		file := filepath.Join(t.TempDir(), "huge.yaml")
		write(t, file, "weft: 1 #"+strings.Repeat("x", size-9))
		if code, _, stderr := weft(t, &fake{}, "validate", file); code != 2 || stderr != file+":1:1: more than 1 MiB; a lab file has at most that\n" {
			t.Errorf("%d bytes: code %d, stderr %q", size, code, stderr)
		}
	}
}

// plan and deploy --dry-run return the same errors as run and deploy.
func TestPlanErrorsAreThoseOfRun(t *testing.T) {
	t.Setenv(deploy.RootVar, filepath.Join(t.TempDir(), "state"))
	const large = "weft: 1\nname: large\ntopology: {kind: leaf-spine, leaves: 32, spines: 4, hosts_per_leaf: 64}\nworkload: [{collective: permute, size: 4MB}]\n"
	const want = ":3:18: topology: 2048 hosts are more than the 1024 that can be emulated on one machine; --engine sim runs them\n"
	file := filepath.Join(t.TempDir(), "lab.yaml")
	write(t, file, large)
	for _, args := range [][]string{{"plan", file}, {"plan", file, "--engine", "emu"}, {"plan", file, "--run"}, {"run", file, "--engine", "emu"}, {"deploy", file, "--dry-run"}} {
		if code, stdout, stderr := weft(t, &fake{}, args...); code != 2 || stdout != "" || stderr != file+want {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	write(t, file, strings.Replace(large, "leaves: 32", "leaves: 2", 1))
	if code, stdout, stderr := weft(t, &fake{}, "deploy", file, "--dry-run", "--runtime", "docker"); code != 1 || stdout != "" || !strings.Contains(stderr, "this machine cannot emulate") {
		t.Errorf("without an engine: code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	write(t, file, large)
	if code, stdout, _ := weft(t, &fake{}, "plan", file, "--engine", "sim"); code != 0 || !strings.Contains(stdout, "nothing is created") {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
	const note = "weft run simulates it: 250 hosts are more than the 128 that are emulated by default; --engine emu emulates them"
	if code, stdout, _ := weft(t, &fake{}, "plan", "quickstart", "--set", "topology.k=10"); code != 0 || !strings.Contains(stdout, note) {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
}

// A lab without a workload is for weft deploy: validate says so, and run names the missing section.
func TestLabWithoutWorkload(t *testing.T) {
	for _, c := range []struct{ more, at string }{{"", ":2:1"}, {"\nworkload: []\n", ":6:1"}} {
		file := filepath.Join(t.TempDir(), "lab.yaml")
		write(t, file, "# by hand\nweft: 1\nname: bare\ntopology: {kind: star, hosts: 4}\n"+c.more)
		code, stdout, _ := weft(t, &fake{}, "validate", file)
		if code != 0 || stdout != file+": ok, nothing to run: weft deploy, plan, graph and explain work, weft run needs a workload or clocks.for\n" {
			t.Errorf("validate: code %d, stdout %q", code, stdout)
		}
		if code, stdout, _ = weft(t, &fake{}, "validate", "--json", file); code != 0 || !strings.Contains(stdout, `"runs": 0`) || !strings.Contains(stdout, `"note": "nothing to run`) {
			t.Errorf("validate --json: code %d, stdout %q", code, stdout)
		}
		code, _, stderr := weft(t, &fake{}, "run", file)
		if code != 2 || !strings.HasPrefix(stderr, file+c.at+": workload: nothing to run; add a collective") || !strings.Contains(stderr, "weft deploy") {
			t.Errorf("run: code %d, stderr %q", code, stderr)
		}
	}
}

// validate reports every error of a lab at once, including those of several sections that only the
// network shows.
func TestEveryErrorIsReportedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"what the text shows": {
			"weft: 1\nname: Bad\nseed: x\ntopology: {kind: star, hosts: 4, speed: 1Gbps}\nqueues: {ecn: yes}\nclocks: {sync: ntp}\ntransport: {kind: dcqcn, roce: {qps: 0}}\n" +
				"workload: [{collective: allreduce, size: 4M}]\nfaults: [{at: soon, host: h9, kill: true}]\nmeasure: {queues: often}\nexpect: yes\nsweep: {seed: []}\nengine: {kind: real}\n",
			[]string{":2:7: name", ":3:7: seed", ":4:34: topology.speed", ":5:15: queues.ecn", ":6:16: clocks.sync", ":7:19: transport.kind", ":7:38: transport.roce.qps",
				":8:25: workload.0.collective", ":8:42: workload.0.size", ":9:15: faults.0.at", ":9:27: faults.0.host", ":10:19: measure.queues", ":11:9: expect", ":12:15: sweep.seed", ":13:16: engine.kind"},
		},
		"what the network shows": {
			"weft: 1\nname: bad\ntopology: {kind: star, hosts: 4}\ntransport: {kind: roce, roce: {min_rate: 200Gbps}}\nworkload: [{collective: permute, size: 4MB}]\n" +
				"faults:\n  - {at: 1ms, link: h0-h1, down: true}\n  - {at: 1ms, link: h0-h2, down: true}\nmeasure: {queue_events: switch0->h9}\nexpect: [nothing == 0]\n",
			[]string{":4:42: transport.roce.min_rate", ":7:21: faults.0.link", ":8:21: faults.1.link", ":9:25: measure.queue_events", ":10:10: expect.0"},
		},
		"what queues and their thresholds are": {
			"weft: 1\nname: bad\ntopology: {kind: custom, nodes: [{name: a}, {name: b}, {name: c}, {name: s, switch: true}], links: [\n" +
				"  {between: [a, s], queues: {buffer: 1KB/100Gbps}},\n  {between: [b, s], queues: {buffer: 2KB/100Gbps}},\n  {between: [c, s], queues: {ecn: {kmin: 30KB}}}]}\n" +
				"queues: {buffer: 20KB, ecn: {kmin: 50KB, kmax: 60KB}}\nworkload: [{collective: all-reduce, size: 4MB}]\n",
			[]string{":4:38: topology.links.0.queues.buffer", ":5:38: topology.links.1.queues.buffer", ":6:42: topology.links.2.queues.ecn.kmin"}, // not queues.ecn.kmin: those buffers would have to grow
		},
		"PFC that cannot be": {
			"weft: 1\nname: bad\ntopology: {kind: star, hosts: 4, link: {reorder: 1%}}\n" +
				"queues:\n  pfc: {\n    headroom: 1KB,\n    xoff: 100MB}\n  shared: {total: 1MB}\ntransport: {kind: roce, roce: {split: round-robin, qps: 4, rto_min: 1us}}\n" +
				"workload: [{collective: permute, chunk: off, size: 4MB}]\n",
			[]string{":6:15: queues.pfc.headroom", ":7:11: queues.pfc", ":7:11: queues.pfc.xoff", ":9:39: transport.roce.split", ":9:69: transport.roce.rto_min"},
		},
		"memory that is too small for anything": { // and no errors of PFC or thresholds that follow
			"weft: 1\nname: bad\ntopology: {kind: star, hosts: 4}\nqueues: {pfc: on, shared: {total: 1KB}}\ntransport: {kind: roce}\nworkload: [{collective: permute, size: 4MB}]\n",
			[]string{":4:35: queues.shared.total"},
		},
		"links that are too long": { // and no timeout below their round trip
			"weft: 1\nname: bad\ntopology: {kind: star, hosts: 4, link: {rate: 1kbps}}\nqueues: {buffer: 1KB/1kbps, ecn: {kmin: 1bdp, kmax: 1bdp}}\n" +
				"transport: {kind: roce, roce: {rto_min: 1us}}\nworkload: [{collective: permute, size: 4MB}]\nfaults: [{at: 1ms, link: h9-s, down: true}]\n",
			[]string{":3:47: topology.link", ":4:18: queues.buffer", ":7:26: faults.0.link"},
		},
		"clocks and items": {
			"weft: 1\nname: bad\ntopology: {kind: star, hosts: 64}\nclocks: {sync: ptp, ptp: {boundary: [h1, h2]}}\nworkload:\n" +
				"  - {collective: broadcast, ranks: {random: 2}, root: h0, size: 4MB}\n  - {collective: all-reduce, size: 4MB}\n  - {collective: reduce, ranks: {random: 2}, root: h1, size: 4MB}\n" +
				"faults: [{at: 1ms, clock: h1, skew: 900ppm}]\n",
			[]string{":4:38: clocks.ptp.boundary.0", ":4:42: clocks.ptp.boundary.1", ":6:18: workload.0", ":8:18: workload.2", ":9:37: faults.0.skew"},
		},
		"faults of clocks that are perfect": {
			"weft: 1\nname: bad\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 4MB}]\nfaults:\n  - {at: 1ms, clock: h0, step: 1us}\n  - {at: 1ms, clock: h1, step: 1us}\n" +
				"  - {at: 1ms, host: h2, kill: true}\n  - {at: 2ms, host: h2, pause: 1ms}\n  - {at: 4ms, host: h2, pause: 1ms}\n",
			[]string{":6:22: faults.0.clock", ":7:22: faults.1.clock", ":9:10: faults.3.at", ":10:10: faults.4.at"},
		},
		"what no emulation does": {
			"weft: 1\nname: bad\ntopology: {kind: star, hosts: 300}\nbackground: {load: 10%}\nworkload:\n  - {collective: all-reduce, type: bfloat16, size: 4KB}\n  - {collective: permute, size: 4KB}\n" +
				"  - {collective: all-reduce, type: bfloat16, size: 8KB}\nmeasure: {rates: 1ms, acks: true, queue_events: switch0->h0, from: 1us}\nengine: {kind: emu}\n",
			[]string{":4:20: background", ":6:5: workload.0.ranks", ":8:5: workload.2.ranks", ":9:18: measure.rates", ":9:29: measure.acks", ":9:49: measure.queue_events", ":9:68: measure.from"},
		},
		"a sweep that is wrong": {
			"weft: 1\nname: bad\ntopology: {kind: star, hosts: 4}\ntransport: {kind: pc4, roce: {qps: 2}}\nworkload: [{collective: permute, size: 4MB}]\nsweep: {transport.kind: pc4}\n",
			[]string{":6:25: sweep.transport.kind"}, // and not that no run uses roce
		},
	} {
		file := filepath.Join(t.TempDir(), "lab.yaml")
		write(t, file, c.text)
		_, _, stderr := weft(t, &fake{}, "validate", file)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		for _, want := range c.want {
			n := 0
			for _, line := range lines {
				if strings.HasPrefix(line, file+want+": ") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s: %s is there %d times, want once, in\n%s", name, want, n, stderr)
			}
		}
		if len(lines) != len(c.want) {
			t.Errorf("%s: %d errors, want %d:\n%s", name, len(lines), len(c.want), stderr)
		}
	}
}

// The DOT that weft graph prints is a network without a word about what it leaves out.
func TestGraphIsImported(t *testing.T) {
	for _, topology := range []string{"{kind: fat-tree, k: 4}", "{kind: star, hosts: 4}"} {
		dir := t.TempDir()
		lab := func(name, topology string) string {
			path := filepath.Join(dir, name)
			write(t, path, "weft: 1\nname: lab\ntopology: "+topology+"\nworkload: [{collective: all-reduce, size: 1MB}]\n")
			return path
		}
		_, dot, _ := weft(t, &fake{}, "graph", lab("a.yaml", topology), "--format", "dot")
		write(t, filepath.Join(dir, "net.dot"), dot)
		if code, out, words := weft(t, &fake{}, "validate", lab("b.yaml", "{import: net.dot}")); code != exitOK || words != "" {
			t.Errorf("%s: %s%s", topology, out, words)
		}
	}
}

// A job, a network or an algorithm in place of a lab says how a lab reads it. An algorithm is
// described, and times that a format cannot say are rounded on request.
func TestFilesOfOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"job.goal": "num_ranks 2\nrank 0 {\nl1: calc 1499\nl2: send 8b to 1\nl2 requires l1\n}\nrank 1 {\nl1: recv 8b from 0\n}\n",
		"net.dot":  "graph g { h0 -- s; h1 -- s; }\n",
		"clos.yml": "name: clos\ntopology:\n  nodes: {a: {kind: linux}}\n  links:\n    - endpoints: [a:eth1, s:eth1]\n",
		"flow.txt": "1\n0 1 3 0 1000 2\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, code, want string }{
		{"run DIR/job.goal", "2", "job.goal:1:1: a job in the format goal, not a lab; a lab beside it reads it: workload: [{trace: job.goal}]"},
		{"validate DIR/net.dot", "2", "net.dot:1:1: a network, not a lab; a lab beside it reads it: topology: {import: net.dot}"},
		{"run DIR/clos.yml", "2", "clos.yml:1:1: a network, not a lab; a lab beside it reads it: topology: {import: clos.yml}"},
		{"run DIR/flow.txt", "2", "workload: [{flows: flow.txt}]"},
		{"trace DIR/flow.txt", "0", "start times    1\n"},
		{"trace labs/inputs/files/ring.xml", "0", "an algorithm for all-reduce of 4 ranks, proved to be correct"},
		{"trace --json labs/inputs/files/ring.xml", "0", `"collective":"all-reduce"`},
		{"convert DIR/job.goal DIR/exact/", "2", "a computation of 1.499us: Chakra counts microseconds; --round rounds"},
		{"convert --round DIR/job.goal DIR/rounded/", "0", "job.goal:3: times of computations are rounded to multiples of 1us"},
	} {
		code, stdout, stderr := weft(t, &fake{}, wordsIn(dir, c.args)...)
		if fmt.Sprint(code) != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: code %d, %s%s; want %s", c.args, code, stdout, stderr, c.want)
		}
	}
}
