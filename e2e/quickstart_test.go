package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/nodeimg/labclock"
	"weft/results/record"
	"weft/results/store"
)

// slow is a dilation at which the quickstart takes some seconds, on any machine that tests are run
// on.
const slow = "5000"

// needLabTime skips a test where programs cannot have lab time.
func needLabTime(t testing.TB) {
	t.Helper()
	testenv.NeedEmulation(t)
	if err := labclock.Available(); err != nil {
		t.Skip(err)
	}
}

// wantDone fails the test unless a run finished all work with correct data and, if weft vouches for
// its numbers, met the lab's expectations.
func wantDone(t testing.TB, s *record.Summary) {
	t.Helper()
	if s.Status != "ok" || !s.Verified || s.Flows.Unfinished != 0 || s.Flows.Count == 0 || s.Network.DataPackets == 0 {
		t.Errorf("%s: %+v", s.Lab, s)
	}
	for _, c := range s.Collectives {
		if c.Wrong != 0 || c.Checked == 0 || c.TimeUS <= 0 {
			t.Errorf("%s: %+v", s.Lab, c)
		}
	}
	if len(s.Expect) == 0 {
		t.Errorf("%s: nothing was expected", s.Lab)
	}
	for _, e := range s.Expect {
		if !e.Missed() {
			continue
		}
		say := t.Errorf
		if !trusted(s) {
			say = t.Logf
		}
		say("%s %v: %s: got %g (%s)", s.Lab, s.Point, e.That, e.Got, e.Note)
	}
}

// trusted reports whether weft vouches for a run. A busy machine may keep it from that.
func trusted(s *record.Summary) bool { return s.Fidelity == nil || s.Fidelity.Verdict == "ok" }

// strictExitCode returns the exit code of a run that requires fidelity: doubted (4 with --strict, 3
// with an expectation of the lab) unless weft vouches for it, else 0.
func strictExitCode(s *record.Summary, doubted int) int {
	if trusted(s) {
		return 0
	}
	return doubted
}

// wantFidelity fails the test unless an emulated run reports its fidelity. The verdict is logged.
func wantFidelity(t testing.TB, s *record.Summary) {
	t.Helper()
	f := s.Fidelity
	if s.Engine != "emu" || s.Runtime != "namespace" || s.Datapath != "fabric" || s.Dilation < 1 || f == nil {
		t.Fatalf("not an emulated run: %+v", s)
	}
	if !slices.Contains([]string{"ok", "degraded", "invalid"}, f.Verdict) || f.BaseRTTNS <= 0 || f.CPUMax <= 0 {
		t.Errorf("fidelity %+v", *f)
	}
	if (f.Verdict == "ok") != (len(f.Reasons) == 0) {
		t.Errorf("a verdict of %s for the reasons %q", f.Verdict, f.Reasons)
	}
	if f.UnorderedDrops != 0 {
		t.Errorf("%d packets were lost that the model did not drop", f.UnorderedDrops)
	}
	t.Logf("%s at dilation %g in %.1f s: %+v", s.Lab, s.Dilation, s.WallS, *f)
}

// What --json prints is what summary.json holds, with the fields of the documented interface.
func TestQuickstartSimulated(t *testing.T) {
	d := newWorkspace(t)
	r := d.run("run", libraryLab(t, "quickstart.yaml"), "--engine", "sim", "--json").wantCode(0)
	printed := r.summaries()
	dir, kept := d.summary()
	if len(printed) != 1 {
		t.Fatalf("%d summaries were printed:\n%s", len(printed), r.stdout)
	}
	if diff := cmp.Diff(kept, printed[0]); diff != "" {
		t.Errorf("--json differs from summary.json:\n%s", diff)
	}
	wantDone(t, kept)
	if kept.Engine != "sim" || kept.Dilation != 1 || kept.Fidelity != nil || kept.Seed != 1 ||
		kept.Transport != "pc4" || kept.Events == 0 {
		t.Errorf("%+v", kept)
	}
	if rel, err := filepath.Rel(d.dir, dir); err != nil || kept.Run != filepath.ToSlash(rel) {
		t.Errorf("the summary says it is in %s, it is in %s", kept.Run, rel)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"run", "lab", "engine", "dilation", "seed", "transport", "status", "verified", "flows", "collectives",
		"network", "clocks", "expect", "wall_s", "events",
	} {
		if _, ok := fields[name]; !ok {
			t.Errorf("--json has no field %s", name)
		}
	}
	r.wantOnStderr("engine sim: ")
	d.checkClean("runs")
}

// The same lab, seed and version give the same bytes, and the summaries differ in wall time only.
func TestSimulationIsReproducible(t *testing.T) {
	simulate := func() (files map[string]string, s *record.Summary) {
		d := newWorkspace(t)
		d.run("run", libraryLab(t, "quickstart.yaml"), "--engine", "sim", "--set", "measure.cwnd=true").wantCode(0)
		dir, s := d.summary()
		s.Run, s.WallS = "", 0
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		files = map[string]string{}
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[e.Name()] = string(content)
		}
		delete(files, store.SummaryFile)
		delete(files, store.ManifestFile) // the machine, and when
		delete(files, "report.html")      // which shows them
		return files, s
	}
	first, s1 := simulate()
	second, s2 := simulate()
	if diff := cmp.Diff(s1, s2); diff != "" {
		t.Errorf("summaries differ:\n%s", diff)
	}
	for _, name := range []string{store.LabFile, store.FlowsFile, store.CollectivesFile, store.QueuesFile,
		store.WindowsFile, store.RTTFile} {
		if len(first[name]) < 500 {
			t.Errorf("%s holds next to nothing: %q", name, first[name])
		}
	}
	if len(first) != len(second) {
		t.Errorf("%d files and %d", len(first), len(second))
	}
	for name, content := range first {
		if content != second[name] {
			t.Errorf("%s differs between two runs", name)
		}
	}
}

// Both engines do the whole workload and agree. With --strict the verdict decides the exit code.
func TestPrivQuickstartInBothEngines(t *testing.T) {
	testenv.NeedEmulation(t)
	// A processor that is gone for 300 ms is gone for 60 us of this lab, which few packets notice
	// and the slowest flow does.
	quiettest.Check(t, 4, func() error {
		sim, emu := quickstartInBothEngines(t)
		for _, q := range []struct {
			name     string
			sim, emu float64
		}{{"p50", sim.Flows.FCT.P50, emu.Flows.FCT.P50}, {"p99", sim.Flows.FCT.P99, emu.Flows.FCT.P99}} {
			t.Logf("FCT %s: simulated %.2f us, emulated %.2f us", q.name, q.sim, q.emu)
			if off := math.Abs(q.emu/q.sim - 1); trusted(emu) && off > 0.10 {
				return fmt.Errorf("FCT %s differs by %.1f %%, at most 10 %% at a verdict of ok", q.name, 100*off)
			}
		}
		return nil
	})
}

// quickstartInBothEngines runs the quickstart lab, checks all but its times, and returns what both
// engines say of it.
func quickstartInBothEngines(t *testing.T) (sim, emu *record.Summary) {
	t.Helper()
	before := takeTraces(t)
	d := newWorkspace(t)
	r := d.run("run", libraryLab(t, "quickstart.yaml"), "--engine", "both", "--dilation", slow, "--strict")
	dirs := d.runs()
	if len(dirs) != 2 {
		t.Fatalf("run directories: %v; weft said:\n%s%s", dirs, r.stdout, r.stderr)
	}
	sim, emu = summaryIn(t, dirs[0]), summaryIn(t, dirs[1])
	if sim.Engine != "sim" {
		sim, emu = emu, sim
	}
	wantDone(t, sim)
	wantDone(t, emu)
	wantFidelity(t, emu)
	r.wantCode(strictExitCode(emu, 4))
	if sim.Flows.Count != emu.Flows.Count || sim.Flows.Bytes != emu.Flows.Bytes {
		t.Errorf("flows: simulated %+v, emulated %+v", sim.Flows, emu.Flows)
	}
	for _, row := range []string{"flow completion, p50", "flow completion, p99", "round trip, p99", "queueing, p99",
		"difference"} {
		if !strings.Contains(r.stdout, row) {
			t.Errorf("the comparison has no %q:\n%s", row, r.stdout)
		}
	}
	before.nothingLeft(t, nil, wait)
	d.checkClean("runs")
	return sim, emu
}

// Left to itself, weft emulates where it can, at a dilation that it found out, and says so first.
func TestPrivAutomaticChoice(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	r := d.run("run", libraryLab(t, "smoke/star.yaml"), "--json").wantCode(0)
	if !strings.HasPrefix(r.stderr, "engine emu: this machine can emulate") || !strings.Contains(r.stderr, "dilation") {
		t.Errorf("the first words are\n%s", r.stderr)
	}
	_, s := d.summary()
	wantDone(t, s)
	wantFidelity(t, s)
	d.checkClean("runs")
}

// tiny is a network whose base round trip, 0.7 us at dilation 400, is a fraction of what any
// machine needs to wake a process, though it carries the packets.
const tiny = `weft: 1
name: tiny
topology: {kind: star, hosts: 2, link: {rate: 100Gbps, delay: 1ns}}
workload: [{collective: incast, ranks: [h1], root: h0, size: 4MB}]
`

// No machine keeps time to a few microseconds. The run is done and says that it is worth nothing.
func TestPrivStrictRefusesWhatCannotBeTrusted(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	r := d.run("run", d.writeLab("tiny.yaml", tiny), "--engine", "emu", "--dilation", "400", "--strict", "--json",
		"--junit", "report.xml").wantCode(4)
	_, s := d.summary()
	if s.Status != "ok" || !s.Verified || s.Fidelity == nil || s.Fidelity.Verdict == "ok" ||
		len(s.Fidelity.Reasons) == 0 {
		t.Errorf("%+v, fidelity %+v; weft said:\n%s", s, s.Fidelity, r.stderr)
	}
	report := d.junit("report.xml")
	if report.Failures == 0 {
		t.Errorf("the report has no failure: %+v", report)
	}
	d.checkClean("tiny.yaml", "runs", "report.xml")
}

// Labs do not see each other, although their hosts have the same names and addresses.
func TestPrivTwoAtOnce(t *testing.T) {
	testenv.NeedEmulation(t)
	before := takeTraces(t)
	d := newWorkspace(t)
	var all []*process
	for range 2 {
		all = append(all, d.start("run", libraryLab(t, "smoke/star.yaml"), "--engine", "emu", "--dilation", "20000"))
	}
	for _, p := range all {
		p.wait().wantCode(0)
	}
	dirs := d.runs()
	if len(dirs) != 2 {
		t.Errorf("run directories: %v", dirs)
	}
	for _, dir := range dirs {
		s := summaryIn(t, dir)
		wantDone(t, s)
		wantFidelity(t, s)
	}
	before.nothingLeft(t, nil, wait)
	d.checkClean("runs")
}
