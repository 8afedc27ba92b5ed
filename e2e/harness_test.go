package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/orchestrator/deploy"
	"weft/results/record"
	"weft/results/store"
)

// patience is how long any run may take before it is taken to hang. Runs take seconds on a quiet
// machine; one that measures it and starts sixteen containers took two minutes beside other tests.
const patience = 5 * time.Minute

// workspace is the surroundings of weft in one test: a working directory with lab files and
// results, and a directory for temporary files.
type workspace struct {
	t    testing.TB
	dir  string
	temp string

	state string // where labs that stay up are kept unless the test says where: not among those of the machine's users
}

// newWorkspace returns an empty workspace that ends with the test.
func newWorkspace(t testing.TB) *workspace {
	t.Helper()
	return &workspace{t: t, dir: t.TempDir(), temp: t.TempDir(), state: filepath.Join(t.TempDir(), "state")}
}

// writeLab writes a lab file, which every user may read, whatever the umask, and returns its name.
func (d *workspace) writeLab(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o644), os.Chmod(path, 0o644)); err != nil {
		d.t.Fatal(err)
	}
	return name
}

// libraryLab returns the absolute path of a lab file of the repository.
func libraryLab(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(labs, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// command prepares weft to run in the workspace.
func (d *workspace) command(args ...string) *exec.Cmd {
	cmd := exec.Command(weft, args...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+d.temp, "XDG_CACHE_HOME="+cache, "WEFT_OUT=", "NO_COLOR=1")
	if os.Getenv(deploy.RootVar) == "" {
		cmd.Env = append(cmd.Env, deploy.RootVar+"="+d.state)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second // for whoever else holds its standard output
	return cmd
}

// run runs weft to its end.
func (d *workspace) run(args ...string) result {
	d.t.Helper()
	return d.startCommand(d.command(args...)).wait()
}

// start starts weft. The test waits for its end.
func (d *workspace) start(args ...string) *process {
	d.t.Helper()
	return d.startCommand(d.command(args...))
}

// startCommand starts a prepared command.
func (d *workspace) startCommand(cmd *exec.Cmd) *process {
	d.t.Helper()
	p, err := d.tryStart(cmd)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// tryStart starts a prepared command if it can be started.
func (d *workspace) tryStart(cmd *exec.Cmd) (*process, error) {
	p := &process{t: d.t, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	p.began = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := cmd.Wait()
		p.took = time.Since(p.began)
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			p.err = err
		}
		close(p.done)
	}()
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test failed
		<-p.done
	})
	return p, nil
}

// process is a weft that was started.
type process struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr output
	began          time.Time
	done           chan struct{} // closed when it has ended; then took and err are set
	took           time.Duration
	err            error
}

// signal sends a signal to weft alone.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%v: %v; weft said:\n%s", s, err, p.stderr.String())
	}
}

// wait waits for the end and returns the result.
func (p *process) wait() result {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
		p.t.Fatalf("weft %s: still running after %v; it said:\n%s%s", strings.Join(p.cmd.Args[1:], " "), patience,
			p.stdout.String(), p.stderr.String())
	}
	if p.err != nil {
		p.t.Error(p.err)
	}
	state := p.cmd.ProcessState
	r := result{t: p.t, args: p.cmd.Args[1:], code: state.ExitCode(), stdout: p.stdout.String(),
		stderr: p.stderr.String(), took: p.took}
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		r.signal = w.Signal()
	}
	return r
}

// awaitOutput waits until out, one of the outputs of p, contains a text.
func (p *process) awaitOutput(out *output, text string) {
	p.t.Helper()
	if wrong := eventually(patience, func() string {
		if strings.Contains(out.String(), text) {
			return ""
		}
		return fmt.Sprintf("weft %s has not written %q: %s", strings.Join(p.cmd.Args[1:], " "), text, p.stderr.String())
	}); wrong != "" {
		p.t.Fatal(wrong)
	}
}

// running reports whether weft has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// result is the output and exit code of a weft.
type result struct {
	t              testing.TB
	args           []string
	code           int // -1 when a signal ended it
	signal         syscall.Signal
	stdout, stderr string
	took           time.Duration
}

// wantCode fails the test, with all that weft printed, unless it ended with this exit code.
func (r result) wantCode(code int) result {
	r.t.Helper()
	if r.code != code {
		r.t.Fatalf("weft %s: exit code %d (signal %v), want %d; it said:\n%s%s", strings.Join(r.args, " "), r.code,
			r.signal, code, r.stdout, r.stderr)
	}
	return r
}

// wantOnStderr fails the test unless standard error contains every one of the texts.
func (r result) wantOnStderr(words ...string) {
	r.t.Helper()
	for _, w := range words {
		if !strings.Contains(r.stderr, w) {
			r.t.Errorf("weft %s: standard error does not say %q:\n%s", strings.Join(r.args, " "), w, r.stderr)
		}
	}
}

// wantPrinted fails the test unless standard output or standard error, which a person sees
// together, contains every one of the texts. The summary of a failed run says why it failed.
func (r result) wantPrinted(words ...string) {
	r.t.Helper()
	for _, w := range words {
		if !strings.Contains(r.stdout+r.stderr, w) {
			r.t.Errorf("weft %s does not say %q:\n%s%s", strings.Join(r.args, " "), w, r.stdout, r.stderr)
		}
	}
}

// foundNothing reports whether weft clean found nothing where it looked. It says where it may not
// look: at an engine that is somebody else's.
func (r result) foundNothing() bool {
	for line := range strings.Lines(r.stdout) {
		if !strings.Contains(line, "not looked at") {
			return false
		}
	}
	return true
}

// summaries reads the objects that `weft run --json` printed, and nothing but them.
func (r result) summaries() []*record.Summary {
	r.t.Helper()
	var all []*record.Summary
	in := json.NewDecoder(strings.NewReader(r.stdout))
	in.DisallowUnknownFields()
	for in.More() {
		s := new(record.Summary)
		if err := in.Decode(s); err != nil {
			r.t.Fatalf("standard output is not a summary: %v\n%s", err, r.stdout)
		}
		all = append(all, s)
	}
	return all
}

// runs lists the run directories of the workspace, by name.
func (d *workspace) runs() []string {
	d.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(d.dir, "runs", "*", "[0-9]*"))
	if err != nil {
		d.t.Fatal(err)
	}
	return dirs
}

// summary reads the only run of the workspace, and checks that the manifest agrees.
func (d *workspace) summary() (dir string, s *record.Summary) {
	d.t.Helper()
	dirs := d.runs()
	if len(dirs) != 1 {
		d.t.Fatalf("run directories: %v, want one", dirs)
	}
	return dirs[0], summaryIn(d.t, dirs[0])
}

// summaryIn reads the summary in a run directory.
func summaryIn(t testing.TB, dir string) *record.Summary {
	t.Helper()
	s, err := store.ReadSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Status != s.Status || m.Error != s.Error || m.Ended == "" {
		t.Errorf("the manifest says %q (%s), ended %q; the summary says %q (%s)", m.Status, m.Error, m.Ended,
			s.Status, s.Error)
	}
	return s
}

// output collects the output of a process, and can be read meanwhile.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (x *output) Write(p []byte) (int, error) { x.mu.Lock(); defer x.mu.Unlock(); return x.b.Write(p) }
func (x *output) String() string              { x.mu.Lock(); defer x.mu.Unlock(); return x.b.String() }

// eventually calls wrong until it returns "", for at most d, and returns its last result.
func eventually(d time.Duration, wrong func() string) string {
	deadline := time.After(d)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		what := wrong()
		if what == "" {
			return ""
		}
		select {
		case <-tick.C:
		case <-deadline:
			return what
		}
	}
}
