package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
)

// fakeSwarm answers what weft asks a manager of a swarm. Tasks are processes of this machine, in
// folders of their own, and get their secret as a file.
type fakeSwarm struct {
	t     *testing.T
	dir   string
	nodes int // machines

	mu       sync.Mutex
	services map[string]*fakeService
	secrets  map[string]swarm.SecretSpec
	most     int // secrets at once
}

type fakeService struct {
	spec  swarm.ServiceSpec
	began time.Time
	end   chan struct{}
	all   sync.WaitGroup
	tasks []swarm.Task
}

// newFakeSwarm starts a manager, which DOCKER_HOST names in the test.
func newFakeSwarm(t *testing.T) *fakeSwarm {
	t.Helper()
	f := &fakeSwarm{t: t, dir: t.TempDir(), nodes: 1, services: map[string]*fakeService{}, secrets: map[string]swarm.SecretSpec{}}
	socket := filepath.Join(f.dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(f)
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name := range f.services {
			f.remove(name)
		}
	})
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	return f
}

// ServeHTTP implements http.Handler.
func (f *fakeSwarm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // a client that was killed does not read it
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v"), "/") // behind the version
	_, name, _ := strings.Cut(path, "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	switch what := r.Method + " " + path; {
	case strings.HasSuffix(what, "_ping"):
		w.Header().Set("Api-Version", "1.41")
	case what == "GET nodes":
		var all []swarm.Node
		for k := range f.nodes {
			n := swarm.Node{ID: fmt.Sprint(k), Status: swarm.NodeStatus{State: swarm.NodeStateReady, Addr: "127.0.0.1"},
				Spec: swarm.NodeSpec{Availability: swarm.NodeAvailabilityActive}}
			n.Description.Hostname, n.Description.Resources.NanoCPUs = fmt.Sprint("m", k+1), 2e9
			all = append(all, n)
		}
		answer(all)
	case what == "POST secrets/create":
		var s swarm.SecretSpec
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			f.t.Error(err)
		}
		f.secrets[s.Name] = s
		f.most = max(f.most, len(f.secrets))
		answer(map[string]string{"ID": s.Name})
	case what == "GET secrets":
		all := []swarm.Secret{}
		for _, s := range f.secrets {
			all = append(all, swarm.Secret{ID: s.Name, Spec: s})
		}
		answer(all)
	case what == "DELETE secrets/"+name && f.secrets[name].Name != "":
		delete(f.secrets, name)
		w.WriteHeader(http.StatusNoContent)
	case what == "POST services/create":
		s := &fakeService{began: time.Now(), end: make(chan struct{})}
		if err := json.NewDecoder(r.Body).Decode(&s.spec); err != nil {
			f.t.Error(err)
		}
		f.services[s.spec.Name] = s
		f.start(s)
		answer(map[string]string{"ID": s.spec.Name})
	case what == "GET services":
		all := []swarm.Service{}
		for _, s := range f.services {
			all = append(all, swarm.Service{ID: s.spec.Name, Spec: s.spec, Meta: swarm.Meta{CreatedAt: s.began}})
		}
		answer(all)
	case what == "DELETE services/"+name && f.services[name] != nil:
		f.remove(name)
	case what == "GET tasks":
		for name, s := range f.services {
			if strings.Contains(r.URL.Query().Get("filters"), name) {
				answer(s.tasks)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		answer(map[string]string{"message": "no such service"})
	case strings.HasPrefix(what, "GET images/"): // it has every image
		answer(map[string]string{"Id": "sha256:12"})
	case what == "GET containers/json":
		answer([]any{})
	default:
		w.WriteHeader(http.StatusNotFound)
		answer(map[string]string{"message": "no such thing"})
	}
}

// start starts the tasks of a service. Those that fail are started again, at most three times.
func (f *fakeSwarm) start(s *fakeService) {
	c := s.spec.TaskTemplate.ContainerSpec
	var keys string
	for _, ref := range c.Secrets {
		keys = filepath.Join(f.dir, ref.SecretName)
		if err := os.WriteFile(keys, f.secrets[ref.SecretName].Data, 0o600); err != nil {
			f.t.Error(err)
		}
	}
	slots := make(chan struct{}, 2) // processors of the machine
	for k := range int(*s.spec.Mode.Replicated.Replicas) {
		t := swarm.Task{Slot: k + 1, NodeID: fmt.Sprint(k % f.nodes), Status: swarm.TaskStatus{State: swarm.TaskStatePending}}
		s.tasks = append(s.tasks, t)
		temp := filepath.Join(f.dir, fmt.Sprintf("%s.%d", s.spec.Name, k))
		if err := os.Mkdir(temp, 0o700); err != nil {
			f.t.Error(err)
		}
		s.all.Go(func() {
			tries := 4
			if s.spec.TaskTemplate.RestartPolicy.Condition == swarm.RestartPolicyConditionNone {
				tries = 1
			}
			for range tries {
				select {
				case <-s.end:
					return
				case slots <- struct{}{}:
				}
				err := f.task(s, k, temp, keys)
				<-slots
				if err == nil {
					return
				}
			}
		})
	}
}

// task runs a task to its end.
func (f *fakeSwarm) task(s *fakeService, k int, temp, keys string) error {
	c := s.spec.TaskTemplate.ContainerSpec
	var args []string
	for _, a := range c.Args {
		if keys != "" && a == c.Secrets[0].File.Name {
			a = keys
		}
		args = append(args, a)
	}
	cmd := exec.Command(weft, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	for _, v := range c.Env {
		if !strings.HasPrefix(v, "HOME=") {
			cmd.Env = append(cmd.Env, strings.ReplaceAll(v, "{{.Task.Slot}}", fmt.Sprint(k+1)))
		}
	}
	said := new(output)
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	set := func(state swarm.TaskState, why string) {
		s.tasks[k].Status.State, s.tasks[k].Status.Err = state, why
	}
	f.mu.Lock()
	set(swarm.TaskStateRunning, "")
	err := cmd.Start()
	f.mu.Unlock()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
		f.mu.Lock()
		defer f.mu.Unlock()
		if set(swarm.TaskStateComplete, ""); err != nil {
			set(swarm.TaskStateFailed, err.Error())
		}
	case <-s.end:
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // as an engine whose machine is busy
		<-ended
		err = nil
	}
	if err != nil {
		f.t.Logf("shard %d: %v: %s", k, err, said.String())
	}
	return err
}

// remove ends a service. It leaves the lock meanwhile, which its tasks take.
func (f *fakeSwarm) remove(name string) {
	s := f.services[name]
	delete(f.services, name)
	close(s.end)
	f.mu.Unlock()
	s.all.Wait()
	f.mu.Lock()
}
