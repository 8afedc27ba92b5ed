package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/results/store"
)

// wait is within what time a run must be over, and gone, once it was told to end or something in it
// died.
const wait = 3 * time.Second

// long is a lab that takes a minute and more in either engine: whoever runs it means to end it.
const long = `
weft: 1
name: long
topology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}
workload:
  - {collective: all-to-all, size: 256KB, repeat: 100000}
`

// enough is how many bytes a host of the long lab has sent when some of its messages are certainly
// done.
const enough = 1_000_000

// startLong starts the long lab in the emulation and returns when its workload runs.
func (d *workspace) startLong(more ...string) (*process, []member) {
	d.t.Helper()
	args := append([]string{"run", d.writeLab("long.yaml", long), "--engine", "emu", "--dilation", "1000"}, more...)
	p := d.start(args...)
	return p, p.awaitMidRun(4, enough)
}

// wantPartial fails the test unless the only run in the workspace kept its partial results.
func (d *workspace) wantPartial(status, why string) {
	d.t.Helper()
	dir, s := d.summary()
	if s.Status != status || !strings.Contains(s.Error, why) {
		d.t.Errorf("status %q, error %q; want %s, with %q", s.Status, s.Error, status, why)
	}
	if s.Flows.Count == 0 || s.Flows.Unfinished == s.Flows.Count || s.Flows.Bytes == 0 || s.LabTimeUS == 0 {
		d.t.Errorf("no flow was kept: %+v", s.Flows)
	}
	rows, err := store.Numbers(dir, store.FlowsFile, "bytes")
	short := slices.ContainsFunc(s.Warnings, func(w string) bool {
		return strings.HasPrefix(w, store.FlowsFile+" lacks rows") // a busy machine; who interrupts waits for the end
	})
	if n := int64(len(rows)); err != nil || n > s.Flows.Count || n == 0 || n < s.Flows.Count != short {
		d.t.Errorf("%s has %d rows of %d flows: %v; warnings: %q", store.FlowsFile, n, s.Flows.Count, err, s.Warnings)
	}
}

// findMember returns the process with this name.
func findMember(t *testing.T, family []member, name string) member {
	t.Helper()
	for _, m := range family {
		if m.name == name {
			return m
		}
	}
	t.Fatalf("no process is called %s: %v", name, family)
	return member{}
}

// Nobody is left to clean up after kill -9, and nothing is left to be cleaned up.
func TestPrivKilledOrchestratorLeavesNothing(t *testing.T) {
	testenv.NeedEmulation(t)
	before := takeTraces(t)
	d := newWorkspace(t)
	p, family := d.startLong()
	p.signal(syscall.SIGKILL)
	before.nothingLeft(t, family, wait)
	if r := p.wait(); r.signal != syscall.SIGKILL {
		t.Errorf("it ended with %+v", r)
	}
	d.checkClean("long.yaml", "runs")
	if dirs := d.runs(); len(dirs) != 1 {
		t.Errorf("run directories: %v", dirs)
	} else if m, err := store.ReadManifest(dirs[0]); err != nil || m.Status != "failed" ||
		m.Error != "the run was killed" {
		t.Errorf("nobody can tell what became of the run: %+v, %v", m, err)
	}
}

// So it is at any instant of the start.
func TestPrivKilledWhileStarting(t *testing.T) {
	testenv.NeedEmulation(t)
	before := takeTraces(t)
	for _, processes := range []int{1, 3, 5} {
		d := newWorkspace(t)
		p := d.start("run", d.writeLab("long.yaml", long), "--engine", "emu", "--dilation", "1000")
		var family []member
		if what := eventually(patience, func() string {
			if family = p.family(); len(family) < processes {
				return "too few processes"
			}
			return ""
		}); what != "" {
			t.Fatalf("%s: %v; weft said:\n%s", what, family, p.stderr.String())
		}
		p.signal(syscall.SIGKILL)
		p.wait()
		before.nothingLeft(t, family, wait)
		d.checkClean("long.yaml", "runs")
	}
}

// A signal that asks weft to end: everything is torn down, what was measured is kept, and the exit
// code says so.
func TestPrivInterrupted(t *testing.T) {
	testenv.NeedEmulation(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			before := takeTraces(t)
			d := newWorkspace(t)
			p, family := d.startLong()
			sent := quiettest.Start()
			p.signal(s)
			r := p.wait().wantCode(130)
			sent.AtMost(t, wait, "the end")
			before.nothingLeft(t, family, wait)
			r.wantOnStderr("torn down")
			d.wantPartial("interrupted", "")
			d.checkClean("long.yaml", "runs")
		})
	}
}

// sameRequest is longer than the time within which weft takes several signals for one request.
const sameRequest = 600 * time.Millisecond

// Whoever asks twice does not want to wait, here for a node that does not answer. Even then nothing
// is left.
func TestPrivInterruptedTwice(t *testing.T) {
	testenv.NeedEmulation(t)
	before := takeTraces(t)
	d := newWorkspace(t)
	p, family := d.startLong()
	if err := syscall.Kill(findMember(t, family, "weft-h1").pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGINT)
	<-time.After(sameRequest)
	sent := quiettest.Start()
	_ = p.cmd.Process.Signal(syscall.SIGINT) // it may have ended already
	r := p.wait()
	sent.AtMost(t, wait, "the end")
	if r.code != 130 && r.signal != syscall.SIGINT {
		t.Errorf("exit code %d, signal %v", r.code, r.signal)
	}
	kept, _ := filepath.Glob(filepath.Join(d.dir, "runs", "*", "*", store.SummaryFile))
	if len(kept) == 0 { // else the run had just ended
		r.wantOnStderr("stopped at once")
	}
	before.nothingLeft(t, family, wait)
	d.checkClean("long.yaml", "runs")
}

// Signals that arrive together are one request, from whichever parents: the run ends in order and
// leaves its summary.
func TestSignalsTogether(t *testing.T) {
	t.Parallel()
	self := func(p *process, s syscall.Signal) { _ = p.cmd.Process.Signal(s) }              // it may have ended
	group := func(p *process, s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) } // and its group
	pairs := []struct {
		name string
		send func(p *process, gap time.Duration)
	}{
		{"SIGTERM twice", func(p *process, gap time.Duration) {
			self(p, syscall.SIGTERM)
			<-time.After(gap)
			self(p, syscall.SIGTERM)
		}},
		{"SIGINT twice", func(p *process, gap time.Duration) {
			self(p, syscall.SIGINT)
			<-time.After(gap)
			self(p, syscall.SIGINT)
		}},
		{"SIGTERM and SIGINT", func(p *process, gap time.Duration) {
			self(p, syscall.SIGTERM)
			<-time.After(gap)
			self(p, syscall.SIGINT)
		}},
		{"as timeout does", func(p *process, gap time.Duration) {
			self(p, syscall.SIGTERM)
			<-time.After(gap)
			group(p, syscall.SIGTERM)
			self(p, syscall.SIGCONT)
			group(p, syscall.SIGCONT)
		}},
	}
	const tries = 52
	for i := range tries {
		pair, gap := pairs[i%len(pairs)], time.Duration(i)*50*time.Millisecond/(tries-1)
		d := newWorkspace(t)
		cmd := d.command("run", d.writeLab("long.yaml", long), "--engine", "sim")
		cmd.SysProcAttr.Setpgid = true
		p := d.startCommand(cmd)
		d.awaitRun(p)
		pair.send(p, gap)
		if r := p.wait(); r.code != 130 {
			t.Fatalf("%s, %v apart: exit code %d, signal %v: %s", pair.name, gap, r.code, r.signal, r.stderr)
		}
		if _, s := d.summary(); s.Status != "interrupted" {
			t.Errorf("%s, %v apart: status %s", pair.name, gap, s.Status)
		}
	}
}

// timeout(1) ends a run as Ctrl-C does.
func TestTimeout(t *testing.T) {
	t.Parallel()
	timeout, err := exec.LookPath("timeout")
	if err != nil {
		t.Skip("there is no timeout(1)")
	}
	var all []*process
	for range 6 {
		d := newWorkspace(t)
		cmd := d.command("run", d.writeLab("long.yaml", long), "--engine", "sim")
		cmd.Path, cmd.Args = timeout, append([]string{"timeout", "4", cmd.Path}, cmd.Args[1:]...)
		all = append(all, d.startCommand(cmd))
		defer func() {
			if _, s := d.summary(); s.Status != "interrupted" {
				t.Errorf("status %s", s.Status)
			}
		}()
	}
	for _, p := range all {
		p.wait().wantCode(124)
	}
}

// awaitRun returns when a run of the process has begun.
func (d *workspace) awaitRun(p *process) {
	d.t.Helper()
	if what := eventually(patience, func() string {
		if !p.running() || len(d.runs()) == 1 {
			return ""
		}
		return "no run began"
	}); what != "" || !p.running() {
		d.t.Fatalf("%s; weft said:\n%s%s", what, p.stdout.String(), p.stderr.String())
	}
}

// A simulation ends as an emulation does.
func TestInterruptedSimulation(t *testing.T) {
	d := newWorkspace(t)
	p := d.start("run", d.writeLab("long.yaml", long), "--engine", "sim", "--set", "topology.hosts=16", "--set",
		"measure.queues=100ns")
	if what := eventually(patience, func() string {
		if !p.running() {
			return ""
		}
		samples, _ := filepath.Glob(filepath.Join(d.dir, "runs", "*", "*", store.QueuesFile))
		if len(samples) == 1 {
			if info, err := os.Stat(samples[0]); err == nil && info.Size() > 64<<10 {
				return "" // a group of rows is on the disk
			}
		}
		return "no samples were written"
	}); what != "" || !p.running() {
		t.Fatalf("%s; weft said:\n%s%s", what, p.stdout.String(), p.stderr.String())
	}
	sent := quiettest.Start()
	p.signal(syscall.SIGINT)
	p.wait().wantCode(130)
	sent.AtMost(t, wait, "the end")
	d.wantPartial("interrupted", "")
}

// A process of the lab that dies ends the run at once, by name, with what was measured kept.
func TestPrivDeathInTheLab(t *testing.T) {
	testenv.NeedEmulation(t)
	for _, victim := range []string{"h2", "fabric"} {
		t.Run(victim, func(t *testing.T) {
			before := takeTraces(t)
			d := newWorkspace(t)
			p, family := d.startLong("--json")
			died := quiettest.Start()
			if err := syscall.Kill(findMember(t, family, "weft-"+victim).pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			r := p.wait().wantCode(1)
			died.AtMost(t, wait, "the end")
			before.nothingLeft(t, family, wait)
			r.wantOnStderr(victim + " died: signal: killed")
			d.wantPartial("failed", victim+" died")
			if s := r.summaries(); len(s) != 1 || s[0].Status != "failed" {
				t.Errorf("--json printed %s", r.stdout)
			}
			d.checkClean("long.yaml", "runs")
		})
	}
}

// A process that does not answer any more must not hold up the end.
func TestPrivInterruptedWithADeafNode(t *testing.T) {
	testenv.NeedEmulation(t)
	before := takeTraces(t)
	d := newWorkspace(t)
	p, family := d.startLong()
	if err := syscall.Kill(findMember(t, family, "weft-h1").pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	sent := quiettest.Start()
	p.signal(syscall.SIGINT)
	p.wait().wantCode(130)
	sent.AtMost(t, wait, "the end")
	before.nothingLeft(t, family, wait)
	d.wantPartial("interrupted", "")
}
