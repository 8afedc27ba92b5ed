package namespace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
)

// buffer is a bytes.Buffer that several goroutines may use.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) { b.mu.Lock(); defer b.mu.Unlock(); return b.b.Write(p) }
func (b *buffer) String() string              { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

// The hosts of a k=4 fat-tree and its fabric are up in under 1 s and down in under 0.5 s.
func TestPrivUpAndDown(t *testing.T) {
	testenv.NeedNamespaces(t)
	quiettest.Check(t, 3, func() error {
		up, down := timeLaunch(t)
		if up > time.Second || down > 500*time.Millisecond {
			return fmt.Errorf("up in %v (at most 1 s), down in %v (at most 0.5 s)", up, down)
		}
		return nil
	})
}

// timeLaunch returns how long a lab takes to start and to end.
func timeLaunch(t *testing.T) (up, down time.Duration) {
	t.Helper()
	start := time.Now()
	c, err := Launch(t.Context(), runtimetest.Lab(16))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	up = time.Since(start)
	for i := range c.Nodes() {
		p := c.Node(i)
		if err := p.Conn.SendValue("hello", p.Name); err != nil {
			t.Error(err)
		}
		var back string
		if _, err := p.Conn.Expect("hello", &back); err != nil || back != p.Name {
			t.Errorf("%s answered %q, %v", p.Name, back, err)
		}
	}
	start = time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	down = time.Since(start)
	t.Logf("16 hosts and the fabric: up in %v, down in %v", up, down)
	if err := c.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, open := <-c.Exits(); open {
		t.Error("an exit was reported that Close caused")
	}
	if err := c.Exec(t.Context(), "h0", runtime.Command{Args: []string{"true"}}); !errors.Is(err, runtime.ErrNoNode) {
		t.Errorf("exec after close: %v", err)
	}
	return up, down
}

func TestPrivDeathIsReportedByName(t *testing.T) {
	var out buffer
	spec := runtimetest.Lab(3)
	spec.Stderr = &out
	c := launchLab(t, spec)
	if err := unix.Kill(c.Node(1).PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	want := func(name, text string) {
		t.Helper()
		select {
		case e := <-c.Exits():
			if e.Name != name || !strings.Contains(e.Err.Error(), text) {
				t.Errorf("got %s: %v; want %s: %s", e.Name, e.Err, name, text)
			}
		case <-time.After(quiettest.Patience):
			t.Errorf("the death of %s was not reported", name)
		}
	}
	want("h1", "h1 died: signal: killed")
	c.Node(2).Conn.SendValue("crash", nil)
	want("h2", "panic: asked to") // its last words are in the error
	c.Fabric().Conn.SendValue("crash", nil)
	want(runtime.Fabric, "fabric died: exit status 2")
	if !strings.Contains(out.String(), "h2: panic: asked to\n") {
		t.Errorf("standard error was not passed on:\n%s", out.String())
	}
}

// Close kills a process that does not react to the end of its connection, in time.
func TestPrivCloseKillsUnresponsiveProcesses(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(2))
	for _, p := range []*runtime.Proc{c.Node(1), c.Fabric()} {
		if err := p.Conn.SendValue("hang", nil); err != nil {
			t.Fatal(err)
		}
	}
	start, watch := time.Now(), quiettest.Start()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d < defaultGrace {
		t.Errorf("closed after %v, before the time of grace was over", d)
	}
	watch.AtMost(t, 3*time.Second, "the end")
}

// A node has the nice value that its spec asks for, although it runs as nobody.
func TestPrivNodeIsReniced(t *testing.T) {
	spec := runtimetest.Lab(2)
	spec.Nodes[1].Nice = 19
	c := launchLab(t, spec)
	nice := func(pid int) int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		if err != nil {
			t.Error(err)
		}
		return 20 - n // the system call's value is 20 - nice: setpriority(2)
	}
	if own, got := nice(0), nice(c.Node(0).PID); got != own {
		t.Errorf("the first node has the nice value %d, want %d, as this process has", got, own)
	}
	if got := nice(c.Node(1).PID); got != 19 {
		t.Errorf("the second node has the nice value %d, want 19", got)
	}
}

func TestPrivFailedLaunchLeavesNothing(t *testing.T) {
	testenv.NeedNamespaces(t)
	for name, c := range map[string]struct {
		change func(*runtime.Spec)
		want   string
	}{
		"no nodes":        {func(s *runtime.Spec) { s.Nodes = nil }, "no nodes"},
		"same name":       {func(s *runtime.Spec) { s.Nodes[2].Name = "h1" }, `two processes have the name "h1"`},
		"fabric's name":   {func(s *runtime.Spec) { s.Nodes[2].Name = runtime.Fabric }, `"fabric"`},
		"bad MTU":         {func(s *runtime.Spec) { s.Nodes[2].MTU = 7 }, "h2: boot node: eth0: set MTU"},
		"bad MAC":         {func(s *runtime.Spec) { s.Nodes[2].MAC = boot.MAC{1} }, "set hardware address"},
		"no address":      {func(s *runtime.Spec) { s.Nodes[2].Addr = s.Nodes[2].Addr.Masked(); s.Nodes[2].Peers = s.Nodes[1].Peers }, ""},
		"no program":      {func(s *runtime.Spec) { s.Self = "/nonexistent" }, "no such file"},
		"other program":   {func(s *runtime.Spec) { s.Self = "/bin/false" }, "died: exit status 1"},
		"port taken":      {func(s *runtime.Spec) { s.Nodes[2].Sockets = []boot.Socket{{Port: 9000}, {Port: 9000}} }, "socket 10.0.0.3:9000: address already in use"},
		"long host name":  {func(s *runtime.Spec) { s.Nodes[0].Name = strings.Repeat("x", 65) }, "set host name"},
		"a foreign peer":  {func(s *runtime.Spec) { s.Nodes[0].Peers[0].MAC = boot.MAC{} }, ""},
		"process crashes": {func(s *runtime.Spec) { s.NodeArgs = []string{"-test.run=^$", "-test.badflag"} }, "died: exit status 2"},
	} {
		t.Run(name, func(t *testing.T) {
			before := takeTraces(t)
			spec := runtimetest.Lab(4)
			c.change(&spec)
			cluster, err := Launch(t.Context(), spec)
			if cluster != nil {
				cluster.Close()
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			before.check(t)
		})
	}
}

func TestPrivCancelAtAnyTime(t *testing.T) {
	testenv.NeedNamespaces(t)
	before := takeTraces(t)
	for d := time.Duration(0); d < 90*time.Millisecond; d += 15 * time.Millisecond {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(d, cancel)
		c, err := Launch(ctx, runtimetest.Lab(8))
		switch {
		case err == nil: // it was up before; then it goes down by itself
			<-ctx.Done()
			for range c.Exits() {
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, context.Canceled):
			t.Errorf("after %v: %v", d, err)
		}
		cancel()
	}
	before.check(t)
}

// Frames go from node to node through the fabric, over TAP and veth alike, with real checksums that
// the receiver's kernel verifies.
func TestPrivTraffic(t *testing.T) {
	for _, kind := range []boot.LinkKind{boot.TAP, boot.Packet} {
		t.Run(string(kind), func(t *testing.T) {
			spec := runtimetest.Lab(2)
			for i := range spec.Nodes {
				spec.Nodes[i].Veth = kind == boot.Packet
			}
			c := launchLab(t, spec)
			for i := range c.Nodes() {
				if got := c.Node(i).Link; got.Kind != kind {
					t.Skipf("%s has a cable of kind %s: %s", c.Node(i).Name, got.Kind, got.Why)
				}
			}
			if out, err := runIn(t, c, "h0", "ping", "-c", "3", "-i", "0.01", "-s", "4100", "-M", "do", "10.0.0.2"); err != nil {
				t.Errorf("%v\n%s", err, out)
			} else {
				t.Log(out)
			}
			sendTCP(t, c, 20<<20)
		})
	}
}

// sendTCP sends n bytes from h0 to h1.
func sendTCP(t *testing.T, c *Cluster, n int64) {
	t.Helper()
	var l net.Listener
	err := c.Node(1).Do(func() (err error) { l, err = net.Listen("tcp4", "10.0.0.2:5000"); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		var out net.Conn
		err := c.Node(0).Do(func() (err error) {
			out, err = net.DialTimeout("tcp4", "10.0.0.2:5000", quiettest.Patience)
			return err
		})
		if err != nil {
			t.Error(err)
			l.Close()
			return
		}
		defer out.Close()
		if _, err := io.CopyN(out, zeros{}, n); err != nil {
			t.Error(err)
		}
	}()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.SetDeadline(time.Now().Add(quiettest.Patience))
	start := time.Now()
	got, err := io.Copy(io.Discard, in)
	if err != nil || got != n {
		t.Errorf("got %d bytes of %d, %v", got, n, err)
	}
	t.Logf("TCP: %.0f Mbit/s", float64(8*got)/1e6/time.Since(start).Seconds())
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Every thread of a node's process has dropped its privileges.
func TestPrivPrivilegesAreGone(t *testing.T) {
	spec := runtimetest.Lab(2)
	spec.Agents = 1
	c := launchLab(t, spec)
	for _, p := range []*runtime.Proc{c.Node(0), c.Agent(0), c.Fabric()} {
		caps := "0000000000000000"
		if p == c.Fabric() {
			caps = "0000000000800000" // CAP_SYS_NICE
		}
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.PID))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has threads %v, %v", p.Name, files, err)
		}
		for _, file := range files {
			status := readFields(t, file)
			for _, set := range []string{"CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"} {
				if status[set] != caps {
					t.Errorf("%s: %s %s is %s, want %s", p.Name, file, set, status[set], caps)
				}
			}
			if status["NoNewPrivs"] != "1" {
				t.Errorf("%s: NoNewPrivs is %s", p.Name, status["NoNewPrivs"])
			}
			if want := strings.Repeat("65534 ", 4); os.Geteuid() == 0 && strings.Join(strings.Fields(status["Uid"]), " ")+" " != want {
				if p.Report.UID != 0 { // a user namespace has no other
					t.Errorf("%s: Uid is %s", p.Name, status["Uid"])
				}
			}
		}
		t.Logf("%s: %+v", p.Name, p.Report)
		score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.PID))
		if strings.TrimSpace(string(score)) != "500" {
			t.Errorf("%s: oom_score_adj is %s, %v", p.Name, score, err)
		}
		open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID))
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range open {
			to, _ := os.Readlink(fd)
			if strings.HasPrefix(to, "/") && to != "/dev/null" && !strings.HasSuffix(to, "/net/tun") { // its TAPs, whose folder it does not see any more
				t.Errorf("%s: descriptor %s is still %s", p.Name, filepath.Base(fd), to)
			}
		}
	}
}

// readFields reads a file of "Key: value" lines.
func readFields(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			m[key] = strings.TrimSpace(value)
		}
	}
	return m
}
