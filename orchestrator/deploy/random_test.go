package deploy

import (
	"bytes"
	"context"
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
	"weft/internal/umltest"
	"weft/orchestrator/runtime"
)

// How many kills a runtime's test makes, and the seed of its first. See make killtest.
const (
	killsVar = "WEFT_KILLS"
	seedVar  = "WEFT_KILL_SEED"
)

// Whoever is killed, at whatever instant of running, deploying and destroying a lab, Clean leaves nothing. What is killed, and
// when, depends on the seed, which each failure names; how far things have come by then depends on the machine.
func TestPrivKilledAtRandom(t *testing.T) {
	if umltest.Inside() {
		t.Skip("for the machine itself")
	}
	for where, kills := range map[string]int{"namespace": 8, "docker": 2} {
		t.Run(where, func(t *testing.T) {
			in(t, where)
			if n, err := strconv.Atoi(os.Getenv(killsVar)); err == nil {
				kills = n
			}
			seed := sample.Rand(t).Uint64()
			if n, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64); err == nil {
				seed = n
			}
			took := typical(t)
			t.Logf("undisturbed: %v", took)
			done, tried := 0, 0
			for ; done < kills && !t.Failed(); tried++ {
				k := drawn(where, seed+uint64(tried))
				killed := k.carryOut(t, took[k.verb])
				if killed {
					done++
				}
				t.Logf("%s=%d: %s %s after %.0f %%: killed %v", seedVar, seed+uint64(tried), k.verb, k.victim, 100*k.at, killed)
			}
			t.Logf("%d kills in %d tries", done, tried)
		})
	}
}

// A blow is what is done to whom, and when.
type blow struct {
	where  string
	verb   string  // run, deploy, destroy
	victim string  // orchestrator, supervisor, node, fabric, reaper
	at     float64 // when, as a share of the time that the verb takes undisturbed
}

var verbs = []string{"run", "deploy", "destroy"}

// drawn is the blow of a seed.
func drawn(where string, seed uint64) blow {
	r := rand.New(rand.NewPCG(seed, 0))
	k := blow{where: where, verb: verbs[r.IntN(len(verbs))], at: r.Float64()}
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

// typical measures how long each verb takes.
func typical(t *testing.T) map[string]time.Duration {
	t.Helper()
	root := stateRoot(t)
	took := map[string]time.Duration{}
	for _, verb := range verbs {
		began := time.Now()
		if out, err := again(t, root, "", verb, root, "fragile"); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, out)
		}
		took[verb] = time.Since(began)
	}
	return took
}

// carryOut does the verb, kills the victim, and cleans up. It says whether the victim was there before the verb had ended.
func (k *blow) carryOut(t *testing.T, typical time.Duration) (killed bool) {
	t.Helper()
	root := stateRoot(t)
	before := look(t)
	if k.verb == "destroy" {
		if out, err := again(t, root, "", "deploy", root, "fragile"); err != nil {
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
	wait, over := time.Duration(k.at*float64(typical)), time.After(quiettest.Patience)
	var err error
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(wait):
			wait = time.Millisecond // the victim is not there yet
			if !killed {
				pid := k.find(t, cmd.Process.Pid, root)
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
	swept, err := Clean(t.Context(), root, Options{})
	if err != nil {
		t.Errorf("%+v: clean: %v", k, err)
	}
	if slices.ContainsFunc(swept, func(s Swept) bool { return s.What == "running" || s.What == "broken" }) { // nobody has said that it should go
		if _, err := Down(t.Context(), root, "fragile", Options{}); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
	}
	before.nothingLeft(t, root)
	if t.Failed() {
		t.Logf("%+v, killed %v: clean: %+v\n%s", k, killed, swept, out.String())
	}
	return killed
}

// find is the process that is to be killed; 0 if it is not there.
func (k *blow) find(t *testing.T, orchestrator int, root string) int {
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
		return child(owner, "reap")
	case k.where == "docker":
		return contained(t, k.victim)
	}
	return child(owner, k.victim)
}

// child is a child of a process that runs one of the program's commands.
func child(parent int, command string) int {
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

// contained is the first process of a container of the lab: the fabric's, or a node's.
func contained(t *testing.T, command string) int {
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
		if about, err := api.ContainerInspect(context.Background(), c.ID); err == nil && about.State != nil { // else it has ended
			return about.State.Pid
		}
	}
	return 0
}
