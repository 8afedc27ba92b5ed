package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	nodeimage "weft/nodeimg/image"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
)

// buffer is a bytes.Buffer that several goroutines may use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// awaitText waits until a program has written a text.
func awaitText(t *testing.T, out *buffer, text string) {
	t.Helper()
	quiettest.Await(t, func() error {
		if got := out.String(); !strings.Contains(got, text) {
			return fmt.Errorf("the program wrote %q, want %q", got, text)
		}
		return nil
	})
}

// A program of this machine finds the same in a node as in the built-in runtime.
func TestPrivInsideANode(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(2))
	for _, s := range []struct{ script, want string }{
		{"hostname", "h0"},
		{"touch /etc/weft-was-here 2>&1; touch /usr/weft-was-here 2>&1; touch /dev/shm/.. 2>&1", "Read-only file system"},
		{"echo text > /tmp/a && echo text > /run/a && echo text > /dev/shm/a && cat /tmp/a /run/a /dev/shm/a | tr '\\n' ' '", "text text text"},
		{"echo 1 2>&1 > /proc/sys/net/ipv4/ip_forward", "Read-only file system"},
		{"ls -x /sys/class/net", "eth0  lo"},
		{"cat /proc/1/comm", "weft-h0"},
		{"test $$ -lt 100 && echo few", "few"}, // PIDs are the namespace's own
		{"cat /proc/net/if_inet6 2>/dev/null | grep -c eth0", "0"},
		{"ls /dev | tr '\\n' ' '", "fd full null random shm stderr stdin stdout tty urandom zero"},
		{"grep CapEff /proc/self/status", "0000000000003400"}, // NET_BIND_SERVICE, NET_ADMIN, NET_RAW
		{"ip -o -4 addr show eth0", "10.0.0.1/16"},
		{"ip neigh show 10.0.0.2", "PERMANENT"},
		{"ls /proc/1/root 2>&1", "ermission denied"},
	} {
		if out, _ := runIn(t, c, "h0", "sh", "-c", s.script); !strings.Contains(out, s.want) {
			t.Errorf("%s: %q, expected %q", s.script, out, s.want)
		}
	}
	var exit *runtime.StatusError
	if _, err := runIn(t, c, "h0", "sh", "-c", "exit 7"); !errors.As(err, &exit) || exit.Code != 7 {
		t.Errorf("got %v", err)
	}
	if _, err := runIn(t, c, "h9", "true"); !errors.Is(err, runtime.ErrNoNode) || !strings.Contains(err.Error(), "h9") {
		t.Errorf("got %v", err)
	}
	if _, err := runIn(t, c, "h0"); err == nil || !strings.Contains(err.Error(), "no program") {
		t.Errorf("got %v", err)
	}
}

// Frames cross the cables: a node answers another's ping.
func TestPrivPing(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	c := launchLab(t, runtimetest.Lab(3))
	if out, err := runIn(t, c, "h0", "ping", "-c2", "-i0.05", "-W60", "10.0.0.3"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A program ends with its node and with its caller's context.
func TestPrivProgramsEnd(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(2))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := quiettest.Start()
	if err := c.Exec(ctx, "h0", runtime.Command{Args: []string{"sleep", "60"}}); err == nil {
		t.Error("ended well")
	}
	over := make(chan error, 1)
	var out buffer
	go func() {
		over <- c.Exec(t.Context(), "h1", runtime.Command{Args: []string{"sh", "-c", "echo runs; exec sleep 60"}, Stdout: &out})
	}()
	awaitText(t, &out, "runs\n")
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	err := <-over
	start.AtMost(t, 20*time.Second, "the end")
	if err == nil {
		t.Error("ended well")
	}
}

// userImage imports an image like a user's: other files, another user, a command.
func userImage(t *testing.T, c *Cluster) string {
	t.Helper()
	const name = "weft-test/user:1"
	p, err := nodeimage.Read(buildNode(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := nodeimage.Import(t.Context(), c.engine.api, p.Layer, name, `CMD ["/weft", "die"]`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e, err := open(context.Background(), "")
		if err == nil {
			_, err = e.api.ImageRemove(context.Background(), name, image.RemoveOptions{Force: true})
		}
		if err != nil {
			t.Error(err)
		}
	})
	return name
}

// A program of an image shares its node's network, has its own files, and leaves nothing.
func TestPrivProgramOfAnImage(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(2))
	name := userImage(t, c)
	var out buffer
	var exit *runtime.StatusError
	err := c.Exec(t.Context(), "h1", runtime.Command{Image: name, Stdout: &out, Stderr: &out})
	if !errors.As(err, &exit) || exit.Code != 1 || out.String() != "asked to\n" {
		t.Errorf("%v, said %q", err, out.String())
	}
	out = buffer{}
	if err := c.Exec(t.Context(), "h1", runtime.Command{Image: name, Args: []string{"/weft", "cat"}, Stdin: strings.NewReader("in and out"), Stdout: &out}); err != nil || out.String() != "in and out" {
		t.Errorf("%v, said %q", err, out.String())
	}
	out = buffer{}
	if err := c.Exec(t.Context(), "h1", runtime.Command{Image: name, Args: []string{"/weft", "interfaces"}, Stdout: &out}); err != nil || out.String() != "lo eth0\n" {
		t.Errorf("%v, said %q", err, out.String())
	}
	if err := c.Exec(t.Context(), "h1", runtime.Command{Image: "weft-test/absent:1"}); err == nil || !strings.Contains(err.Error(), "docker pull") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := c.Exec(ctx, "h1", runtime.Command{Image: name, Args: []string{"/weft", "idle"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	over := make(chan error, 1)
	out = buffer{}
	go func() {
		over <- c.Exec(t.Context(), "h1", runtime.Command{Image: name, Args: []string{"/weft", "idle"}, Stdout: &out})
	}()
	awaitText(t, &out, "idle\n")
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err == nil {
		t.Error("a program outlives its node")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	checkNoContainers(t, "test")
}

// A program of this machine is in its container's control groups, which count and limit its
// processes.
func TestPrivProgramsAreBounded(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(1))
	if out, err := runIn(t, c, "h0", "sh", "-c", "test ! -e /var/run/docker.sock && test ! -e /run/docker.sock && ! find /usr /etc /var /run -type s 2>/dev/null | grep ."); err != nil {
		t.Errorf("a program sees sockets of the machine: %v %s", err, out)
	}
	out, _ := runIn(t, c, "h0", "sh", "-c", "grep -c "+c.Of(runtime.Host, 0).container+" /proc/self/cgroup; id -u; "+
		"i=0; while [ $i -lt 1500 ]; do sleep 61 >/dev/null 2>&1 & i=$((i+1)); done; echo started $i")
	if strings.Contains(out, "started 1500") || !strings.Contains(out, "fork") {
		t.Errorf("1500 programs were started: %.300s", out)
	}
	if f := strings.Fields(out); len(f) < 2 || f[1] == "0" {
		t.Errorf("it ran as root: %.80s", out)
	}
}
