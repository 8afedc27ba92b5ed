package docker

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/internal/quiettest"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
)

// Every process answers over its control connection, runs where its labels say, and is gone when
// the lab is closed.
func TestPrivLaunch(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(4))
	if c.Nodes() != 4 || c.Node(2).Name != "h2" || c.Fabric().Name != runtime.Fabric {
		t.Errorf("%d nodes, %q, %q", c.Nodes(), c.Node(2).Name, c.Fabric().Name)
	}
	for i := range c.Nodes() {
		var back int
		if err := c.Node(i).Conn.SendValue("echo", i); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Node(i).Conn.Expect("echo", &back); err != nil || back != i {
			t.Errorf("got %d, %v", back, err)
		}
	}
	all, err := c.engine.list(t.Context(), c.id)
	if err != nil || len(all) != 5 {
		t.Fatalf("%d containers, %v", len(all), err)
	}
	for _, a := range all {
		if o, ok := ownerFromLabels(a.Labels); !ok || o != c.owner || a.Labels[labelLab] != "test" || !strings.Contains(nameOf(a), a.Labels[labelNode]) {
			t.Errorf("container %s is labelled %v", nameOf(a), a.Labels)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if all, err := c.engine.list(context.Background(), c.id); len(all) > 0 {
		t.Errorf("containers %v are left (%v)", all, err)
	}
	if _, open := <-c.Exits(); open {
		t.Error("an exit is reported that was asked for")
	}
	if err := c.Exec(t.Context(), "h0", runtime.Command{Args: []string{"true"}}); !errors.Is(err, runtime.ErrNoNode) {
		t.Errorf("got %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A malicious node reaches nothing: not its own files, no network, no privileges, not the engine.
// Nobody can take control of it a second time.
func TestPrivBadNodeIsConfined(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(2))
	for i, p := range []*runtime.Proc{c.Node(0), c.Fabric()} {
		got := map[string]string{}
		if err := p.Conn.Send(control.Message{Kind: "try"}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Conn.Expect("tried", &got); err != nil {
			t.Fatal(err)
		}
		for what, want := range map[string]string{
			"write /weft": "read-only file system", "write /x": "read-only file system", "write /proc/sys": "read-only file system",
			"write /etc/hosts": "read-only file system", "write /tmp/x": "done",
			"mount": "operation not permitted", "unshare": "operation not permitted", "user namespace": "operation not permitted",
			"become root": "operation not permitted", "mknod": "operation not permitted", "reboot": "operation not permitted",
			"raw socket": "operation not permitted", "open tun": "no such file or directory", "route out": "network is unreachable",
			"engine": "no such file or directory", "control again": "connection refused",
			"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapBnd": "0000000000000000", "CapInh": "0000000000000000", "CapAmb": "0000000000000000",
			"NoNewPrivs": "1", "Seccomp": "2", "Uid": "65534 65534 65534 65534", "pid": "1",
			"interfaces": []string{"lo eth0", "lo"}[i],
		} {
			if !strings.Contains(got[what], want) {
				t.Errorf("%s: %s: %q, expected %q", p.Name, what, got[what], want)
			}
		}
		if strings.Contains(got["root"], "home") || strings.Contains(got["root"], "var") {
			t.Errorf("%s sees %s", p.Name, got["root"])
		}
	}
	p := c.Node(0)
	if _, err := net.Dial("unix", "@weft/control"); err == nil {
		t.Error("control is offered outside of the node")
	}
	err := p.Do(func() error {
		_, err := net.Dial("unix", "@weft/control") // root may enter; there is nobody to speak with
		return err
	})
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
}

// The engine limits a container's memory and processes.
func TestPrivLimits(t *testing.T) {
	spec := runtimetest.Lab(1)
	spec.Memory = 64 << 20
	c := launchLab(t, spec)
	about, err := c.engine.api.ContainerInspect(t.Context(), c.Of(runtime.Host, 0).container)
	if err != nil {
		t.Fatal(err)
	}
	h := about.HostConfig
	if h.Privileged || h.Memory != 64<<20 || h.PidsLimit == nil || *h.PidsLimit != runtime.MaxProcesses || !h.ReadonlyRootfs || !h.AutoRemove ||
		h.NetworkMode != "none" || len(h.CapAdd) > 0 || len(h.Binds)+len(h.Mounts)+len(h.Devices) > 0 || len(about.Mounts) > 0 {
		t.Errorf("%+v, mounts %v", h, about.Mounts)
	}
	if err := c.Node(0).Conn.SendValue("memory", nil); err != nil {
		t.Fatal(err)
	}
	e := awaitExit(t, c)
	if e.Name != "h0" || !strings.Contains(e.Err.State, "signal: killed") {
		t.Errorf("got %v", e.Err)
	}
	t.Log(e.Err)
}

// awaitExit waits for the end of a process.
func awaitExit(t *testing.T, c *Cluster) runtime.Exit {
	t.Helper()
	select {
	case e := <-c.Exits():
		return e
	case <-time.After(quiettest.Patience):
		t.Fatal("nobody says that a process has ended")
		return runtime.Exit{}
	}
}

// The end of a process is reported with the end of its output.
func TestPrivExits(t *testing.T) {
	var out buffer
	spec := runtimetest.Lab(3)
	spec.Stderr = &out
	c := launchLab(t, spec)
	for _, s := range []struct {
		p          *runtime.Proc
		kind, want string
	}{
		{c.Node(1), "exit", "h1 died: exit status 1: told to"},
		{c.Node(2), "crash", "h2 died: exit status 2: panic: asked to"},
		{c.Fabric(), "crash", "fabric died: exit status 2: panic: asked to"},
	} {
		if err := s.p.Conn.SendValue(s.kind, nil); err != nil {
			t.Fatal(err)
		}
		if e := awaitExit(t, c); e.PID != s.p.PID || !strings.HasPrefix(e.Err.Error(), s.want) {
			t.Errorf("got %v, expected %s", e.Err, s.want)
		}
	}
	if !strings.Contains(out.String(), "h1: told to\n") {
		t.Errorf("copied %q", out.String())
	}
}

// A node that is killed and restarted gets a new cable, over which it is reachable again. A frozen
// node does not answer until it is continued.
func TestPrivKillFreezeRestart(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(2))
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	if e := awaitExit(t, c); e.Name != "h1" || !strings.Contains(e.Err.State, "killed") {
		t.Errorf("got %+v", e)
	}
	if err := c.Kill(1); !errors.Is(err, runtime.ErrNoNode) {
		t.Errorf("killed twice: %v", err)
	}
	if _, err := c.Restart(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("got %v", err)
	}
	link, err := c.Restart(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(link.FD)
	if link.Index != 1 || link.Node != "h1" || link.FD < 3 {
		t.Errorf("got %+v", link)
	}
	p := c.Node(1)
	echo := func(patience time.Duration) error {
		_ = p.Conn.SetReadDeadline(time.Now().Add(patience))
		err := p.Conn.SendValue("echo", 1)
		if err == nil {
			_, err = p.Conn.Expect("echo", nil)
		}
		return err
	}
	if err := echo(quiettest.Patience); err != nil {
		t.Error(err)
	}
	if err := c.Freeze(1, true); err != nil {
		t.Fatal(err)
	}
	if err := echo(300 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a frozen node answers: %v", err)
	}
	if err := c.Freeze(1, false); err != nil {
		t.Fatal(err)
	}
	if out, err := runIn(t, c, "h1", "hostname"); err != nil || out != "h1\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// A launch that fails returns one clear error and leaves nothing.
func TestPrivFailedLaunchLeavesNothing(t *testing.T) {
	needEngine(t)
	for name, s := range map[string]struct {
		change func(*runtime.Spec)
		want   string
	}{
		"no nodes":       {func(s *runtime.Spec) { s.Nodes = nil }, "no nodes"},
		"two names":      {func(s *runtime.Spec) { s.Nodes[1].Name = "h0" }, `"h0"`},
		"image missing":  {func(s *runtime.Spec) { s.Images = []string{"weft-test/absent:1"} }, "does not have the image weft-test/absent:1: docker pull"},
		"bad image name": {func(s *runtime.Spec) { s.Images = []string{"../containers/json?x="} }, "is not the name of an image"},
		"no program":     {func(s *runtime.Spec) { s.Self = "/absent" }, "/absent: no such file"},
		"not a program":  {func(s *runtime.Spec) { s.Self = "/etc/passwd" }, "bad magic number"},
		"shared library": {func(s *runtime.Spec) { s.Self = "/bin/true" }, "CGO_ENABLED=0"},
		"bad address":    {func(s *runtime.Spec) { s.Nodes[2].MTU = 9 }, "set MTU"},
		"node dies":      {func(s *runtime.Spec) { s.NodeArgs = []string{"die"} }, "exit status 1"},
		"fabric dies":    {func(s *runtime.Spec) { s.FabricArgs = []string{"die"} }, "fabric died: exit status 1"},
		"journal is full": {func(s *runtime.Spec) {
			s.Ahead = func(op runtime.Op) error {
				if strings.HasSuffix(op.Name, "-h1") {
					return unix.ENOSPC
				}
				return nil
			}
		}, "no space left"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := runtimetest.Lab(3)
			spec.Self, spec.Lab = buildNode(t), "fails"
			s.change(&spec)
			watch := quiettest.Start()
			c, err := Launch(t.Context(), spec)
			watch.AtMost(t, bootTime/2, "the failed launch")
			if err == nil {
				c.Close()
				t.Fatal("launched")
			}
			if !strings.Contains(err.Error(), s.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, expected %q", err, s.want)
			}
			checkNoContainers(t, "fails")
		})
	}
}

// checkNoContainers fails the test if a container of a lab with this name is left.
func checkNoContainers(t *testing.T, name string) {
	t.Helper()
	if left := containersOf(t, name); len(left) > 0 {
		t.Errorf("containers %v are left", left)
	}
}

// containersOf lists the containers of labs with this name.
func containersOf(t *testing.T, name string) (names []string) {
	t.Helper()
	e, err := open(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer e.api.Close()
	all, err := e.list(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Labels[labelLab] == name {
			names = append(names, nameOf(c)+" "+c.State)
		}
	}
	return names
}

// A cancelled launch ends soon, with the context's error, and leaves nothing, whenever it is
// cancelled.
func TestPrivLaunchIsCancelled(t *testing.T) {
	needEngine(t)
	for _, after := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, 600 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		spec := runtimetest.Lab(6)
		spec.Self, spec.Lab = buildNode(t), "given-up"
		c, err := Launch(ctx, spec)
		switch {
		case err == nil:
			<-ctx.Done()
			c.Close()
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("given up after %v: %v", after, err)
		}
		cancel()
		checkNoContainers(t, "given-up")
	}
}

// Host names and the journal are the same as in the built-in runtime.
func TestPrivJournalAndNames(t *testing.T) {
	needEngine(t)
	spec := runtimetest.Lab(2)
	spec.Self = buildNode(t)
	spec.Nodes[0].Hosts = []boot.HostName{{Name: "elsewhere", Addr: spec.Nodes[1].Addr.Addr()}}
	ops := make(chan runtime.Op, 10)
	spec.Ahead = func(op runtime.Op) error { ops <- op; return nil }
	c, err := Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if out, err := runIn(t, c.(*Cluster), "h0", "getent", "hosts", "elsewhere"); err != nil || !strings.HasPrefix(out, "10.0.0.2") {
		t.Errorf("%q, %v", out, err)
	}
	close(ops)
	for op := range ops {
		if op.Kind != runtime.Container || op.Do != "create container "+op.Name {
			t.Errorf("%+v", op)
		}
		if err := Remove(t.Context(), "", op.Name); err != nil {
			t.Error(err)
		}
		if err := Remove(t.Context(), "", op.Name); err != nil {
			t.Errorf("removed twice: %v", err)
		}
	}
	checkNoContainers(t, "test")
}

// runIn runs a command in a node and returns what it wrote.
func runIn(t *testing.T, c *Cluster, name string, args ...string) (string, error) {
	t.Helper()
	var out buffer
	ctx, cancel := context.WithTimeout(t.Context(), quiettest.Patience)
	defer cancel()
	err := c.Exec(ctx, name, runtime.Command{Args: args, Stdout: &out, Stderr: &out})
	return out.String(), err
}
