package deploy

import (
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

	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
	"weft/orchestrator/uml/umltest"
)

// A victim is a process that is killed, or two, and the stride at which a sample of its steps is
// killed.
type victim struct {
	name   string
	stride int
}

// A process killed at any step of deploying, running or destroying a lab leaves only what Clean
// knows and removes, in both runtimes. `make test-all` kills at every step.
func TestPrivKilledAtEveryStep(t *testing.T) {
	if umltest.Inside() {
		t.Skip("for the machine itself")
	}
	victims := map[string][]victim{
		"namespace": {{"deploy", 4}, {"supervise", 8}, {"destroy", 5}, {"run", 7}},
		"docker":    {{"deploy", 14}, {"supervise", 40}, {"destroy", 20}, {"run", 40}, {"reaper", 40}, {"both", 40}},
	}
	inRuntimes(t, func(t *testing.T, runtime string) {
		for _, v := range victims[runtime] {
			t.Run(v.name, func(t *testing.T) { checkKilled(t, v) })
		}
	})
}

// The same with the kernel as the datapath, under User Mode Linux, where each step takes seconds.
func TestUMLKilledAtEveryStep(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	t.Setenv(datapathVar, "kernel")
	for _, v := range sample.Of(t, 1, victim{"deploy", 10}, victim{"supervise", 40}, victim{"destroy", 16}, victim{"run", 20}) {
		t.Run(v.name, func(t *testing.T) { checkKilled(t, v) })
	}
}

// checkKilled kills the victim at every stride-th step from a random one on, or at every step if
// the sample is complete.
func checkKilled(t *testing.T, v victim) {
	n := 1
	if sample.All() {
		v.stride = 1
	} else {
		n += sample.Rand(t).IntN(v.stride)
	}
	tried := 0
	for ; killAt(t, v.name, n) && !t.Failed(); n += v.stride {
		tried++
	}
	if tried == 0 && n > 1 && !t.Failed() { // the random step is beyond the last
		if n = 1; killAt(t, v.name, n) {
			tried++
		}
	}
	t.Logf("killed at %d steps, the last before step %d", tried, n)
	if t.Failed() {
		t.Fatalf("%s, step %d", v.name, n)
	}
	if tried == 0 || v.stride == 1 && n < 10 {
		t.Errorf("%s has only %d steps", v.name, n-1)
	}
}

// killAt deploys and destroys a lab, or runs it, kills the victim at its n-th step, and cleans up.
// It reports whether there was such a step.
func killAt(t *testing.T, victim string, n int) bool {
	t.Helper()
	root := newStatePath(t)
	before := takeSnapshot(t)
	step := fmt.Sprintf("%s:%d", victim, n)
	does := "deploy"
	if victim == "run" {
		does = victim
	}
	watch := quiettest.Start()
	out, err := runSelf(t, root, step, does, root, "fragile")
	if err != nil && strings.Contains(out, "links differ from the lab") && watch.Disturbed() != nil {
		before.checkUnchanged(t, root)
		t.Skipf("%s: links cannot be measured:\n%s", does, out)
	}
	killed, at := err != nil, killedStep(out)
	if does == victim && err != nil && !wasKilled(err) {
		t.Fatalf("%s: %v\n%s", does, err, out)
	}
	if err == nil && does == "deploy" {
		// The supervisor may be killed while it ends the lab; destroying succeeds all the same.
		watch := followLog(t, root)
		out, err = runSelf(t, root, step, "destroy", root, "fragile")
		if err != nil && !wasKilled(err) {
			t.Fatalf("destroy: %v\n%s", err, out)
		}
		said := watch()
		killed, at = err != nil || said != "", killedStep(out+said)
	}
	began := time.Now()
	swept, err := Clean(t.Context(), root, Options{})
	if err != nil {
		t.Errorf("clean: %v", err)
	}
	if killed {
		t.Logf("%s, killed at %q: clean %s", step, at, describeSwept(swept, time.Since(began)))
	}
	if victim == "destroy" && n == 1 && len(swept) == 1 && swept[0].What == "running" {
		if _, err := Down(t.Context(), root, "fragile", Options{}); err != nil { // killed before the journal had it
			t.Error(err)
		}
	}
	before.checkUnchanged(t, root)
	return killed
}

// describeSwept returns in words what Clean did.
func describeSwept(swept []Swept, took time.Duration) string {
	if len(swept) == 0 {
		return "found nothing"
	}
	var all []string
	for _, s := range swept {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s: %s (%s)", s.Lab, s.What, s.Why), " ()"))
	}
	return fmt.Sprintf("did in %v: %s", took.Round(time.Millisecond), strings.Join(all, ", "))
}

// killedStep returns the step that killAtStep wrote to a process's output.
func killedStep(text string) string {
	_, after, _ := strings.Cut(text, "killed: ")
	line, _, _ := strings.Cut(after, "\n")
	_, step, _ := strings.Cut(line, ": ")
	return step
}

// followLog returns a function that returns what the supervisor has written to its log since, such
// as the step at which it was killed. The log is kept open, since the lab's folder may go.
func followLog(t *testing.T, root string) func() string {
	t.Helper()
	log, err := os.Open(filepath.Join(root, "fragile", logFile))
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		defer log.Close()
		text, err := io.ReadAll(log)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	w, ok := exit.Sys().(syscall.WaitStatus)
	return ok && w.Signal() == syscall.SIGKILL
}

// Clean removes a lab whose supervisor was killed and leaves one that is up.
func TestPrivCleanKeepsRunningLabs(t *testing.T) {
	testenv.NeedNamespaces(t)
	root := newStatePath(t)
	before := takeSnapshot(t)
	for _, name := range []string{"well", "crashed"} {
		if out, err := runSelf(t, root, "", "deploy", root, name); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	r, err := OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := stateOf(r, "crashed")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := awaitEnd(s.Supervisor, runtime.KillTime); err != nil {
		t.Fatal(err)
	}
	swept, err := Clean(t.Context(), root, Options{})
	if err != nil || len(swept) != 2 || swept[0].What != "removed" || swept[0].Lab != "crashed" || swept[1].What != "running" {
		t.Errorf("%+v, %v", swept, err)
	}
	if _, err := stateOf(r, "well"); err != nil {
		t.Errorf("the lab that was well: %v", err)
	}
	if found, err := Down(t.Context(), root, "well", Options{}); err != nil || !found {
		t.Errorf("destroy: %v, %v", found, err)
	}
	if found, err := Down(t.Context(), root, "well", Options{}); err != nil || found {
		t.Errorf("destroy again: %v, %v", found, err)
	}
	before.checkUnchanged(t, root)
}

// Clean does not touch what only resembles Weft's: folders, files, processes, and links that lead
// elsewhere.
func TestPrivLookalikesAreNotTouched(t *testing.T) {
	testenv.NeedNamespaces(t)
	root := newStatePath(t)
	outside := filepath.Join(t.TempDir(), "precious")
	for _, dir := range []string{outside, filepath.Join(root, "Not-A-Lab"), filepath.Join(root, "lab.d")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	precious := filepath.Join(outside, "file")
	for _, f := range []string{precious, filepath.Join(root, "notes.txt"), filepath.Join(root, "Not-A-Lab", "file")} {
		if err := os.WriteFile(f, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(root, "linked")); err != nil {
		t.Fatal(err)
	}
	id := newID()
	alike := exec.Command("sleep", "60")
	alike.Args = []string{"weft-h0", "60"}
	alike.Env = []string{markVar + "=" + id + "0", "NOT_" + markVar + "=" + id} // nearly marked
	alike.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := alike.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = alike.Process.Kill(); _ = alike.Wait() }()

	// A journal that names files of others.
	evil := filepath.Join(root, "evil")
	if err := os.Mkdir(evil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(evil, "out")); err != nil {
		t.Fatal(err)
	}
	journal := fmt.Sprintf(`{"deployment":%q}
{"seq":1,"do":"a","kind":"file","name":"../../%s/precious/file"}
{"seq":2,"do":"b","kind":"file","name":%q}
{"seq":3,"do":"c","kind":"file","name":"out/file"}
{"seq":4,"do":"d","kind":"supervisor","name":"1"}
{"seq":5,"do":"e","kind":"container","name":"somebody-elses"}
`, id, filepath.Base(filepath.Dir(outside)), precious)
	if err := os.WriteFile(filepath.Join(evil, journalFile), []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	swept, err := Clean(t.Context(), root, Options{})
	if err == nil || len(swept) != 1 || swept[0].What != "failed" || !strings.Contains(swept[0].Why, "escapes") {
		t.Errorf("a journal that reaches out of its folder was believed: %+v, %v", swept, err)
	}
	for _, f := range []string{precious, filepath.Join(root, "notes.txt"), filepath.Join(root, "Not-A-Lab", "file"), filepath.Join(root, "lab.d"), filepath.Join(root, "linked")} {
		if _, err := os.Lstat(f); err != nil {
			t.Error(err)
		}
	}
	if err := alike.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process that looks alike: %v", err)
	}
}
