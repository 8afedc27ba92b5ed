package deploy

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/umltest"
)

// everyVar asks for every step; otherwise a sample is taken of those of a runtime that is slow. See make killtest.
const everyVar = "WEFT_KILLTEST"

// Whoever is killed at whatever step of deploying, running and destroying, in whatever runtime, what is left is known, and
// Clean removes it.
func TestPrivKilledAtEveryStep(t *testing.T) {
	if umltest.Inside() {
		t.Skip("for the machine itself")
	}
	sample := rand.New(rand.NewPCG(uint64(os.Getpid()), 0))  // another one each time
	for runtime, victims := range map[string]map[string]int{ // in steps of how many
		"namespace": {"deploy": 1, "supervise": 1, "destroy": 1, "run": 1},
		"docker":    {"deploy": 7, "supervise": 11, "destroy": 9, "run": 13, "reaper": 23, "both": 13},
	} {
		for victim, stride := range victims {
			t.Run(runtime+"/"+victim, func(t *testing.T) {
				in(t, runtime)
				killed(t, victim, 1+sample.IntN(stride), stride)
			})
		}
	}
}

// So it is where the kernel is the datapath, under User Mode Linux, which has all that this takes and where a step takes seconds.
func TestUMLKilledAtEveryStep(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	t.Setenv(datapathVar, "kernel")
	sample := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) // processes have the same numbers there each time
	for victim, stride := range map[string]int{"deploy": 5, "supervise": 13, "destroy": 8, "run": 9} {
		t.Run(victim, func(t *testing.T) { killed(t, victim, 1+sample.IntN(stride), stride) })
	}
}

// killed has a victim killed at one of so many steps, from the n-th on: at all of them where that is asked for.
func killed(t *testing.T, victim string, n, stride int) {
	if os.Getenv(everyVar) != "" {
		n, stride = 1, 1
	}
	tried := 0
	for ; killedAt(t, victim, n) && !t.Failed(); n += stride {
		tried++
	}
	t.Logf("killed at %d steps, the last before step %d", tried, n)
	if t.Failed() {
		t.Fatalf("%s, step %d", victim, n)
	}
	if tried == 0 || stride == 1 && n < 10 {
		t.Errorf("%s has only %d steps", victim, n-1)
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
	out, err := again(t, root, step, does, root, "fragile")
	if err != nil && strings.Contains(out, "this machine stalls") {
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
