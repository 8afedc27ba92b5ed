package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/testenv"
	"weft/orchestrator/uml"
	"weft/results/store"
)

// needUML skips the test where User Mode Linux cannot run.
func needUML(t *testing.T) {
	t.Helper()
	testenv.NeedProgram(t, "linux.uml")
	if _, err := uml.Find(t.Context()); err != nil {
		t.Skip(err)
	}
}

// Under User Mode Linux a run is what it is elsewhere: its directory, its reports and its exit code
// are the machine's.
func TestPrivUML(t *testing.T) {
	needUML(t)
	before := takeTraces(t)
	d := newWorkspace(t)
	d.writeLab("lab.yaml", `
weft: 1
name: pair
topology: {kind: star, hosts: 2, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: all-to-all, size: 64KB}]
expect: [verified == true, drops == 0, flows == 1]
`)
	// There are two flows, so that an expectation is missed.
	r := d.run("run", "lab.yaml", "--kernel", "uml", "--engine", "emu", "--dilation", "500000", "--json", "--junit",
		"report.xml").wantCode(3)
	all := r.summaries()
	if len(all) != 1 || all[0].Engine != "emu" || !all[0].Verified || all[0].Flows.Count != 2 ||
		len(all[0].Expect) != 3 {
		t.Fatalf("%s%s", r.stdout, r.stderr)
	}
	r.wantOnStderr("engine emu: asked for; datapath fabric, runtime namespace, dilation 500000")
	dir, s := d.summary()
	m, err := store.ReadManifest(dir)
	if err != nil || !strings.HasPrefix(m.Machine.Kernel, "uml ") || m.Machine.CPUs != 1 {
		t.Errorf("made on %+v, %v", m.Machine, err)
	}
	if rows, err := store.Numbers(dir, store.FlowsFile, "bytes"); err != nil || len(rows) != 2 {
		t.Errorf("%d rows of flows, %v", len(rows), err)
	}
	if text, err := os.ReadFile(filepath.Join(d.dir, "report.xml")); err != nil || !strings.Contains(string(text),
		"flows == 1") {
		t.Errorf("report.xml: %q, %v", text, err)
	}
	d.checkClean("lab.yaml", "runs", "report.xml")
	before.nothingLeft(t, nil, wait)
	t.Logf("%v, of which the run %v s", r.took.Round(time.Millisecond), s.WallS)
}

// Interrupted outside, a run ends inside, and what it has is kept.
func TestPrivUMLInterrupted(t *testing.T) {
	needUML(t)
	before := takeTraces(t)
	d := newWorkspace(t)
	p := d.start("run", d.writeLab("long.yaml", strings.Replace(long, "hosts: 4", "hosts: 2", 1)), "--kernel", "uml",
		"--engine", "emu", "--dilation", "200000")
	if what := eventually(patience, func() string {
		if len(d.runs()) == 0 {
			return "no run has begun: " + p.stderr.String()
		}
		return ""
	}); what != "" {
		t.Fatal(what)
	}
	p.signal(syscall.SIGTERM)
	p.wait().wantCode(130).wantOnStderr("everything was torn down")
	if _, s := d.summary(); s.Status != "interrupted" {
		t.Errorf("status %q, error %q", s.Status, s.Error)
	}
	before.nothingLeft(t, nil, wait)
}

// Without its kernel nothing is begun, and what to install is said.
func TestWithoutUML(t *testing.T) {
	d := newWorkspace(t)
	cmd := d.command("run", libraryLab(t, "quickstart.yaml"), "--kernel", "uml")
	cmd.Env = append(cmd.Env, "PATH="+d.temp)
	d.startCommand(cmd).wait().wantCode(1).wantOnStderr("apt-get install user-mode-linux")
	if dirs := d.runs(); len(dirs) > 0 {
		t.Errorf("runs %v", dirs)
	}
}
