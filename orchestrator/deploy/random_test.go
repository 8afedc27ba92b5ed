package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	engine "github.com/docker/docker/client"

	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/orchestrator/runtime"
	"weft/orchestrator/uml/umltest"
)

// Variables with the number of kills in each runtime and the seed of the first one. See make
// killtest.
const (
	killsVar = "WEFT_KILLS"
	seedVar  = "WEFT_KILL_SEED"
)

// Whichever process is killed, at whichever instant of running, deploying and destroying a lab,
// Clean leaves nothing. The seed, which each failure names, determines the process and the instant;
// how far the lab has come at that instant depends on the machine.
func TestPrivKilledAtRandom(t *testing.T) {
	if umltest.Inside() {
		t.Skip("for the machine itself")
	}
	sampled := map[string]int{"namespace": 8, "docker": 2}
	inRuntimes(t, func(t *testing.T, where string) {
		kills := sample.Number(t, killsVar, sampled[where])
		seed := sample.Rand(t).Uint64()
		if n, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64); err == nil {
			seed = n
		}
		took := measureVerbs(t)
		t.Logf("undisturbed: %v", took)
		done, tried := 0, 0
		for ; done < kills && !t.Failed(); tried++ {
			k := drawKill(where, seed+uint64(tried))
			killed := k.carryOut(t, took[k.verb])
			if killed {
				done++
			}
			t.Logf("%s=%d: %s %s after %.0f %%: killed %v", seedVar, seed+uint64(tried), k.verb, k.victim, 100*k.at, killed)
		}
		t.Logf("%d kills in %d tries", done, tried)
	})
}

// A plannedKill is which process is killed, and when.
type plannedKill struct {
	where  string
	verb   string  // run, deploy, destroy
	victim string  // orchestrator, supervisor, node, fabric, reaper
	at     float64 // instant, as a share of the verb's undisturbed duration
}

var verbs = []string{"run", "deploy", "destroy"}

// drawKill returns the kill of a seed.
func drawKill(where string, seed uint64) plannedKill {
	r := rand.New(rand.NewPCG(seed, 0))
	k := plannedKill{where: where, verb: verbs[r.IntN(len(verbs))], at: r.Float64()}
	victims := []string{"orchestrator", "node", "fabric"}
	if k.verb != "run" {
		victims = append(victims, "supervisor")
	}
	if where == "docker" {
		victims = append(victims, "reaper")
	}
	k.victim = victims[r.IntN(len(victims))]
	return k
}

// measureVerbs returns the undisturbed duration of each verb.
func measureVerbs(t *testing.T) map[string]time.Duration {
	t.Helper()
	root := newStatePath(t)
	took := map[string]time.Duration{}
	for _, verb := range verbs {
		began := time.Now()
		if out, err := runSelf(t, root, "", verb, root, "fragile"); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, out)
		}
		took[verb] = time.Since(began)
	}
	return took
}

// carryOut runs the verb, kills the victim, and cleans up. It reports whether the victim existed
// before the verb ended.
func (k *plannedKill) carryOut(t *testing.T, measureVerbs time.Duration) (killed bool) {
	t.Helper()
	root := newStatePath(t)
	before := takeSnapshot(t)
	if k.verb == "destroy" {
		if out, err := runSelf(t, root, "", "deploy", root, "fragile"); err != nil {
			t.Fatalf("deploy: %v\n%s", err, out)
		}
	}
	var out bytes.Buffer
	cmd := exec.Command("/proc/self/exe", k.verb, root, "fragile")
	cmd.Env = append(os.Environ(), testRootVar+"="+root)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	wait, over := time.Duration(k.at*float64(measureVerbs)), time.After(quiettest.Patience)
	var err error
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(wait):
			wait = time.Millisecond // the victim is not there yet
			if !killed {
				pid := k.victimPID(t, cmd.Process.Pid, root)
				killed = pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
			}
		case <-over:
			_ = cmd.Process.Kill()
			t.Errorf("%+v: %s does not end\n%s", k, k.verb, out.String())
		}
	}
	if err != nil && !killed {
		t.Errorf("%+v: %v\n%s", k, err, out.String())
	}
	var swept []Swept
	quiettest.Await(t, func() error { // on a busy machine a supervisor may answer late
		var err error
		if swept, err = Clean(t.Context(), root, Options{}); err != nil {
			t.Errorf("%+v: clean: %v", k, err)
		}
		if busy := slices.IndexFunc(swept, func(s Swept) bool { return s.What == "busy" }); busy >= 0 {
			return errors.New(swept[busy].String())
		}
		return nil
	})
	if slices.ContainsFunc(swept, func(s Swept) bool { return s.What == "running" || s.What == "broken" }) { // killed before the journal had it
		if _, err := Down(t.Context(), root, "fragile", Options{}); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
	}
	before.checkUnchanged(t, root)
	if t.Failed() {
		t.Logf("%+v, killed %v: clean: %+v\n%s", k, killed, swept, out.String())
	}
	return killed
}

// victimPID returns the PID of the victim, or 0 if it does not exist.
func (k *plannedKill) victimPID(t *testing.T, orchestrator int, root string) int {
	t.Helper()
	owner := orchestrator // of nodes, fabric and reaper
	if k.verb != "run" {
		owner = 0
		for _, s := range supervisors("fragile") {
			if s.path == root {
				owner = s.pid
			}
		}
	}
	switch {
	case k.victim == "orchestrator":
		return orchestrator
	case k.victim == "supervisor" || owner == 0:
		return owner
	case k.victim == "reaper":
		return childRunning(owner, "reap")
	case k.where == "docker":
		return containerProcess(t, k.victim)
	}
	return childRunning(owner, k.victim)
}

// childRunning returns the PID of a child process that runs one of weft's commands, or 0.
func childRunning(parent int, command string) int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for pid := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(pid); err == nil {
				if args := runtime.Arguments(n); len(args) > 1 && args[1] == command {
					return n
				}
			}
		}
	}
	return 0
}

// containerProcess returns the PID of the first process in a container of the lab: the fabric's, or
// a node's.
func containerProcess(t *testing.T, command string) int {
	t.Helper()
	api, err := engine.NewClientWithOpts(engine.FromEnv, engine.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	all, err := api.ContainerList(context.Background(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "weft.lab=fragile"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if fabric := c.Labels["weft.node"] == "fabric"; fabric != (command == "fabric") {
			continue
		}
		if about, err := api.ContainerInspect(context.Background(), c.ID); err == nil && about.State != nil { // an error means that it has ended
			return about.State.Pid
		}
	}
	return 0
}
