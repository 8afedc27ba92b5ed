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
	"weft/internal/umltest"
)

// A victim is a process that is killed, or two, and how many of its steps a sample leaves out between two kills.
type victim struct {
	name   string
	stride int
}

// A process killed at any step of deploying, running or destroying a lab leaves only what Clean knows and removes, in
// both runtimes. `make test-all` kills at every step.
func TestPrivKilledAtEveryStep(t *testing.T) {
	if umltest.Inside() {
		t.Skip("for the machine itself")
	}
	for runtime, victims := range map[string][]victim{
		"namespace": {{"deploy", 4}, {"supervise", 8}, {"destroy", 5}, {"run", 7}},
		"docker":    {{"deploy", 14}, {"supervise", 40}, {"destroy", 20}, {"run", 40}, {"reaper", 40}, {"both", 40}},
	} {
		for _, v := range victims {
			t.Run(runtime+"/"+v.name, func(t *testing.T) {
				in(t, runtime)
				killed(t, v)
			})
		}
	}
}

// The same with the kernel as the datapath, under User Mode Linux, where each step takes seconds.
func TestUMLKilledAtEveryStep(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	t.Setenv(datapathVar, "kernel")
	for _, v := range sample.Of(t, 1, victim{"deploy", 10}, victim{"supervise", 40}, victim{"destroy", 16}, victim{"run", 20}) {
		t.Run(v.name, func(t *testing.T) { killed(t, v) })
	}
}

// killed kills the victim at every stride-th of its steps, from a drawn one on, or at every step where all are wanted.
func killed(t *testing.T, v victim) {
	n := 1
	if sample.All() {
		v.stride = 1
	} else {
		n += sample.Rand(t).IntN(v.stride)
	}
	tried := 0
	for ; killedAt(t, v.name, n) && !t.Failed(); n += v.stride {
		tried++
	}
	if tried == 0 && n > 1 && !t.Failed() { // the drawn step is beyond the last
		if n = 1; killedAt(t, v.name, n) {
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

// killedAt deploys and destroys a lab, or runs it, has a victim killed at its n-th step, and cleans up. It says whether
// there was such a step.
func killedAt(t *testing.T, victim string, n int) bool {
	t.Helper()
	root := stateRoot(t)
	before := look(t)
	step := fmt.Sprintf("%s:%d", victim, n)
	does := "deploy"
	if victim == "run" {
		does = victim
	}
	watch := quiettest.Start()
	out, err := again(t, root, step, does, root, "fragile")
	if err != nil && strings.Contains(out, "links are not what the lab asks for") && watch.Disturbed() != nil {
		before.nothingLeft(t, root)
		t.Skipf("%s: links cannot be measured:\n%s", does, out) // with all before it as it should be
	}
	killed, at := err != nil, killedWhere(out)
	if does == victim && err != nil && !wasKilled(err) {
		t.Fatalf("%s: %v\n%s", does, err, out)
	}
	if err == nil && does == "deploy" {
		// The supervisor may be killed while it ends the lab: to whoever destroys that makes no difference.
		watch := steps(t, root)
		out, err = again(t, root, step, "destroy", root, "fragile")
		if err != nil && !wasKilled(err) {
			t.Fatalf("destroy: %v\n%s", err, out)
		}
		said := watch()
		killed, at = err != nil || said != "", killedWhere(out+said)
	}
	began := time.Now()
	swept, err := Clean(t.Context(), root, Options{})
	if err != nil {
		t.Errorf("clean: %v", err)
	}
	if killed {
		t.Logf("%s, killed at %q: clean %s", step, at, found(swept, time.Since(began)))
	}
	if victim == "destroy" && n == 1 && len(swept) == 1 && swept[0].What == "running" {
		if _, err := Down(t.Context(), root, "fragile", Options{}); err != nil { // nobody had said yet that it should go
			t.Error(err)
		}
	}
	before.nothingLeft(t, root)
	return killed
}

// found says in words what Clean did.
func found(swept []Swept, took time.Duration) string {
	if len(swept) == 0 {
		return "found nothing"
	}
	var all []string
	for _, s := range swept {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s: %s (%s)", s.Lab, s.What, s.Why), " ()"))
	}
	return fmt.Sprintf("did in %v: %s", took.Round(time.Millisecond), strings.Join(all, ", "))
}

// killedWhere is the step that fatal named in what a process wrote.
func killedWhere(text string) string {
	_, after, _ := strings.Cut(text, "killed: ")
	line, _, _ := strings.Cut(after, "\n")
	_, step, _ := strings.Cut(line, ": ")
	return step
}

// steps returns what reads what the supervisor wrote to its log since now, which is where it was killed if it was: from a
// copy that outlives the lab's folder.
func steps(t *testing.T, root string) func() string {
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

// A lab that is up when everything about it is killed is cleaned up, and one that is up and well is not touched.
func TestPrivCleanLeavesWhatIsUp(t *testing.T) {
	privileged(t)
	root := stateRoot(t)
	before := look(t)
	for _, name := range []string{"well", "crashed"} {
		if out, err := again(t, root, "", "deploy", root, name); err != nil {
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
	if err := awaitEnd(s.Supervisor, killTime); err != nil {
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
	before.nothingLeft(t, root)
}

// What only looks like Weft's is not touched: folders, files, processes, and links that lead elsewhere.
func TestPrivLookAlikesAreNotTouched(t *testing.T) {
	privileged(t)
	root := stateRoot(t)
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
	alike.Env = []string{markVar + "=" + id + "0", "NOT_" + markVar + "=" + id} // almost
	alike.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := alike.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = alike.Process.Kill(); _ = alike.Wait() }()

	// A journal that names what is not its lab's.
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
	if err != nil || len(swept) != 1 || !strings.Contains(swept[0].Why, "damaged") {
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
