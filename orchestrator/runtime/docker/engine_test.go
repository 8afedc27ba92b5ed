package docker

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weft/internal/dockertest"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
)

// Each failure to use an engine is explained in one sentence that says what to do.
func TestOpenExplainsFailures(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", path("dead"))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	serve := func(name, info string) {
		l, err := net.Listen("unix", path(name))
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.41")
			if strings.HasSuffix(r.URL.Path, "/info") {
				if info == "" {
					w.WriteHeader(http.StatusInternalServerError)
				}
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(info))
			}
		})}
		go s.Serve(l)
		t.Cleanup(func() { s.Close() })
	}
	serve("ill", "")
	serve("windows", `{"OSType": "windows"}`)
	serve("rootless", `{"OSType": "linux", "SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}`)
	serve("remapped", `{"OSType": "linux", "ServerVersion": "20.10", "Driver": "overlay2", "SecurityOptions": ["name=userns"]}`)
	for host, want := range map[string]string{
		"unix://" + path("absent"):   "there is no engine",
		"unix://" + path("dead"):     "no engine is running",
		"unix://" + path("ill"):      "does not answer",
		"unix://" + path("windows"):  "windows containers",
		"unix://" + path("rootless"): "--runtime namespace needs no root",
		"tcp://192.0.2.1:2375":       "unset DOCKER_HOST",
		"ssh://there":                "unset DOCKER_HOST",
		"nonsense":                   "unset DOCKER_HOST",
	} {
		t.Setenv("DOCKER_HOST", host)
		_, err := open(t.Context(), "")
		if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, expected %q", host, err, want)
		}
		if names, err := Clean(t.Context(), "", runtime.Owner.Dead); err == nil || len(names) > 0 {
			t.Errorf("%q: cleaned %v", host, names)
		}
	}
	e, err := open(t.Context(), "unix://"+path("remapped"))
	if err != nil || !e.remapped || !strings.Contains(e.about, "20.10 (API 1.41, overlay2, cgroup v1)") {
		t.Errorf("%+v, %v", e, err)
	}
}

// In a container that has the machine's socket, the engine's process numbers mean nothing.
func TestPrivEngineOfAnotherPIDNamespace(t *testing.T) {
	testenv.NeedNamespaces(t)
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("/proc/self/exe", "open", "unix://"+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "cannot be seen from here") ||
		!strings.Contains(string(out), "--runtime namespace") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPrivProbe(t *testing.T) {
	host := dockertest.Host(t)
	about, err := Probe(t.Context(), host)
	t.Logf("%s, %v", about, err)
	if err != nil && os.Geteuid() == 0 && !errors.Is(err, ErrUnusable) || about == "" && err == nil {
		t.Errorf("%q, %v", about, err)
	}
}

func TestState(t *testing.T) {
	for code, want := range map[string]string{
		"0": "exit status 0", "2": "exit status 2", "137": "signal: killed", "139": "signal: SIGSEGV", "": "unknown", "x": "unknown", "255": "exit status 255",
	} {
		if got := exitState(code, false); got != want {
			t.Errorf("%q is %q, expected %q", code, got, want)
		}
	}
	if got := exitState("137", true); got != "signal: killed (out of memory)" {
		t.Error(got)
	}
}

// A reaper that was dismissed or got invalid input touches nothing.
func TestReap(t *testing.T) {
	if err := Reap(t.Context(), strings.NewReader(done), "unix:///absent", "0123456789abcdef"); err != nil {
		t.Error(err)
	}
	for _, run := range []string{"", "0123456789ABCDEF", "0123456789abcde", "../../containers"} {
		if err := Reap(t.Context(), strings.NewReader(""), "unix:///absent", run); err == nil {
			t.Errorf("%q is taken for a run", run)
		}
	}
}
