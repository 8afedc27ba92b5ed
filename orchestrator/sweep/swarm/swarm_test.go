package swarm

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"

	"weft/internal/golden"
	"weft/orchestrator/machine"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
)

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newDir returns a submission of four points in two shards.
func newDir(t *testing.T) *shard.Dir {
	return &shard.Dir{Path: filepath.Join(t.TempDir(), "many", "sweep-20260101T000000-sim"), Sub: &sweep.Submission{
		Format: sweep.Format, ID: "sweep-20260101T000000-sim", Lab: "many", Kind: "sim", Points: make([]string, 4), Shards: 2,
		Began: newYear, Series: "ABCDEFGHIJKLMNOP"}}
}

// The service has a replica for each shard, the least privileges, and what was measured to survive
// the death of a machine.
func TestService(t *testing.T) {
	d := newDir(t)
	r := &sweep.Round{Number: 2, Image: "sha256:1234", Workers: 3, Memory: 1 << 30, Handle: serviceName(d.Sub, 2)}
	text, err := json.MarshalIndent(service(d.Sub, r, "/shared/runs/many/sweep-20260101T000000-sim", "1000:1000"), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/service.golden", string(text)+"\n")
	spec := service(d.Sub, r, "/shared/runs/many/sweep-20260101T000000-sim", "1000:1000").TaskTemplate.ContainerSpec
	if len(spec.Mounts) != 2 || spec.Mounts[0].Type != mount.TypeBind || spec.Mounts[0].Source != "/shared/runs" {
		t.Errorf("mounts %+v", spec.Mounts)
	}
}

// Shards without a shared directory are nobody, see no file of their machine, and get their keys as
// a file.
func TestCollecting(t *testing.T) {
	d := newDir(t)
	r := &sweep.Round{Number: 2, Image: "sha256:1234", Workers: 3, Handle: serviceName(d.Sub, 2), Collect: "auto"}
	spec := service(d.Sub, r, "/home/me/runs/many/sweep-20260101T000000-sim", "1000:1000")
	collecting(&spec, r, "10.0.0.1:7789", "id")
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/collecting.golden", string(text)+"\n")
}

// Agents run as an ordinary user without capabilities, get their secret as a file, and publish no
// port.
func TestAgents(t *testing.T) {
	p := &machine.Placement{Name: "weft-run-a", Count: 3, Meet: "10.0.0.1:7", Secret: "hush", Image: "sha256:1234"}
	text, err := json.MarshalIndent(agents(p, map[string]string{labelSweep: p.Name}, "id"), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/agents.golden", string(text)+"\n")
	if strings.Contains(string(text), "hush") {
		t.Error("the service shows the secret")
	}
}

func TestImagesAreNamedByContent(t *testing.T) {
	for ref, ok := range map[string]bool{"sha256:12": true, "host/weft@sha256:12": true, "weft": false, "weft:1.2": false} {
		if err := checkImage(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// task returns a task of a service.
func task(slot, age int, state swarm.TaskState, started bool) swarm.Task {
	t := swarm.Task{Slot: slot, NodeID: "n", Status: swarm.TaskStatus{State: state}}
	t.CreatedAt = newYear.Add(time.Duration(age) * time.Second)
	if started {
		t.Status.ContainerStatus = &swarm.ContainerStatus{ContainerID: "c"}
	}
	return t
}

// Of several tasks of a shard the newest counts, in whatever order they are listed.
func TestTasksOf(t *testing.T) {
	all := []swarm.Task{
		task(1, 1, swarm.TaskStateFailed, true), task(1, 3, swarm.TaskStateRunning, true), task(1, 2, swarm.TaskStateFailed, true),
		task(2, 1, swarm.TaskStateComplete, true), task(3, 1, swarm.TaskStateRejected, false),
		task(4, 1, swarm.TaskStateFailed, true), task(4, 2, swarm.TaskStateReady, false), task(9, 1, swarm.TaskStateRunning, true),
		task(0, 1, swarm.TaskStateRunning, true),
	}
	want := []sweep.Task{
		{Shard: 0, State: sweep.Running, Host: "m1", Tries: 3}, {Shard: 1, State: sweep.Done, Host: "m1", Tries: 1},
		{Shard: 2, State: sweep.Failed, Host: "m1", Error: ": no room"}, {Shard: 3, State: sweep.Waiting, Host: "m1", Tries: 1},
		{Shard: 4, State: sweep.Waiting},
	}
	for range 2 {
		if got := tasksOf(all, 5, func(string) string { return "m1" }, func(string) string { return ": no room" }); !slices.Equal(got, want) {
			t.Errorf("%+v", got)
		}
		slices.Reverse(all)
	}
}

// fakeManager serves the few requests that a scheduler makes, and returns those that change
// something.
func fakeManager(t *testing.T) (changes *[]string) {
	t.Helper()
	changes = new([]string)
	exists := false
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			*changes = append(*changes, r.Method+" "+r.URL.Path[strings.Index(r.URL.Path[1:], "/")+1:])
		}
		switch path := r.URL.Path; {
		case path == "/_ping":
			w.Header().Set("Api-Version", "1.41")
		case strings.HasSuffix(path, "/nodes"):
			n := swarm.Node{ID: "n", Status: swarm.NodeStatus{State: swarm.NodeStateReady},
				Spec: swarm.NodeSpec{Availability: swarm.NodeAvailabilityActive}}
			n.Description.Hostname, n.Description.Resources.NanoCPUs = "m1", 8e9
			answer(w, []swarm.Node{n})
		case strings.HasSuffix(path, "/services/create"):
			exists = true
			answer(w, map[string]string{"ID": "s"})
		case strings.HasSuffix(path, "/tasks") && exists && strings.Contains(r.URL.RawQuery, "weft-abcdefghijkl-1"):
			answer(w, []swarm.Task{task(1, 1, swarm.TaskStateRunning, true)})
		case strings.Contains(path, "/services/") && r.Method == http.MethodDelete && exists:
			exists = false
		case strings.HasSuffix(path, "/containers/json"):
			answer(w, []any{map[string]any{"Id": "c", "Names": []string{"/weft.1.x"}, "State": "exited",
				"Labels": map[string]string{labelSweep: "x", serviceLabel: "weft-gone"}}})
		case strings.HasSuffix(path, "/secrets"):
			answer(w, []swarm.Secret{})
		case strings.HasSuffix(path, "/services"):
			answer(w, []swarm.Service{})
		case strings.HasSuffix(path, "/containers/c"):
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusNotFound)
			answer(w, map[string]string{"message": "no such service"})
		}
	})
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(mux)
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	return changes
}

// A round is one service, which is listed and removed by its name. All of it succeeds twice.
func TestScheduler(t *testing.T) {
	changes := fakeManager(t)
	d, ctx := newDir(t), t.Context()
	s := Scheduler{}
	if err := s.Check(ctx, "sim"); err != nil {
		t.Error(err)
	}
	if err := s.Check(ctx, "emu"); err == nil {
		t.Error("a swarm emulates")
	}
	if n, err := s.Slots(ctx, "sim"); n != 8 || err != nil {
		t.Errorf("%d slots, %v", n, err)
	}
	r := sweep.Round{Number: 1, Image: "sha256:12"}
	if all, err := s.Tasks(ctx, d, sweep.Round{Number: 7}); len(all) > 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if err := s.Start(ctx, d, &r); err != nil {
		t.Fatal(err)
	}
	all, err := s.Tasks(ctx, d, r)
	if err != nil || len(all) != 2 || all[0].State != sweep.Running || all[0].Host != "m1" {
		t.Errorf("%+v, %v", all, err)
	}
	for range 2 {
		if err := s.End(ctx, d, r); err != nil {
			t.Error(err)
		}
	}
	if removed, unseen, err := Clean(ctx); err != nil || unseen != nil || strings.Join(removed, " ") != "weft.1.x" {
		t.Errorf("%v, %v", removed, err)
	}
	want := "POST /services/create, DELETE /services/weft-abcdefghijkl-1, DELETE /containers/c, DELETE /secrets/weft-abcdefghijkl-1, " +
		"DELETE /services/weft-abcdefghijkl-1, DELETE /containers/c, DELETE /secrets/weft-abcdefghijkl-1, DELETE /containers/c"
	if got := strings.Join(*changes, ", "); got != want {
		t.Errorf("changed %s\nwant %s", got, want)
	}
	bad := sweep.Round{Number: 1, Image: "weft:latest"}
	if err := s.Start(ctx, d, &bad); err == nil || !strings.Contains(err.Error(), "by its digest") {
		t.Error(err)
	}
}

// Reasons say what to do, and what weft said stands for its exit code.
func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		"No such image: sha256:12":                             "every machine needs that of this weft: weft image save",
		"no suitable node (insufficient resources on 3 nodes)": "waits for a free processor or memory: no suitable node",
		"exit": "exit",
	} {
		if got := reason(text); !strings.Contains(got, want) {
			t.Errorf("%q: %q; want %q", text, got, want)
		}
	}
	for _, c := range [][3]string{
		{"task: non-zero exit (1)", "no room", "no room"}, {"task: non-zero exit (137)", "no room", "task: non-zero exit (137): no room"},
		{"No such image", "", "No such image"}, {"", "no room", "no room"},
	} {
		if got := ended(c[0], c[1]); got != c[2] {
			t.Errorf("%q, %q: %q; want %q", c[0], c[1], got, c[2])
		}
	}
}

// Without an engine Clean says that it did not look, and a submission says what is missing.
func TestNoManager(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none"))
	if removed, unseen, err := Clean(context.Background()); len(removed) > 0 || unseen == nil || err != nil {
		t.Errorf("%v, %v, %v", removed, unseen, err)
	}
	if err := (Scheduler{}).Check(t.Context(), "sim"); err == nil || !strings.Contains(err.Error(), "docker swarm init") {
		t.Error(err)
	}
	for host, why := range map[string]string{"garbage": "expected unix:///PATH", "ssh://m1": "ssh -L"} {
		t.Setenv("DOCKER_HOST", host)
		if removed, unseen, err := Clean(context.Background()); len(removed) > 0 || unseen == nil || err != nil {
			t.Errorf("%v, %v, %v", removed, unseen, err)
		}
		if err := (Scheduler{}).Check(t.Context(), "sim"); err == nil || !strings.Contains(err.Error(), why) {
			t.Error(err)
		}
	}
}
