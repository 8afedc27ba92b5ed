package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"weft/orchestrator/runtime"
)

// deployLab deploys a lab until the end of the test. It returns the opened state directory and the
// supervisor's PID.
func deployLab(t *testing.T, name string) (r *Root, supervisor int) {
	t.Helper()
	root := newStatePath(t)
	if out, err := runSelf(t, root, "", "deploy", root, name); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := Down(context.WithoutCancel(t.Context()), root, name, Options{}); err != nil {
			t.Error(err)
		}
		r.Close()
	})
	s, err := stateOf(r, name)
	if err != nil {
		t.Fatal(err)
	}
	return r, s.Supervisor
}

// openLab is deployLab, and returns a handle in place of the state directory.
func openLab(t *testing.T, name string) (h *Handle, supervisor int) {
	t.Helper()
	r, supervisor := deployLab(t, name)
	h, err := Open(r, name)
	if err != nil {
		t.Fatal(err)
	}
	return h, supervisor
}

// A state directory that has folders of the user's, as a home directory does: no command takes them
// for labs, lists or removes them.
func TestFoldersOfTheUserStay(t *testing.T) {
	root := newStatePath(t)
	file, lock := filepath.Join(root, "music", "albums", "a"), filepath.Join(root, "yarn.lock")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600),
		os.WriteFile(lock, []byte("versions"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if labs, err := r.Labs(); err != nil || len(labs) > 0 {
		t.Errorf("the labs are %v, %v", labs, err)
	}
	if swept, err := cleanDeployments(t.Context(), root, Options{}); err != nil || len(swept) > 0 {
		t.Errorf("clean: %v, %v", swept, err)
	}
	if _, err := Down(t.Context(), root, "music", Options{}); err == nil || !strings.Contains(err.Error(), "no lab's folder") {
		t.Errorf("destroy: %v", err)
	}
	for _, kept := range []string{file, lock} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
}

// A supervisor that does not answer has not crashed: Clean leaves it, and errors name it and the
// command that ends it.
func TestPrivCleanKeepsStuckSupervisor(t *testing.T) {
	testenv.NeedNamespaces(t)
	r, pid := deployLab(t, "stuck")
	stop(t, pid)
	_, err := stateOf(r, "stuck")
	if want := fmt.Sprintf("lab stuck: its supervisor (process %d) does not answer", pid); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "weft destroy stuck") {
		t.Errorf("got %v", err)
	}
	swept, err := Clean(t.Context(), r.Path(), Options{})
	if err != nil || len(swept) != 1 || swept[0].What != "busy" {
		t.Errorf("%+v, %v", swept, err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := stateOf(r, "stuck"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A request that waits when the supervisor is killed says that the lab has crashed.
func TestPrivRequestsOfADyingSupervisor(t *testing.T) {
	testenv.NeedNamespaces(t)
	r, pid := deployLab(t, "dying")
	stop(t, pid)
	said := make(chan error)
	for range 2 {
		go func() {
			_, err := stateOf(r, "dying")
			said <- err
		}()
	}
	<-time.After(50 * time.Millisecond) // for the requests to wait; if they do not, their answer is the same
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-said; !errors.Is(err, ErrCrashed) || !strings.Contains(err.Error(), "weft clean") {
			t.Errorf("got %v", err)
		}
	}
	if swept, err := Clean(t.Context(), r.Path(), Options{}); err != nil || len(swept) != 1 || swept[0].What == "busy" {
		t.Errorf("%+v, %v", swept, err)
	}
}

// stop stops a process and waits until all its threads have stopped, one after the other.
func stop(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	quiettest.Await(t, func() error {
		if !stopped(t, pid) {
			return errors.New("the process does not stop")
		}
		return nil
	})
}

// stopped reports whether every thread of a process is stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("process %d: %v", pid, err)
	}
	return !slices.ContainsFunc(files, func(f string) bool {
		text, err := os.ReadFile(f)
		return err == nil && !strings.Contains(string(text), "State:\tT")
	})
}

// A lab that is up is no stray, whatever else is in its state directory. One whose journal is
// elsewhere is.
func TestPrivLabThatIsUpIsNotAStray(t *testing.T) {
	testenv.NeedNamespaces(t)
	r, pid := deployLab(t, "young")
	if s, ok := supervisorAt(pid); !ok || s.unreachable() {
		t.Errorf("process %d is taken for a stray, or not for a supervisor: %+v", pid, s)
	}
	if err := r.dir.Rename("young", "Elsewhere"); err != nil {
		t.Fatal(err)
	}
	swept, err := Clean(t.Context(), r.Path(), Options{})
	if err != nil || len(swept) == 0 || swept[0].What != "removed" || swept[0].Lab != "young" {
		t.Errorf("%+v, %v", swept, err)
	}
	if err := r.dir.RemoveAll("Elsewhere"); err != nil {
		t.Fatal(err)
	}
}

// Clean sees from another PID namespace that a lab is up.
func TestPrivCleanFromAnotherPIDNamespace(t *testing.T) {
	testenv.NeedNamespaces(t)
	testenv.NeedProgram(t, "unshare")
	r, pid := deployLab(t, "far")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-pf", "--mount-proc", program, "clean", r.Path())
	cmd.Env = append(os.Environ(), testRootVar+"="+r.Path())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "far: running") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("supervisor: %v", err)
	}
}

// A lab whose journal is damaged stays as it is, and the error says how to end it: without its
// folder it is a stray.
func TestPrivDamagedJournal(t *testing.T) {
	testenv.NeedNamespaces(t)
	before := takeSnapshot(t)
	r, pid := deployLab(t, "damaged")
	f, err := os.OpenFile(filepath.Join(r.Path(), "damaged", journalFile), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("garbage\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if swept, err := Clean(t.Context(), r.Path(), Options{}); err != nil || len(swept) != 1 || swept[0].What != "running" {
		t.Errorf("while it is up: %+v, %v", swept, err)
	}
	if _, err := Down(t.Context(), r.Path(), "damaged", Options{}); err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), "remove the lab's folder") {
		t.Errorf("destroy: %v", err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("supervisor: %v", err)
	}
	if err := r.dir.RemoveAll("damaged"); err != nil {
		t.Fatal(err)
	}
	cleanStray(t, r.Path(), "damaged")
	if err := r.Remove(); err != nil {
		t.Fatal(err)
	}
	before.checkUnchanged(t, r.Path())
}

// What a later version of Weft wrote into a journal is left alone and reported, and everything else
// is removed.
func TestPrivJournalOfAnotherVersion(t *testing.T) {
	testenv.NeedNamespaces(t)
	before := takeSnapshot(t)
	r, pid := deployLab(t, "later")
	dir := filepath.Join(r.Path(), "later")
	f, err := os.OpenFile(filepath.Join(dir, journalFile), os.O_APPEND|os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	next := strings.Count(string(text), `"do":`) + 1
	fmt.Fprintf(f, `{"seq":%d,"do":"make volume","kind":"volume","name":"precious"}`+"\n", next)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Kill(pid, syscall.SIGKILL), awaitEnd(pid, runtime.KillTime)); err != nil {
		t.Fatal(err)
	}
	const want = `"precious" is of the kind "volume"`
	if _, err := Down(t.Context(), r.Path(), "later", Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("destroy: %v", err)
	}
	if _, err := Clean(t.Context(), r.Path(), Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("clean: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != journalFile {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := errors.Join(r.dir.RemoveAll("later"), r.Remove()); err != nil {
		t.Fatal(err)
	}
	before.checkUnchanged(t, r.Path())
}

// An error that many operations share is reported once.
func TestRollbackReportsEachErrorOnce(t *testing.T) {
	var f failures
	for i := range 17 {
		f.add(fmt.Sprint("create container h", i), errors.New("no engine is there"))
	}
	f.add("write lab.yaml", errors.New("disk"))
	if got, want := f.err().Error(), "undo create container h0 (and 16 more): no engine is there\nundo write lab.yaml: disk"; got != want {
		t.Errorf("got %q", got)
	}
}

// State and Clean report a lab as broken if none of its nodes is alive. If all were killed by
// request, it waits for a restart.
func TestPrivLabWithoutNodesIsBroken(t *testing.T) {
	testenv.NeedNamespaces(t)
	h, _ := openLab(t, "deserted")
	r := h.root
	kill := func(i int) {
		t.Helper()
		s, err := h.State()
		if err == nil {
			err = syscall.Kill(s.Nodes[i].PID, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		if err := h.Node(Node{Node: fmt.Sprint("h", i), Action: NodeKill}); err != nil {
			t.Fatal(err)
		}
	}
	awaitDead(t, h, 0)
	if s := awaitDead(t, h, 1); s.Broken != "" {
		t.Errorf("nodes that were killed on purpose make it %q", s.Broken)
	}
	if err := h.Node(Node{Node: "h1", Action: NodeRestart}); err != nil {
		t.Fatal(err)
	}
	kill(1)
	if s := awaitDead(t, h, 1); !strings.HasPrefix(s.Broken, "no node is alive: h1 died") {
		t.Errorf("it is %q", s.Broken)
	}
	swept, err := Clean(t.Context(), r.Path(), Options{})
	if err != nil || len(swept) != 1 || swept[0].What != "broken" {
		t.Errorf("%+v, %v", swept, err)
	}
}

// Clean waits for a lock that a killed process has left to its child until the child's exec, and
// then removes what the process made.
func TestCleanWaitsForAnInheritedLock(t *testing.T) {
	root := newStatePath(t)
	r, err := OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.dir.Mkdir("heir", 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := r.Lock("heir", 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { lock.file.Close() }) // as the kernel does; the lock file stays
	swept, err := cleanDeployments(t.Context(), root, Options{})
	if err != nil || len(swept) != 1 || swept[0].What != "removed" {
		t.Errorf("%+v, %v", swept, err)
	}
	if files, _ := os.ReadDir(root); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
}
