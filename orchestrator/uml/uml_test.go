package uml

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/poller"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/units"
)

// outerVar makes this program run a shell script under User Mode Linux like weft, for tests that
// kill it.
const outerVar = "UML_TEST_OUTER"

// bareVar makes it do so without namespaces.
const bareVar = "UML_TEST_BARE"

func TestMain(m *testing.M) {
	if code, played := Role(os.Args); played {
		os.Exit(code)
	}
	if script := os.Getenv(outerVar); script != "" {
		os.Exit(runKernel(script))
	}
	os.Exit(m.Run())
}

// runKernel runs a script in a kernel, as a process of its own.
func runKernel(script string) int {
	k, err := Find(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	code, err := Run(context.Background(), Command{
		Kernel: k, Path: "/bin/sh", Args: []string{"sh", "-c", script}, Stdout: os.Stdout, Stderr: os.Stderr,
		Memory: testMemory,
		bare:   os.Getenv(bareVar) != "",
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	return code
}

const testMemory = 256 * units.MiB

// findKernel returns the kernel that is installed here, or skips the test.
func findKernel(t *testing.T) *Kernel {
	t.Helper()
	if quiettest.Race {
		t.Skip("the race detector maps more memory than User Mode Linux has")
	}
	k, err := Find(t.Context())
	if err != nil {
		t.Skip(err)
	}
	return k
}

// shellCommand returns a command that runs a script, and its outputs.
func shellCommand(t *testing.T, script string, args ...string) (c Command, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return Command{
		Kernel: findKernel(t), Path: "/bin/sh", Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Env:    os.Environ(),
		Stdout: stdout, Stderr: stderr, Memory: testMemory,
	}, stdout, stderr
}

// Arguments and variables may contain anything, both outputs stay separate, and the exit code is
// returned.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	odd := []string{"two words", "", `"quoted" 'and' \`, "line\nend", "\xff\x80 not UTF-8", "ünï", "--", "-x"}
	c, stdout, stderr := shellCommand(t, `printf '%s|' "$@" "$ODD" "$PWD"; echo words >&2; echo kept > file; exit 7`, odd...)
	c.Dir = dir
	c.Env = append(c.Env, "ODD=a=b \xfe\n;")
	code, err := Run(t.Context(), c)
	if code != 7 || err != nil {
		t.Fatalf("exit code %d, %v, want 7", code, err)
	}
	if want := strings.Join(odd, "|") + "|a=b \xfe\n;|" + dir + "|"; stdout.String() != want {
		t.Errorf("standard output\n%q, want\n%q", stdout, want)
	}
	if stderr.String() != "words\n" {
		t.Errorf("standard error %q", stderr)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "file")); string(b) != "kept\n" {
		t.Errorf("the file written inside has %q, %v", b, err)
	}
}

// A program finds a working machine.
func TestMachine(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	c, stdout, _ := shellCommand(t, `
		[ "$(id -u)" = 0 ] && [ $$ != 1 ] || echo user
		[ -e /dev/net/tun ] || echo TAP
		[ -d /sys/class/net/lo ] && [ "$(cat /sys/class/net/lo/flags)" = 0x9 ] || echo loopback
		for m in sch_netem sch_red sch_htb bridge veth vrf ifb; do [ -d /sys/module/$m ] || echo $m; done
		[ -z "$(ls -A /run/tmp)" ] && [ "$TMPDIR" = /run/tmp ] || echo temporary
		echo x > "$TMPDIR/x" || echo temporary
		[ -n "$(cat /sys/fs/cgroup/cgroup.controllers)" ] || echo control groups
		ls /dev/fd/ /dev/stderr > /dev/null || echo /dev/fd
		[ "$(uname -n)" = "$2" ] || echo name
		cd "$1"; trap 'exit 0' PIPE; : > a; [ "$(stat -c %s a)" = 0 ]; rm a
		date +%s`, t.TempDir(), host)
	began := time.Now()
	if code, err := Run(t.Context(), c); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	var now int64
	if _, err := fmt.Sscan(stdout.String(), &now); err != nil {
		t.Fatalf("missing:\n%s", stdout)
	}
	if at, ended := time.Unix(now, 0), time.Now(); at.Before(began.Add(-2*time.Second)) ||
		at.After(ended.Add(2*time.Second)) {
		t.Errorf("its clock said %v between %v and %v", at, began, ended)
	}
}

// No output is lost or changed, however much there is, including that of the program's last
// children.
func TestOutput(t *testing.T) {
	const size = 20 << 20
	c, _, stderr := shellCommand(t, `head -c 20971520 /dev/urandom > data; sha256sum < data >&2; cat data; rm data`)
	c.Dir = t.TempDir()
	sum := sha256.New()
	n := &countingWriter{to: sum}
	c.Stdout = n
	begin := time.Now()
	if code, err := Run(t.Context(), c); code != 0 || err != nil {
		t.Fatal(code, err, stderr)
	}
	if got, want := fmt.Sprintf("%x  -\n", sum.Sum(nil)), stderr.String(); got != want || n.n != size {
		t.Errorf("%d bytes of sum %swant %d of %s", n.n, got, size, want)
	}
	t.Logf("%d bytes with boot in %v", size, time.Since(begin))
}

// countingWriter counts the bytes that it passes on.
type countingWriter struct {
	to io.Writer
	n  int
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.n += len(p)
	return c.to.Write(p)
}

// A program killed by a signal differs from one that exits, and one that cannot start from one that
// fails.
func TestEnds(t *testing.T) {
	c, _, _ := shellCommand(t, `kill -SEGV $$`)
	if code, err := Run(t.Context(), c); code != 128+int(unix.SIGSEGV) || err != nil {
		t.Errorf("a crash: %d, %v", code, err)
	}
	c.Path = "/no/such/program"
	if code, err := Run(t.Context(), c); !errors.Is(err, errProgram) || !strings.Contains(err.Error(),
		"/no/such/program: no such file") {
		t.Errorf("what is not there: %d, %v", code, err)
	}
}

// An interrupted program ends by itself, and its output arrives. Its children do not delay it.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, _, stderr := shellCommand(t, `sleep 1000 & trap 'echo partial > result; exit 130' INT; echo ready; while :; do sleep 0.1; done`)
	c.Dir = t.TempDir()
	c.Stdout = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	code, err := Run(ctx, c)
	b, rerr := os.ReadFile(filepath.Join(c.Dir, "result"))
	if code != 130 || err != nil || string(b) != "partial\n" {
		t.Errorf("%d, %v, %q, %v\n%s", code, err, b, rerr, stderr)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Before the program runs, an interrupt ends everything at once.
func TestInterruptedBoot(t *testing.T) {
	why := errors.New("no more")
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 500 * time.Millisecond} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(after, func() { cancel(why) })
		c, _, _ := shellCommand(t, `sleep 1000`)
		begin := quiettest.Start()
		// 130: the program was already running, and the signal ended it
		if code, err := Run(ctx, c); !errors.Is(err, why) && (err != nil || code != 130) {
			t.Errorf("after %v: exit code %d, %v", after, code, err)
		}
		begin.AtMost(t, after+5*time.Second, "the end of an interrupted boot")
	}
}

// If the process outside is killed at any time, neither processes nor files are left.
func TestKilled(t *testing.T) {
	findKernel(t)
	for _, bare := range []string{"", "1"} {
		checkKilled(t, "", bare)
		checkKilled(t, "ready", bare)
	}
}

// checkKilled kills a process that runs a kernel, and checks that nothing is left.
func checkKilled(t *testing.T, after, bare string) {
	tmp := t.TempDir()
	before := sharedMemory(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), outerVar+"=echo ready; while :; do :; done", "TMPDIR="+tmp, "HOME="+tmp,
		bareVar+"="+bare)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var family []int
	if after == "ready" {
		if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
			t.Fatal(err)
		}
		family = descendants(cmd.Process.Pid)
	} else {
		await(t, "a kernel", func() bool {
			family = descendants(cmd.Process.Pid) // some end while the kernel starts, so look only once
			return len(family) > 1
		})
	}
	if len(family) < 2 {
		t.Errorf("after %q: only processes %v: no kernel?", after, family)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	await(t, "the end of all", func() bool {
		for _, pid := range family {
			if unix.Kill(pid, 0) == nil && !isZombie(pid) {
				return false
			}
		}
		return true
	})
	if left, err := os.ReadDir(tmp); len(left) > 0 || err != nil {
		t.Errorf("after %q: %v are left, %v", after, left, err)
	}
	if left := sharedMemory(t); left != before {
		t.Errorf("after %q: /dev/shm has %q, and had %q", after, left, before)
	}
}

// await waits until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	quiettest.Await(t, func() error {
		if !done() {
			return errors.New("no " + what)
		}
		return nil
	})
}

// descendants lists all descendants of a process.
func descendants(pid int) []int {
	var all []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range tasks {
		text, _ := os.ReadFile(f)
		for _, child := range strings.Fields(string(text)) {
			var c int
			fmt.Sscan(child, &c)
			all = append(append(all, c), descendants(c)...)
		}
	}
	return all
}

// isZombie reports whether a process has ended and waits for its parent.
func isZombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// sharedMemory lists the files of /dev/shm.
func sharedMemory(t *testing.T) string {
	files, err := filepath.Glob("/dev/shm/vm_file*")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(files, " ")
}

// fakeKernel returns a program that pretends to be a kernel.
func fakeKernel(t *testing.T, script string) *Kernel {
	path := filepath.Join(t.TempDir(), "linux.uml")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Kernel{Path: path, Release: "0", Modules: ""}
}

// A kernel that does not boot ends with an error that has its last words.
func TestUnbootable(t *testing.T) {
	for _, k := range []struct{ script, says, last string }{
		{"echo Kernel panic: no root; exit 3", "ended before it had booted (exit status 3)", "Kernel panic: no root"},
		{"echo Waiting for root; echo trouble >&2; sleep 1000 & sleep 1000", "has not booted within 2s",
			"Waiting for root\ntrouble"},
		{"echo 'tty says garbage' >&3; sleep 1000", "something other than frames", ""},
		{"yes | head -c 100000", "exit status 0", "y\ny"},
	} {
		c := Command{Kernel: fakeKernel(t, k.script), Path: "/bin/true", Memory: testMemory, Boot: 10 * time.Second}
		if strings.Contains(k.says, "2s") {
			c.Boot = 2 * time.Second
		}
		begin := quiettest.Start()
		_, err := Run(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), k.says) || !strings.Contains(err.Error(), k.last) ||
			len(err.Error()) > 2*tailSize {
			t.Errorf("%s: %v", k.script, err)
		}
		begin.AtMost(t, 8*time.Second, k.script)
	}
}

// A kernel that hangs or dies under the program ends with an error.
func TestPanics(t *testing.T) {
	c, _, _ := shellCommand(t, `echo c > /proc/sysrq-trigger; sleep 1000`)
	if code, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "sysrq triggered crash") {
		t.Errorf("%d, %v", code, err)
	}
}

func TestFind(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if s := Offer(t.Context()); !strings.Contains(s, "once that is installed: sudo apt-get install user-mode-linux") {
		t.Error(s)
	}
	if _, err := Find(t.Context()); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(),
		"apt-get install user-mode-linux") {
		t.Error(err)
	}
	for script, says := range map[string]string{
		"echo 0.0.1-none":   "no modules of User Mode Linux 0.0.1-none here",
		"echo ../../etc":    "is not a kernel release",
		"exit 4":            "--version: exit status 4",
		"printf ''":         "is not a kernel release",
		"echo one; echo tw": "is not a kernel release",
	} {
		if _, err := At(t.Context(), fakeKernel(t, script).Path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", script, err, says)
		}
	}
}

// The kernel runs without modules, and names those that it should have.
func TestModulesGone(t *testing.T) {
	c, _, _ := shellCommand(t, "exit 0")
	k := *c.Kernel
	k.Modules = t.TempDir()
	c.Kernel = &k
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "modules.dep: no such file") {
		t.Error(err)
	}
	if err := os.WriteFile(k.Modules+"/modules.dep", []byte("kernel/tun.ko: kernel/need.ko\nkernel/need.ko:\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "load module kernel/need.ko: open") {
		t.Error(err)
	}
}

// Everything works without namespaces.
func TestUnisolated(t *testing.T) {
	c, stdout, _ := shellCommand(t, `echo here; sleep 1000 & exit 5`)
	c.bare = true
	code, err := Run(t.Context(), c)
	if code != 5 || err != nil || stdout.String() != "here\n" {
		t.Errorf("%d, %v, %q", code, err, stdout)
	}
}

// Everything works for a user without privileges, with namespaces and without, for a program whose
// path has a space and a byte that the kernel treats as one.
func TestOrdinaryUser(t *testing.T) {
	findKernel(t)
	testenv.NeedRoot(t) // for an ordinary user, all tests here are an ordinary user's
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	const odd = "/voilà, a space"
	dir, err := os.MkdirTemp("", "uml-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.WriteFile(dir+odd, self, 0o755), os.Chmod(dir+odd, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir + odd)
	cmd.Dir = dir
	cmd.Env = []string{outerVar + "=id -u; touch mine && cat /etc/shadow; touch /etc/mine; chown 0 mine; exit 9",
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 9 || !bytes.HasPrefix(out, []byte("0\n")) ||
		bytes.Contains(out, []byte("root:")) {
		t.Errorf("%v: %s", err, out)
	}
	var s unix.Stat_t
	if err := unix.Stat(dir+"/mine", &s); err != nil || s.Uid != 65534 {
		t.Errorf("its file is user %d's, %v", s.Uid, err)
	}
	if _, err := os.Stat("/etc/mine"); err == nil {
		t.Error("it wrote what it may not")
	}
}

// The kernel and all that it starts run before ordinary programs, if the user is permitted to raise
// priorities.
func TestGoesFirst(t *testing.T) {
	c, _, _ := shellCommand(t, "true")
	m, err := start(&c, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := m.boot(t.Context(), bootTime); err != nil {
		t.Fatal(err)
	}
	policy := func(pid int) uint32 {
		a, err := unix.SchedGetAttr(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.Policy
	}
	may := &exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "10"}}
	if err := may.Start(); err != nil {
		t.Fatal(err)
	}
	defer may.Wait()
	defer may.Process.Kill()
	if err := poller.Favour(may.Process.Pid); err != nil {
		t.Skip(err)
	}
	kernels := childrenOf(m.cmd.Process.Pid)
	if len(kernels) != 1 || policy(kernels[0]) != unix.SCHED_RR {
		t.Fatalf("the stage's children: %v", kernels)
	}
	var on unix.CPUSet
	if err := unix.SchedGetaffinity(kernels[0], &on); err != nil || on.Count() != 1 {
		t.Errorf("it runs on %d processors, %v", on.Count(), err)
	}
	for _, pid := range childrenOf(kernels[0]) {
		if policy(pid) != unix.SCHED_RR {
			t.Errorf("a process of the kernel's has policy %d", policy(pid))
		}
	}
}
