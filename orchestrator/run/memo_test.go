package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/eventqueue"
	"weft/fabric"
	"weft/host"
	"weft/internal/state"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/record"
)

// unmeasured is what a lab does not measure in these tests.
const unmeasured = "measure: {queues: off, view: off}\n"

// everything measures all that there is, at intervals that are no divisors of anything.
const everything = "measure: {queues: 1703ns, rates: 3701ns, cwnd: true, acks: true, view: 907ns}\n"

// simulateTwice simulates a lab with and without skipping steps, checks that its data files are the
// same, and returns what became of its steps.
func simulateTwice(t *testing.T, text string, files map[string]string) *record.Memo {
	t.Helper()
	var dirs [2]string
	var all [2]*record.Summary
	for i, memo := range []string{"auto", "off"} {
		labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{
			Set: []string{"engine.memo=" + memo},
			Read: func(name string) ([]byte, error) {
				if text, ok := files[name]; ok {
					return []byte(text), nil
				}
				return nil, os.ErrNotExist
			},
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		x, err := experiment.Build(labs[0])
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		s, err := Run(t.Context(), x, Options{Engine: "sim", Root: t.TempDir(), Workers: 2})
		if err != nil {
			t.Fatalf("memo %s: %v\n%s", memo, err, text)
		}
		dirs[i], all[i] = s.Run, s
	}
	checkSameData(t, dirs)
	memo := all[0].Memo
	for i, s := range all {
		alike, checked := int64(0), int64(0)
		for k := range s.Collectives {
			c := &s.Collectives[k]
			alike, checked, c.Alike = alike+c.Alike, checked+c.Checked, 0
		}
		// what was skipped was checked once, in another step
		if skipped := i == 0 && memo != nil && memo.Skipped > 0; alike >= checked && checked > 0 || skipped != (alike > 0) {
			t.Errorf("memo %+v: of %d elements checked, %d are in skipped steps", memo, checked, alike)
		}
		s.Run, s.WallS, s.Memo = "", 0, nil
	}
	a, err1 := json.Marshal(all[0])
	b, err2 := json.Marshal(all[1])
	if err := errors.Join(err1, err2); err != nil || string(a) != string(b) {
		t.Errorf("summaries differ: %v\n%s\n%s", err, a, b)
	}
	if t.Failed() {
		t.Fatal(text)
	}
	return memo
}

// layers is a trace of two collectives in groups of four neighbours.
var layers = map[string]string{"layers.csv": `collective,algorithm,type,size,compute,group,stride
all-reduce,ring,bfloat16,400KB,30us,4,1
all-gather,ring,bfloat16,200KB,20us,4,1
`}

// Equal layers are executed until the state repeats itself, and at the end.
func TestEqualLayersAreSkipped(t *testing.T) {
	for _, kind := range []string{"pc4", "roce", "swift"} {
		for _, measure := range []string{unmeasured, "", everything} {
			m := simulateTwice(t, `
weft: 1
name: layers
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link: {rate: 100Gbps, delay: 1us}}
transport: {kind: `+kind+"}\n"+measure+"workload: [{trace: layers.csv, repeat: 20}]\n", layers)
			if m.Steps != 40 || m.Skipped < 24 || m.Why != "" {
				t.Errorf("%s with %q: %+v", kind, measure, m)
			}
		}
	}
}

// What is different in every step is never skipped, and the run says why.
func TestStepsThatAreNotSkipped(t *testing.T) {
	const repeated = "workload: [{collective: all-reduce, size: 100KB, compute: 20us, repeat: 9}]\n"
	lossy := strings.Replace(star, "delay: 1us", "delay: 1us, loss: 0.0001", 1)
	if m := simulateTwice(t, lossy+unmeasured+repeated, nil); !strings.Contains(m.Why, "random losses") {
		t.Errorf("loss: %+v", m)
	}
	for name, c := range map[string]struct{ set, why string }{
		"jitter":     {strings.Replace(repeated, "compute:", "jitter: 1us, compute:", 1), "jitter"},
		"background": {repeated + "background: {load: 0.1}", "background"},
		"transport":  {repeated + "transport: {kind: uec}", "not compared"},
		"spray":      {repeated + "transport: {kind: spray}", "the state of paths"},
	} {
		m := simulateTwice(t, star+unmeasured+c.set, nil)
		if m == nil || m.Skipped != 0 || !strings.Contains(m.Why, c.why) {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// Random labs of repeated steps have the same results with steps skipped, in every transport and
// on several networks.
func TestSkippingChangesNothing(t *testing.T) {
	skipped := 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 5))
		one := func(all ...string) string { return all[r.IntN(len(all))] }
		kind := one("pc4", "pc4", "roce", "swift", "strack", "hpcc", "uec", "spray", "ccm")
		topology := one("{kind: star, hosts: 8}", "{kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}",
			"{kind: fat-tree, k: 4}", "{kind: dumbbell, hosts: 4}")
		var rows strings.Builder
		rows.WriteString("collective,algorithm,type,size,compute,group,stride,repeat\n")
		for range 1 + r.IntN(2) {
			fmt.Fprintf(&rows, "%s,,bfloat16,%dKB,%dus,%s,%d\n",
				one("all-reduce", "all-gather", "reduce-scatter", "all-to-all"), 40*(1+r.IntN(8)), 10+r.IntN(50),
				one("4,1", "4,1", "4,1", "8,1"), 1+r.IntN(3))
		}
		measure := one(unmeasured, "", everything)
		text := fmt.Sprintf("weft: 1\nname: random\ntopology: %s\ntransport: {kind: %s}\n%sseed: %d\n"+
			"workload: [{trace: random.csv, ranks: 8, repeat: %d}]\n", topology, kind, measure, seed+1, 4+r.IntN(20))
		if m := simulateTwice(t, text, map[string]string{"random.csv": rows.String()}); m != nil {
			skipped += m.Skipped
		}
	}
	if skipped < 50 {
		t.Errorf("%d steps skipped in all", skipped)
	}
}

// The same holds for all small labs of the repository.
func TestSkippingChangesNoLab(t *testing.T) {
	all, err := filepath.Glob("../../labs/smoke/*.yaml")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "sweep:") || strings.Contains(string(text), "kind: emu") {
			continue
		}
		simulateTwice(t, string(text), nil)
	}
}

// Transports whose states are compared: a field of an undecided type would end that. What the
// others are is said by name (docs/performance.md).
func TestStatesOfTransports(t *testing.T) {
	for settings, compared := range map[string]bool{
		"pc4": true, "pc4, pc4: {recovery: selective-repeat}": true, "swift": true, "swift, swift: {bolt_compat: true}": true,
		"roce": true, "roce, roce: {mode: paper, recovery: selective-repeat}": true, "roce, roce: {repath: 2}": true,
		"strack": true, "spray": false, "hpcc": false, "ccm": false, "uec": false, "uec, uec: {cc: rccc, paths: ecmp}": false,
	} {
		x := build(t, star+"transport: {kind: "+settings+"}\nworkload: [{collective: all-reduce, size: 1MB, repeat: 2}]\n")
		h, err := host.New(x.Plans[0], nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := state.Check(h); (err == nil) != compared {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

// The same of networks.
func TestStatesOfNetworks(t *testing.T) {
	for settings, why := range map[string]string{
		"": "", "queues: {pfc: on}": "", "queues: {shared: {total: 10MB}}": "", "queues: {routing: adaptive}": "",
		"queues: {routing: spray}": "", "transport: {kind: ccm}": "coordination of switches",
	} {
		x := build(t, "weft: 1\nname: states\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}\n"+
			"workload: [{collective: all-reduce, size: 1MB, repeat: 2}]\n"+settings)
		n, err := fabric.New(x.Fabric, eventqueue.New(0), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = state.Check(n)
		var u *state.Uncompared
		if errors.As(err, &u) && u.Part != why || (err != nil) != (why != "") {
			t.Errorf("%s: %v, want %q", settings, err, why)
		}
	}
}
