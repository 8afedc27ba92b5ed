package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/privilege"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/results/store"
)

// nobody is the ordinary user that root becomes for these tests.
const nobody = 65534

// userWorkspace returns a workspace of an ordinary user: nobody's, or that of the user who runs the
// tests.
func userWorkspace(t *testing.T) (d *workspace, uid uint32) {
	t.Helper()
	testenv.NeedEmulation(t)
	if uid = uint32(os.Geteuid()); uid != 0 {
		return newWorkspace(t), uid
	}
	top, err := os.MkdirTemp("", "e2e-user-") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	d = &workspace{t: t, dir: filepath.Join(top, "work"), temp: filepath.Join(top, "temp"), state: filepath.Join(top,
		"work", "state")}
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{d.dir, d.temp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Skipf("root cannot give files away here: %v", err)
		}
	}
	return d, nobody
}

// startAs starts weft as a user, or skips the test where an ordinary user cannot emulate.
func (d *workspace) startAs(uid uint32, args ...string) *process {
	d.t.Helper()
	cmd := d.command(args...)
	home := filepath.Join(filepath.Dir(d.temp), "home") // where what was measured of the machine is kept
	if err := os.MkdirAll(home, 0o755); err != nil {
		d.t.Fatal(err)
	}
	if uid != uint32(os.Geteuid()) {
		if err := os.Chown(home, int(uid), int(uid)); err != nil {
			d.t.Fatal(err)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+home, "XDG_CACHE_HOME=")
	if uid != uint32(os.Geteuid()) {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	p := d.startCommand(cmd)
	if what := eventually(patience, func() string {
		if words := p.stderr.String(); strings.Contains(words, "\n") || !p.running() {
			return ""
		}
		return "nothing was said"
	}); what != "" {
		d.t.Fatal(what)
	}
	if words := p.stderr.String(); strings.Contains(words, "this machine cannot emulate") {
		d.t.Skip(words)
	}
	return p
}

// The same lab without any privilege. What is left belongs to the user.
func TestPrivOrdinaryUser(t *testing.T) {
	before := takeTraces(t)
	d, uid := userWorkspace(t)
	text, err := os.ReadFile(libraryLab(t, "smoke/star.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := d.startAs(uid, "run", d.writeLab("star.yaml", string(text)), "--engine", "emu", "--dilation", slow,
		"--json").wait().wantCode(0)
	dir, s := d.summary()
	wantDone(t, s)
	wantFidelity(t, s)
	if printed := r.summaries(); len(printed) != 1 || printed[0].Run != s.Run {
		t.Errorf("--json printed %s", r.stdout)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range append(files, dir, filepath.Dir(dir)) {
		var st unix.Stat_t
		if err := unix.Stat(f, &st); err != nil || st.Uid != uid {
			t.Errorf("%s belongs to user %d, want %d (%v)", f, st.Uid, uid, err)
		}
	}
	before.nothingLeft(t, nil, wait)
	d.checkClean("star.yaml", "runs")
}

// An ordinary user's run ends like any other, although two processes are the orchestrator.
func TestPrivOrdinaryUserInterrupted(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGKILL, -1}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			before := takeTraces(t)
			d, uid := userWorkspace(t)
			p := d.startAs(uid, "run", d.writeLab("long.yaml", long), "--engine", "emu", "--dilation", "1000")
			family := p.awaitMidRun(4, enough)
			sent := quiettest.Start()
			p.signal(c.signal)
			p.wait().wantCode(c.code)
			sent.AtMost(t, wait, "the end")
			before.nothingLeft(t, family, wait)
			if c.signal == syscall.SIGINT {
				d.wantPartial("interrupted", "")
			} else if m, err := store.ReadManifest(d.runs()[0]); err != nil || m.Status != "failed" ||
				m.Error != "the run was killed" {
				t.Errorf("%+v, %v", m, err)
			}
			d.checkClean("long.yaml", "runs")
		})
	}
}

// What doctor tells an ordinary user is what holds where that user's labs run.
func TestPrivDoctorOfAnOrdinaryUser(t *testing.T) {
	before := takeTraces(t)
	d, uid := userWorkspace(t)
	r := d.startAs(uid, "doctor", "--measure=false", "--json").wait().wantCode(0)
	var findings []struct{ Name, State, Detail string }
	if err := json.Unmarshal([]byte(r.stdout), &findings); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	for _, f := range findings {
		if f.Name == "namespaces" && f.State != "ok" {
			t.Skipf("no namespaces for ordinary users here: %s", f.Detail)
		}
		if strings.Contains(f.Detail, "not tried") {
			t.Errorf("%s: %s, although the user may make namespaces", f.Name, f.Detail)
		}
	}
	if len(findings) < 10 {
		t.Errorf("it found next to nothing:\n%s", r.stdout)
	}
	before.nothingLeft(t, nil, wait)
	d.checkClean()
}

// powerless is the first argument by which the test program knows that it is to be the helper that
// follows.
const powerless = "powerless"

// withoutCapabilities replaces this process by a program, its arguments, that has no capability and
// can get none.
func withoutCapabilities(args []string) (code int) {
	runtime.LockOSThread()
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		// the kernel has fewer
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			fmt.Fprintln(os.Stderr, "drop capabilities:", err)
			return helperFailed
		}
	}
	fmt.Fprintln(os.Stderr, args[0], unix.Exec(args[0], args, os.Environ()))
	return helperFailed
}

// Where nothing can be emulated, weft left to itself simulates, and weft told to emulate says why
// it cannot.
func TestAutomaticChoiceWithoutPower(t *testing.T) {
	run := func(engine string) (*workspace, result) {
		d := newWorkspace(t)
		cmd := d.command("run", libraryLab(t, "smoke/star.yaml"), "--engine", engine)
		if privilege.CheckNamespaces() == nil {
			cmd.Args = append([]string{"helper", powerless, weft}, cmd.Args[1:]...)
			cmd.Path = "/proc/self/exe"
		}
		r := d.startCommand(cmd).wait()
		if r.code == helperFailed {
			t.Skipf("this user can emulate and cannot be kept from it: %s", r.stderr)
		}
		return d, r
	}
	d, r := run("auto")
	r.wantCode(0).wantOnStderr("engine sim: this machine cannot emulate")
	if _, s := d.summary(); s.Engine != "sim" || s.Status != "ok" {
		t.Errorf("%+v", s)
	}
	d, r = run("emu")
	r.wantCode(1).wantOnStderr("this machine cannot emulate", "--engine sim")
	d.checkClean()
}

// Without root, a program with the set-user-ID bit reads lab time and gains nothing. One whose file
// may not be read cannot have lab time, and is named.
func TestPrivOrdinaryUsersProgramsOfOthers(t *testing.T) {
	needLabTime(t)
	d, uid := userWorkspace(t)
	testenv.NeedRoot(t) // to own the programs
	date := testenv.NeedProgram(t, "date")[0]
	text, err := os.ReadFile(date)
	if err != nil {
		t.Fatal(err)
	}
	name := d.writeLab("lab.yaml", "weft: 1\nname: lab\ntopology: {kind: star, hosts: 2, link: {rate: 1Gbps, delay: 10us}}\n"+
		"engine: {dilation: 10}\n")
	for file, c := range map[string]struct {
		mode uint32
		code int
		says string
	}{"set-user-id": {0o4755, 0, "h0: 2037\n"}, "unread": {0o711, 1, "unread: the program cannot be given lab time and was " +
		"killed: its file may be run but not read"}} {
		path := filepath.Join(d.dir, file)
		if err := os.WriteFile(path, text, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		d.startAs(uid, "run", name, "--hosts", "h0", "--", path, "-u", "+%Y").wait().wantCode(c.code).wantPrinted(c.says)
	}
}
