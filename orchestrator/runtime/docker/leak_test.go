package docker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"weft/internal/dockertest"
	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/nodeimg/image"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
)

// marked returns the processes with a mark in their arguments or environment.
func marked(mark string) (pids []string) {
	for _, what := range []string{"cmdline", "environ"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + what)
		for _, f := range files {
			if text, _ := os.ReadFile(f); bytes.Contains(text, []byte(mark)) {
				pids = append(pids, filepath.Base(filepath.Dir(f)))
			}
		}
	}
	return pids
}

// An orchestrator killed at any instant, while it starts a lab or later, leaves nothing: no
// process, no container, not even a created one, and no reaper.
func TestPrivKilledOrchestratorLeavesNothing(t *testing.T) {
	needEngine(t)
	self := buildNode(t)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	var names []string
	kills := []bool{true, true, false, false, false, false, false, false} // when all is up, or earlier
	for _, up := range sample.Of(t, 3, kills...) {
		name := fmt.Sprintf("killed-%d-%d", os.Getpid(), rng.Uint32())
		names = append(names, name)
		cmd := exec.Command("/proc/self/exe", "launch", self, name)
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if up {
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
				t.Errorf("got %q, %v", line, err)
			}
		} else {
			// Anywhere in the start-up: the instant is what the test varies.
			time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
		}
		had := len(containersOf(t, name))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		cmd.Wait()
		quiettest.Await(t, func() error {
			if left := append(containersOf(t, name), marked(name)...); len(left) > 0 {
				return fmt.Errorf("killed with %d containers; %v are left", had, left)
			}
			return nil
		})
		t.Logf("killed with %2d containers: all gone after %v", had, time.Since(killed).Round(10*time.Millisecond))
	}
	// The engine may still do what an orchestrator asked for before it was killed. The reapers stay
	// for that; what comes after them would stay.
	quiettest.Await(t, func() error {
		if left := marked("weft\x00reap\x00" + dockertest.Address()); len(left) > 0 {
			return fmt.Errorf("reapers %v are left", left)
		}
		return nil
	})
	for _, name := range names {
		checkNoContainers(t, name)
	}
}

// Containers that hang do not notice that their orchestrator is gone; the reaper removes them.
func TestPrivReaperRemovesHungContainers(t *testing.T) {
	c := launchUnclosed(t, runtimetest.Lab(2))
	defer c.Close() // says that there is no reaper to dismiss
	for i := range c.Nodes() {
		if err := c.Freeze(i, true); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	if err := c.reaper.stdin.Close(); err != nil { // as the kernel does for a process that ends
		t.Fatal(err)
	}
	quiettest.Await(t, func() error {
		if left := containersOf(t, "test"); len(left) > 0 {
			return fmt.Errorf("containers %v are left", left)
		}
		return nil
	})
	checkNoContainers(t, "test")
	t.Logf("gone after %v", time.Since(start).Round(time.Millisecond))
}

// Clean removes neither containers with a similar name nor those with only some of the labels.
func TestPrivLookalikesAreLeftAlone(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(1))
	api := c.engine.api
	full := c.labels("h0")
	without := func(label string) map[string]string {
		l := map[string]string{}
		for k, v := range full {
			if k != label {
				l[k] = v
			}
		}
		return l
	}
	with := func(label, value string) map[string]string {
		l := without("")
		l[label] = value
		return l
	}
	var ids []string
	for name, labels := range map[string]map[string]string{
		"weft-test-" + c.id[:6] + "-h9": nil,
		"weft-look-lab":                 without(labelLab),
		"weft-look-run":                 without(labelRun),
		"weft-look-node":                without(labelNode),
		"weft-look-owner":               without(labelOwner),
		"weft-look-owner2":              with(labelOwner, "0.1.x"),
		"weft-look-run2":                with(labelRun, "all"),
		"weft-look-run3":                with(labelRun, strings.ToUpper(c.id)+"G"),
	} {
		made, err := api.ContainerCreate(t.Context(), &container.Config{Image: c.image, Cmd: []string{"idle"}, Labels: labels}, &container.HostConfig{NetworkMode: "none"}, nil, nil, name)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.ID)
		t.Cleanup(func() {
			e, err := open(context.Background(), "")
			if err == nil {
				err = e.api.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true})
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err := Remove(t.Context(), "", name); err != nil {
			t.Error(err)
		}
	}
	// One lab of a process that is gone, and one of this process.
	dead := with(labelOwner, runtime.Owner{UID: 0, PID: os.Getpid(), Start: 1, Space: c.owner.Space, Boot: c.owner.Boot}.String())
	made, err := api.ContainerCreate(t.Context(), &container.Config{Image: c.image, Labels: dead}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "weft-dead")
	if err != nil {
		t.Fatal(err)
	}
	names, err := Clean(t.Context(), "", runtime.Owner.Dead)
	if err != nil || !slices.Equal(names, []string{"weft-dead"}) {
		t.Errorf("cleaned %v, %v", names, err)
	}
	if _, err := api.ContainerInspect(t.Context(), made.ID); err == nil {
		t.Error("what a dead orchestrator left is still there")
	}
	if err := c.Node(0).Conn.SendValue("echo", nil); err != nil {
		t.Errorf("Clean took a lab that is up: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer e.api.Close()
	for _, id := range ids {
		if _, err := e.api.ContainerInspect(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

// An image is reused if it has the same program, not because it has the same name.
func TestPrivImage(t *testing.T) {
	needEngine(t)
	e, err := open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer e.api.Close()
	p, err := image.Read(buildNode(t))
	if err != nil {
		t.Fatal(err)
	}
	first, err := image.Ensure(t.Context(), e.api, buildNode(t))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if again, err := image.Ensure(t.Context(), e.api, buildNode(t)); err != nil || again != first {
		t.Errorf("made %s, then %s (%v)", first, again, err)
	}
	t.Logf("found again in %v", time.Since(start).Round(time.Millisecond))
	forged := &image.Program{Layer: slices.Clone(p.Layer), Hash: p.Hash}
	forged.Layer[len(forged.Layer)/2] ^= 1
	if err := image.Import(t.Context(), e.api, forged.Layer, p.Ref(), "LABEL "+image.Label+"="+p.Hash); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := p.Find(t.Context(), e.api); ok || err != nil {
		t.Errorf("a forged image is found (%v)", err)
	}
	if again, err := image.Ensure(t.Context(), e.api, buildNode(t)); err != nil || again == "" {
		t.Errorf("made %s, %v", again, err)
	}
	if _, ok, err := p.Find(t.Context(), e.api); !ok || err != nil {
		t.Errorf("the image that was made is not found (%v)", err)
	}
}

// endEngine launches a lab on an engine of the test's own, ends the engine, and waits until the
// cluster reports that.
func endEngine(t *testing.T, end func(*dockertest.Engine)) (*dockertest.Engine, *Cluster) {
	t.Helper()
	needEngine(t)
	e := dockertest.Start(t)
	t.Setenv("DOCKER_HOST", e.Host)
	spec := runtimetest.Lab(3)
	spec.Self = buildNode(t)
	c, err := Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	end(e)
	for {
		select {
		case x := <-c.Exits():
			t.Log(x.Err)
			if x.Name == "docker" {
				return e, c.(*Cluster)
			}
		case <-time.After(quiettest.Patience):
			t.Fatal("nobody says that the engine is gone")
		}
	}
}

// If the engine is restarted, the lab ends with a clear error, and nothing is left.
func TestPrivEngineIsRestarted(t *testing.T) {
	e, c := endEngine(t, (*dockertest.Engine).Stop)
	closed := make(chan error, 1)
	start := time.Now()
	go func() { closed <- c.Close() }()
	// Close has to meet the missing engine before it is back. Nothing outside sees that it does;
	// where it comes too late, the test is easier than it should be, and passes.
	time.Sleep(200 * time.Millisecond)
	if err := e.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	t.Logf("closed in %v", time.Since(start).Round(time.Millisecond))
	checkNoContainers(t, "test")
}

// An engine that crashes leaves its containers running. Their processes are ended without it; the
// containers are removed when it is back, as the error says.
func TestPrivEngineCrashes(t *testing.T) {
	_, c := endEngine(t, (*dockertest.Engine).Kill)
	var pids []int
	for _, p := range c.Started() {
		pids = append(pids, p.PID)
	}
	start := time.Now()
	err := c.Close()
	if err == nil || !strings.Contains(err.Error(), "weft clean") {
		t.Errorf("closed with %v", err)
	}
	t.Logf("closed in %v: %v", time.Since(start).Round(time.Millisecond), err)
	for _, pid := range pids {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.HasPrefix(string(text), "weft-") {
			t.Errorf("process %d still runs", pid)
		}
	}
	if err := c.reaper.cmd.Process.Kill(); err != nil { // it would wait for an engine that is not coming back
		t.Error(err)
	}
}

var _ runtime.Cluster = (*Cluster)(nil)
var _ runtime.Restarter = (*Cluster)(nil)

// Clean returns once no orphaned reaper is left, and kills one that hangs.
func TestPrivCleanWaitsForReapers(t *testing.T) {
	needEngine(t)
	o, err := runtime.Self()
	if err != nil {
		t.Fatal(err)
	}
	o.Start++ // a process that is no more
	for _, hangs := range []bool{false, true} {
		r, err := startReaper(buildNode(t), dockertest.Address(), strings.Repeat("0", 16), o)
		if err != nil {
			t.Fatal(err)
		}
		if hangs {
			if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.stdin.Close(); err != nil { // as the kernel does for a process that ends
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() { over <- r.cmd.Wait() }()
		if _, err := Clean(t.Context(), "", runtime.Owner.Dead); err != nil {
			t.Error(err)
		}
		cleaned := quiettest.Start()
		select {
		case err := <-over:
			if hangs != (err != nil) {
				t.Errorf("the reaper ended with %v", err)
			}
			cleaned.AtMost(t, time.Second, "the end of the reaper, which Clean waits for,")
		case <-time.After(quiettest.Patience):
			t.Error("the reaper is left")
		}
	}
}
