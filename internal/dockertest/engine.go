// Package dockertest provides a Docker Engine for tests: one with its own folder, socket and
// process that it starts and stops, or, where it cannot start one or DOCKER_HOST asks for it, the
// one that runs on this machine.
package dockertest

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/privilege"
)

// startTime is the time limit for an engine to start or stop.
const startTime = 30 * time.Second

// lent is the engine shared by this process's tests.
var lent struct {
	sync.Once
	host string // empty if there is none; why says why
	why  string
	stop func()
}

// Host returns the address of a shared engine and sets DOCKER_HOST to it. It skips the test if
// there is none.
func Host(t testing.TB) string {
	t.Helper()
	lent.Do(find)
	if lent.host == "" {
		t.Skipf("no Docker Engine for tests: %s", lent.why)
	}
	return lent.host
}

// Stop stops the shared engine if the tests started it. TestMain calls it last.
func Stop() {
	if lent.stop != nil {
		lent.stop()
	}
}

// find starts an engine where it may, and looks for a running one otherwise or where DOCKER_HOST
// names one. A test's own engine has nothing of anybody else, and its processes are in the test's
// PID namespace (.ci/isolate), where the numbers of the machine's engine mean nothing.
func find() {
	host := os.Getenv("DOCKER_HOST")
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	_, missing := exec.LookPath("dockerd")
	if host != "" || missing != nil || os.Geteuid() != 0 {
		host = cmp.Or(host, "unix:///var/run/docker.sock")
		if lent.why = unreachable(host); lent.why == "" {
			lent.host = host
		} else if missing != nil {
			lent.why += "; dockerd is not installed, see make tools"
		} else if os.Geteuid() != 0 {
			lent.why += "; only root may start one"
		}
		return
	}
	dir, err := os.MkdirTemp("", "engine-*")
	if err == nil {
		lent.host, lent.stop, err = start(dir)
	}
	if err != nil {
		lent.why = err.Error()
		os.RemoveAll(dir)
		return
	}
	os.Setenv("DOCKER_HOST", lent.host)
}

// unreachable says why the engine at host is of no use to tests; "" if it is. It connects only.
func unreachable(host string) string {
	conn, err := net.DialTimeout("unix", strings.TrimPrefix(host, "unix://"), time.Second)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if seen, err := privilege.SeesPeer(conn.(*net.UnixConn)); err != nil {
		return err.Error()
	} else if !seen {
		return "the engine at " + host + " is in another PID namespace"
	}
	return ""
}

// Engine is an engine for one test, which may do with it what it likes.
type Engine struct {
	Host string
	dir  string
	cmd  *exec.Cmd
	log  bytes.Buffer
	up   chan struct{}
	over chan struct{}
}

// Start starts an engine for one test.
func Start(t testing.TB) *Engine {
	t.Helper()
	Host(t)                                  // or skip
	dir, err := os.MkdirTemp("", "engine-*") // a short path: a socket's has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		t.Skip("a Docker Engine of the test's own takes root and dockerd")
	}
	e := &Engine{dir: dir, Host: "unix://" + filepath.Join(dir, "docker.sock")}
	if err := e.Restart(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(e.remove)
	return e
}

func start(dir string) (host string, stop func(), err error) {
	e := &Engine{dir: dir, Host: "unix://" + filepath.Join(dir, "docker.sock")}
	if err := e.Restart(); err != nil {
		return "", nil, err
	}
	return e.Host, func() { e.Stop(); os.RemoveAll(dir) }, nil
}

// Restart starts the engine again after Stop.
func (e *Engine) Restart() error {
	e.up, e.over = make(chan struct{}), make(chan struct{})
	// The machine's containerd has the containers of the machine's engine: this engine, which would
	// share it, is not to see it.
	const hide = `[ ! -S /run/containerd/containerd.sock ] || mount -t tmpfs tmpfs /run/containerd; exec "$0" "$@"`
	e.cmd = exec.Command("sh", "-c", hide, "dockerd", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
		"--bridge=none",
		"--data-root", filepath.Join(e.dir, "data"), "--exec-root", filepath.Join(e.dir, "exec"),
		"--pidfile", filepath.Join(e.dir, "pid"), "-H", e.Host)
	// Its mounts are in a namespace of its own, because other tests look for leftover mounts.
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM,
		Unshareflags: syscall.CLONE_NEWNS}
	out, err := e.cmd.StderrPipe()
	if err != nil {
		return err
	}
	begun, cmd, over := make(chan error), e.cmd, e.over
	go func() {
		runtime.LockOSThread() // never unlocked: the engine ends with the thread that started it
		begun <- cmd.Start()
		<-over
	}()
	if err := <-begun; err != nil {
		close(e.over)
		return fmt.Errorf("start dockerd: %w", err)
	}
	go e.follow(bufio.NewScanner(out))
	select {
	case <-e.up:
		return nil
	case <-e.over:
	case <-time.After(startTime):
		e.Stop()
	}
	return fmt.Errorf("dockerd does not start: %s", last(e.log.String()))
}

// follow reads the engine's log until it ends.
func (e *Engine) follow(lines *bufio.Scanner) {
	up := false
	for lines.Scan() {
		e.log.WriteString(lines.Text() + "\n")
		if !up && strings.Contains(lines.Text(), "API listen on") {
			up = true
			close(e.up)
		}
	}
	_ = e.cmd.Wait()
	close(e.over)
}

// Stop stops the engine like a machine that shuts down.
func (e *Engine) Stop() { e.end(syscall.SIGTERM) }

// remove stops the engine and removes its folder. Processes that were just killed may still hold it
// for a moment.
func (e *Engine) remove() {
	e.Stop()
	for range 50 {
		orphans(e.dir)
		if os.RemoveAll(e.dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond) // the kernel does not say when a killed process has left the folder
	}
}

// orphans kills the processes that a killed engine leaves behind, recognised by its folder in their
// arguments.
func orphans(dir string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		text, err := os.ReadFile(f)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err == nil && pid != os.Getpid() && bytes.Contains(text, []byte("containerd")) &&
			bytes.Contains(text, []byte(dir+"/")) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended
		}
	}
}

// Kill kills the engine and leaves its containers running.
func (e *Engine) Kill() { e.end(syscall.SIGKILL) }

func (e *Engine) end(s syscall.Signal) {
	_ = e.cmd.Process.Signal(s) // it may have ended
	select {
	case <-e.over:
	case <-time.After(startTime):
		_ = e.cmd.Process.Kill()
		<-e.over
	}
}

// last returns the end of a log.
func last(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return lines[len(lines)-1]
}

// Address returns the address of the engine that Host returned.
func Address() string { return lent.host }
