package machine

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	runtimes "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/nodeimg/agent"
	"weft/nodeimg/boot"
	"weft/orchestrator/capture"
	"weft/orchestrator/emulate"
	"weft/orchestrator/runtime"
	"weft/realtime"
)

// fake is a cluster without processes: the test has the other ends of their connections.
type fake struct {
	cluster
	ends   []*control.Conn // of the fabric and the nodes
	did    []string        // to nodes
	runs   chan bool       // receives a value for each program that runs until it is ended
	closed chan struct{}
	once   sync.Once
}

// Exec runs until ctx ends.
func (f *fake) Exec(ctx context.Context, _ string, _ runtime.Command) error {
	f.runs <- true
	<-ctx.Done()
	return ctx.Err()
}

func (f *fake) Kill(i int) error { f.did = append(f.did, "kill"); return nil }
func (f *fake) Freeze(i int, frozen bool) error {
	if !frozen {
		return errors.New("it is not stopped")
	}
	f.did = append(f.did, "stop")
	return nil
}

// Restart replaces node i, whose cable is the end of a pipe.
func (f *fake) Restart(_ context.Context, i int) (boot.Link, error) {
	ours, end, err := control.Connected()
	if err != nil {
		return boot.Link{}, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return boot.Link{}, err
	}
	defer r.Close()
	defer w.Close()
	cable, err := unix.Dup(int(w.Fd()))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[i].Conn.Close()
	f.nodes[i] = &runtime.Proc{Name: f.nodes[i].Name, Conn: ours, PID: 1000 + i, Link: boot.Link{Kind: boot.TAP}}
	f.ends[1+i] = end
	return boot.Link{Kind: boot.TAP, FD: cable}, err
}

// newFake returns the cluster of a spec.
func newFake(t *testing.T, spec runtime.Spec) *fake {
	t.Helper()
	f := &fake{closed: make(chan struct{}), runs: make(chan bool, 8)}
	f.exits = make(chan runtime.Exit, 8)
	if spec.Lab == "dies" {
		f.exits <- runtime.Exit{Name: "h", Err: &runtime.ExitError{Name: "h", State: "signal: killed"}}
	}
	proc := func(name string) *runtime.Proc {
		ours, end, err := control.Connected()
		if err != nil {
			t.Fatal(err)
		}
		f.ends = append(f.ends, end)
		t.Cleanup(func() { end.Close() })
		return &runtime.Proc{Name: name, Conn: ours, Link: boot.Link{Kind: boot.TAP}}
	}
	f.fabric = proc(runtime.Fabric)
	for _, n := range spec.Nodes {
		f.nodes = append(f.nodes, proc(n.Name))
	}
	return f
}

func (f *fake) Close() error {
	f.once.Do(func() {
		close(f.closed)
		close(f.exits)
	})
	return nil
}

const secret = "0123456789abcdef0123456789abcdef"

// listenHere listens at an address of this machine.
func listenHere(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// startAgent starts an agent and returns its address, and the clusters that it launches.
func startAgent(t *testing.T) (addr string, launched chan *fake) {
	t.Helper()
	return startAgentAt(t, listenHere(t))
}

// startAgentAt is startAgent with a listener.
func startAgentAt(t *testing.T, l net.Listener) (addr string, launched chan *fake) {
	t.Helper()
	launched = make(chan *fake, 8)
	a := Agent{Secret: secret, Build: "this", Say: func(string) {},
		Launch: func(_ context.Context, spec runtime.Spec) (runtime.Cluster, error) {
			f := newFake(t, spec)
			launched <- f
			return f, nil
		}}
	testenv.Background(t, func(ctx context.Context) error { return a.Serve(ctx, l) })
	return l.Addr().String(), launched
}

// twoMachines launches a run, or a lab that stays up, of a node on each of two agents.
func twoMachines(t *testing.T, standing bool) (near []runtime.Cluster, far []*fake) {
	t.Helper()
	addrs := make([]string, 2)
	launched := make([]chan *fake, 2)
	for k := range addrs {
		addrs[k], launched[k] = startAgent(t)
	}
	l, err := (&Group{Addrs: addrs, Secret: secret, Build: "this"}).Launches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	near = make([]runtime.Cluster, 2)
	errs := make([]error, 2)
	var all sync.WaitGroup
	for k := range near {
		all.Go(func() {
			near[k], errs[k] = l[k](t.Context(), runtime.Spec{Lab: "lab", Nodes: []boot.NodeSpec{{Name: "h"}},
				Standing: standing})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for k := range near {
		far = append(far, <-launched[k])
		t.Cleanup(func() { _ = near[k].Close() })
	}
	return near, far
}

// expect receives a message of a kind.
func expect(t *testing.T, c *control.Conn, kind string, v any) []int {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(quiettest.Patience))
	fds, err := c.Expect(kind, v)
	if err != nil {
		t.Fatal(err)
	}
	return fds
}

// Messages reach the processes, with the start in the clock of their machine, and the fabric
// processes of two machines get the two ends of a stream, and the same keys.
func TestTwoMachines(t *testing.T) {
	near, far := twoMachines(t, false)
	var ends [2]net.Conn
	var keys [2][]realtime.Keys
	for k := range near {
		if err := near[k].Fabric().Conn.SendValue(realtime.KindConfigure, realtime.Config{MaxFrame: 5}); err != nil {
			t.Fatal(err)
		}
		var c realtime.Config
		if expect(t, far[k].ends[0], realtime.KindConfigure, &c); c.MaxFrame != 5 {
			t.Errorf("%+v", c)
		}
		fds := expect(t, far[k].ends[0], realtime.KindPeers, &keys[k])
		if len(fds) != 1 || len(keys[k]) != 1 {
			t.Fatalf("%d streams, %d keys", len(fds), len(keys[k]))
		}
		f := os.NewFile(uintptr(fds[0]), "stream")
		defer f.Close()
		var err error
		if ends[k], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		defer ends[k].Close()
		if err := far[k].ends[1].SendValue("hello", k); err != nil {
			t.Fatal(err)
		}
		var said int
		if expect(t, near[k].Node(0).Conn, "hello", &said); said != k {
			t.Errorf("node %d said %d", k, said)
		}
	}
	a, b := keys[0][0], keys[1][0]
	if len(a.Send) != 32 || !bytes.Equal(a.Send, b.Receive) || !bytes.Equal(a.Receive, b.Send) || bytes.Equal(a.Send, a.Receive) {
		t.Errorf("keys %x and %x", a, b)
	}
	for k := range ends {
		if _, err := ends[k].Write([]byte("frame")); err != nil {
			t.Fatal(err)
		}
		_ = ends[1-k].SetReadDeadline(time.Now().Add(quiettest.Patience))
		x := make([]byte, 10)
		if n, err := ends[1-k].Read(x); err != nil || string(x[:n]) != "frame" {
			t.Errorf("%q crossed: %v", x[:n], err)
		}
	}
	c := near[1].(*cluster)
	c.mu.Lock()
	c.clock.latest = []clockSample{{offset: 7e15, trip: 900}, {offset: 1e15, trip: 10}} // the second is the better one
	c.mu.Unlock()
	if err := errors.Join(near[1].Fabric().Conn.SendValue(realtime.KindStart, realtime.Start{T0: 5}),
		near[1].Node(0).Conn.SendValue(agent.KindStart, agent.Start{T0: 6})); err != nil {
		t.Fatal(err)
	}
	var fabric realtime.Start
	var node agent.Start
	expect(t, far[1].ends[0], realtime.KindStart, &fabric)
	expect(t, far[1].ends[1], agent.KindStart, &node)
	if d := fabric.T0 - 5; d != 1e15 && (d < -1e9 || d > 1e9) || node.T0-6 != d && (node.T0 < -1e9 || node.T0 > 1e9) {
		t.Errorf("lab time begins at %d and %d", fabric.T0, node.T0)
	}
}

// The launcher learns of the end of a process, and closing its cluster ends the processes.
func TestLauncherLearnsOfEnds(t *testing.T) {
	near, far := twoMachines(t, false)
	far[0].exits <- runtime.Exit{Name: "h", Err: &runtime.ExitError{Name: "h", State: "signal: killed"}}
	if e := <-near[0].Exits(); e.Name != "h" || e.Err.State != "signal: killed" {
		t.Errorf("%+v", e)
	}
	if err := near[0].Close(); err != nil {
		t.Error(err)
	}
	<-far[0].closed
	near[1].(*cluster).session.Close() // as if its machine had gone
	if e := <-near[1].Exits(); e.Name != "agent" {
		t.Errorf("%+v", e)
	}
	<-far[1].closed
}

// Captured frames come in order and none is lost on the way; a reader that does not read holds up
// the capture and fills no memory. The end of either side is that of the other.
func TestCapture(t *testing.T) {
	near, far := twoMachines(t, false)
	begin := func() (ours *os.File, there int) {
		ours, theirs, err := capture.Messages()
		if err != nil {
			t.Fatal(err)
		}
		if err := near[1].Fabric().Conn.SendValue(realtime.KindCapture, realtime.Capture{Port: 3, Host: -1},
			int(theirs.Fd())); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		var c realtime.Capture
		fds := expect(t, far[1].ends[0], realtime.KindCapture, &c)
		if len(fds) != 1 || c.Port != 3 {
			t.Fatalf("%d descriptors came with the capture of %+v", len(fds), c)
		}
		return ours, fds[0]
	}
	ours, there := begin()
	defer ours.Close()
	sent, record := 0, make([]byte, 4096)
	for idle := 0; idle < 20; { // until all buffers are full
		binary.BigEndian.PutUint32(record, uint32(sent))
		if err := unix.Send(there, record, unix.MSG_DONTWAIT); err == nil {
			sent, idle = sent+1, 0
		} else if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) {
			idle++
			time.Sleep(10 * time.Millisecond) // the socket says nothing of the buffers behind it
		} else {
			t.Fatal(err)
		}
	}
	if most := 32 << 20; sent*len(record) > most || sent < 10 {
		t.Errorf("%d records fill the buffers", sent)
	}
	unix.Close(there)
	_ = ours.SetReadDeadline(time.Now().Add(quiettest.Patience))
	for i := range sent {
		b := make([]byte, capture.MaxRecord)
		n, err := ours.Read(b)
		if err != nil || n != len(record) || int(binary.BigEndian.Uint32(b)) != i {
			t.Fatalf("record %d: %d bytes, %v", i, n, err)
		}
	}
	if n, err := ours.Read(record); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %d bytes, %v", n, err)
	}
	ours, there = begin()
	defer unix.Close(there)
	ours.Close()
	poll := []unix.PollFd{{Fd: int32(there)}}
	for end := time.Now().Add(quiettest.Patience); poll[0].Revents&unix.POLLHUP == 0; {
		if _, err := unix.Poll(poll, 100); err != nil && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			t.Fatal("the capture goes on without a reader", err)
		}
	}
}

// A reader that takes nothing does not hold up the end of the lab; one that still reads gets what
// was captured.
func TestCaptureThatNobodyReads(t *testing.T) {
	for _, reads := range []bool{false, true} {
		near, far := twoMachines(t, true)
		ours, theirs, err := capture.Messages()
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		if err := near[1].Fabric().Conn.SendValue(realtime.KindCapture, realtime.Capture{Port: 3, Host: -1},
			int(theirs.Fd())); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		there := expect(t, far[1].ends[0], realtime.KindCapture, nil)[0]
		var all sync.WaitGroup
		all.Go(func() { // until the fabric process ends
			for record := make([]byte, 4096); err == nil; {
				err = unix.Send(there, record, unix.MSG_NOSIGNAL)
			}
		})
		all.Go(func() {
			<-far[1].closed
			_ = unix.Shutdown(there, unix.SHUT_RDWR)
		})
		got := 0
		all.Go(func() {
			b := make([]byte, capture.MaxRecord)
			for n := 1; reads && n > 0; got++ {
				n, _ = ours.Read(b)
			}
		})
		time.Sleep(silence + time.Second) // a reader that takes nothing for that long is stuck
		watch := quiettest.Start()
		if err := near[1].Close(); err != nil {
			t.Error(err)
		}
		watch.AtMost(t, time.Second, "the end of a lab with a capture")
		all.Wait()
		unix.Close(there)
		if reads && got < 1000 {
			t.Errorf("%d records came", got)
		}
	}
}

// A program whose machine is lost ends as its node does, and so does one that is started later,
// also if the agent ends in order.
func TestProgramOfALostMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	launched := make(chan *fake, 1)
	a := Agent{Secret: secret, Build: "this", Say: func(string) {},
		Launch: func(_ context.Context, spec runtime.Spec) (runtime.Cluster, error) {
			f := newFake(t, spec)
			launched <- f
			return f, nil
		}}
	ctx, lose := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- a.Serve(ctx, l) }()
	launches, err := (&Group{Addrs: []string{l.Addr().String()}, Secret: secret, Build: "this"}).Launches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := launches[0](t.Context(), runtime.Spec{Lab: "lab", Nodes: []boot.NodeSpec{{Name: "h"}}, Standing: true})
	if err != nil {
		t.Fatal(err)
	}
	exec := func() error {
		return c.Exec(t.Context(), "h", runtime.Command{Args: []string{"sleep"}})
	}
	ended := make(chan error, 1)
	go func() { ended <- exec() }()
	<-(<-launched).runs
	lose()
	for _, err := range []error{<-ended, exec()} {
		var end *runtime.ExitError
		if !errors.As(err, &end) || end.Name != "h" || !end.Lost || !strings.Contains(end.State, "it was on m1: ") {
			t.Errorf("%v", err)
		}
	}
	if err := errors.Join(<-over, c.Close()); err != nil {
		t.Error(err)
	}
}

// The error of a launch names a process that ended before all were ready.
func TestEndBeforeAllIsReady(t *testing.T) {
	addr, launched := startAgent(t)
	l, err := (&Group{Addrs: []string{addr}, Secret: secret, Build: "this"}).Launches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l[0](t.Context(), runtime.Spec{Lab: "dies", Nodes: []boot.NodeSpec{{Name: "h"}}})
	if err == nil { // the news came later
		e := <-c.Exits()
		err = errors.Join(e.Err, c.Close())
	}
	if err == nil || !strings.Contains(err.Error(), "h died: signal: killed") {
		t.Error(err)
	}
	<-(<-launched).closed
}

// A module comes with the configuration of each node, and crosses once.
func TestModule(t *testing.T) {
	near, far := twoMachines(t, false)
	text := bytes.Repeat([]byte("module"), 1<<19)
	f, err := emulate.Sealed("module", text)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 2 {
		if err := near[0].Node(0).Conn.SendValue(agent.KindConfigure, "how", int(f.Fd())); err != nil {
			t.Fatal(err)
		}
		fds := expect(t, far[0].ends[1], agent.KindConfigure, nil)
		if len(fds) != 1 {
			t.Fatalf("%d descriptors", len(fds))
		}
		got, err := io.ReadAll(io.NewSectionReader(os.NewFile(uintptr(fds[0]), "module"), 0, int64(len(text)+1)))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
		}
	}
	if err := near[0].(runtime.Restarter).Kill(0); err == nil || !strings.Contains(err.Error(), "stays up") {
		t.Errorf("a node of a run was killed: %v", err)
	}
}

// A node of a lab that stays up is killed, stopped and started again on its machine, where its new
// cable stays.
func TestRestart(t *testing.T) {
	near, far := twoMachines(t, true)
	r := near[1].(runtime.Restarter)
	if err := errors.Join(r.Kill(0), r.Freeze(0, true)); err != nil || !slices.Equal(far[1].did, []string{"kill", "stop"}) {
		t.Errorf("%v, %v", far[1].did, err)
	}
	if err := r.Freeze(0, false); err == nil || !strings.Contains(err.Error(), "m2: it is not stopped") {
		t.Error(err)
	}
	link, err := r.Restart(t.Context(), 0)
	if err != nil || link.FD != -1 || link.Kind != boot.TAP || near[1].Node(0).FarPID != 1000 {
		t.Fatalf("%+v of process %d, %v", link, near[1].Node(0).FarPID, err)
	}
	if err := near[1].Fabric().Conn.SendValue(realtime.KindPlug, realtime.Plug{Host: 7}); err != nil {
		t.Fatal(err)
	}
	var p realtime.Plug
	fds := expect(t, far[1].ends[0], realtime.KindPlug, &p)
	defer control.CloseAll(fds)
	if len(fds) != 1 || p.Host != 7 {
		t.Errorf("%d cables came with %+v", len(fds), p)
	}
	if err := far[1].ends[1].SendValue("hello", 5); err != nil {
		t.Fatal(err)
	}
	var said int
	if expect(t, near[1].Node(0).Conn, "hello", &said); said != 5 {
		t.Errorf("the node said %d", said)
	}
}

// However much room the other end says there is, no more than a window is under way; and what it
// sends beyond ends the stream.
func TestWindow(t *testing.T) {
	ours, theirs, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	go func() {
		for _, _, err := theirs.Recv(); err == nil; _, _, err = theirs.Recv() {
		}
	}()
	conn := &link{Conn: ours}
	out := newOutlet(conn, "x")
	out.took(1 << 40)
	out.took(-1 << 40)
	wrote := make(chan error, 1)
	go func() {
		for range window / 1024 {
			if _, err := out.Write(make([]byte, 1024)); err != nil {
				t.Error(err)
			}
		}
		_, err := out.Write([]byte{1})
		wrote <- err
	}()
	select {
	case <-wrote:
		t.Error("more than a window was sent")
	case <-time.After(50 * time.Millisecond):
	}
	out.end()
	if err := <-wrote; err == nil {
		t.Error("a stream that has ended was written to")
	}
	r, w := io.Pipe() // nobody reads
	in := newInlet(conn, "x", w, nil)
	take := func(n int) error {
		m, err := control.Encode("x", make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		return in.take(m)
	}
	if err := errors.Join(take(1), take(window-1)); err != nil {
		t.Error(err)
	}
	if take(1) == nil || take(0) == nil {
		t.Error("more than a window was taken")
	}
	r.Close()
	in.end()
	<-in.done
}

// Who does not have the secret gets nothing, and neither does who has it and asks for what is not
// there.
func TestStrangers(t *testing.T) {
	addr, launched := startAgent(t)
	other, err := secure(strings.Repeat("x", minSecret))
	if err != nil {
		t.Fatal(err)
	}
	own, err := secure(secret)
	if err != nil {
		t.Fatal(err)
	}
	s := session{Run: "r", Build: "this", Peers: []string{addr}, Nodes: []boot.NodeSpec{{Name: "h"}}}
	nobody := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	for name, config := range map[string]*tls.Config{"another secret": other, "no secret": nobody} {
		conn, err := dial(t.Context(), addr, config, kindSession, s)
		if err == nil {
			_, _, err = conn.Recv()
			conn.Close()
		}
		if err == nil {
			t.Errorf("%s: was answered", name)
		}
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(quiettest.Patience))
	if b, err := io.ReadAll(c); err != nil && !errors.Is(err, net.ErrClosed) && strings.Contains(string(b), "weft") {
		t.Errorf("garbage got %q, %v", b, err)
	}
	bad := s
	bad.Build = "that"
	for kind, what := range map[string]any{
		kindSession: bad, kindProcess: process{Run: "another"}, "more": nil, kindUp: up{},
		kindTap: tap{"another"}, kindModule: module{"another", 1}, kindControl: order{Run: "another", Do: doKill},
	} {
		conn, err := dial(t.Context(), addr, own, kind, what)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(quiettest.Patience))
		m, _, err := conn.Recv()
		for err == nil && m.Kind == kindHere {
			m, _, err = conn.Recv()
		}
		if err == nil && m.Kind != control.KindError {
			t.Errorf("%s: %q", kind, m.Kind)
		}
		conn.Close()
	}
	select {
	case <-launched:
		t.Error("something was launched")
	default:
	}
}

// engine is an Engine that starts agents in this process. It implements Engine.
type engine struct {
	t     *testing.T
	build string
	hosts []Host
	look  error

	mu      sync.Mutex
	stop    map[string]context.CancelFunc // by host
	ended   sync.WaitGroup
	removed int
}

func (e *engine) Name() string                           { return "engine" }
func (e *engine) Hosts(context.Context) ([]Host, error)  { return e.hosts, nil }
func (e *engine) Look(context.Context, *Placement) error { return e.look }
func (e *engine) Where() string                          { return "here" }
func (e *engine) Remove(_ context.Context, where, name string) error {
	if where != "here" || !strings.HasPrefix(name, Prefix) {
		return fmt.Errorf("%q at %q", name, where)
	}
	e.removed++
	return nil
}
func (e *engine) Place(_ context.Context, p *Placement) error { // the last machine is the first to come
	for _, h := range slices.Backward(e.hosts[:p.Count]) {
		ctx, cancel := context.WithCancel(e.t.Context())
		e.mu.Lock()
		e.stop[h.Name] = cancel
		e.mu.Unlock()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		a := Agent{Secret: p.Secret, Build: e.build, Say: func(string) {},
			Launch: func(_ context.Context, spec runtime.Spec) (runtime.Cluster, error) { return newFake(e.t, spec), nil },
			Measure: func(context.Context) (emulate.Capacity, error) {
				rate := float64(len(h.Name))
				return emulate.Capacity{PacketsPerSecond: rate, Lateness: []emulate.LatenessAt{{PacketsPerSecond: rate}}}, nil
			}}
		e.ended.Go(func() { _ = a.Serve(ctx, l) })
		e.ended.Go(func() {
			defer cancel()
			_ = a.Report(ctx, p.Meet, h.Name, l.Addr().(*net.TCPAddr).Port)
		})
	}
	return nil
}

// newPlaced returns what places two agents on an engine with some machines.
func newPlaced(t *testing.T, hosts ...string) (*Placed, *engine) {
	e := &engine{t: t, build: "this", stop: map[string]context.CancelFunc{}}
	for _, h := range hosts {
		e.hosts = append(e.hosts, Host{h, "127.0.0.1"})
	}
	return &Placed{Engine: e, Build: "this", Placement: Placement{Count: 2}}, e
}

// Agents of an engine are in the order of their names. They are placed once, tell what their
// machines carry, and end with what placed them. One that is gone is named. A journal knows of them
// before the engine does, and what it knows removes them.
func TestPlaced(t *testing.T) {
	p, e := newPlaced(t, "alpha", "be")
	var ops []runtime.Op
	p.Ahead = func(op runtime.Op) error {
		if len(e.stop) > 0 {
			t.Error("the engine has agents already")
		}
		ops = append(ops, op)
		return nil
	}
	all, err := p.Capacities(t.Context())
	if err != nil || len(all) != 2 || all[0].PacketsPerSecond != 5 || all[1].PacketsPerSecond != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	launches, err := p.Launches(t.Context())
	if err != nil || len(launches) != 2 {
		t.Fatal(len(launches), err)
	}
	e.stop["be"]()
	for err == nil { // until its connection has ended
		_, err = p.Launches(t.Context())
		runtimes.Gosched()
	}
	if !strings.Contains(err.Error(), "m2 (be at 127.0.0.1:") {
		t.Error(err)
	}
	if names := strings.Join(p.Names(), ", "); names != "m1 is alpha, m2 is be" {
		t.Error(names)
	}
	var said []string
	p.Say = func(line string) { said = append(said, line) }
	e.look = errors.New("be was switched off")
	if err := errors.Join(p.Close(t.Context()), p.Close(t.Context())); err != nil || e.removed != 1 {
		t.Error(e.removed, err)
	}
	if !slices.Equal(said, []string{"engine: be was switched off"}) {
		t.Errorf("it said %q", said)
	}
	e.ended.Wait()
	if len(ops) != 1 || ops[0].Kind != runtime.Agents {
		t.Fatalf("%+v", ops)
	}
	known := []Engine{e}
	if err := Undo(t.Context(), known, ops[0].Where, ops[0].Name); err != nil || e.removed != 2 {
		t.Error(e.removed, err)
	}
	if err := Undo(t.Context(), known, "other here", ops[0].Name); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Error(err)
	}
}

// What cannot be placed ends with its reason, and leaves nothing.
func TestNotPlaced(t *testing.T) {
	few, _ := newPlaced(t, "alone")
	other, builds := newPlaced(t, "a", "b")
	builds.build = "that"
	broken, looks := newPlaced(t, "a", "b")
	looks.look = errors.New("no room")
	for want, p := range map[string]*Placed{
		"1 machine take work (alone)": few, "another build of weft (that)": other, "no room": broken,
	} {
		e := p.Engine.(*engine)
		if p == broken {
			p.Engine = nobody{e}
		}
		if _, err := p.Launches(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
		if p != few && e.removed != 1 {
			t.Errorf("%s: removed %d times", want, e.removed)
		}
		e.ended.Wait()
	}
}

// nobody is an engine whose agents do not come.
type nobody struct{ *engine }

func (nobody) Place(context.Context, *Placement) error { return nil }

// Nobody without the secret can join a meeting, and nobody joins with nonsense.
func TestMeetingStrangers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := meet(t.Context(), l, secret, "this")
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	addr := l.Addr().String()
	stranger := Agent{Secret: strings.Repeat("x", minSecret), Build: "this"}
	_ = stranger.Report(t.Context(), addr, "h", 1) // in TLS 1.3 the client's handshake ends before the server looks
	own, err := secure(secret)
	if err != nil {
		t.Fatal(err)
	}
	for kind, what := range map[string]any{kindSession: session{}, kindJoin: "text"} {
		conn, err := dial(t.Context(), addr, own, kind, what)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(quiettest.Patience))
		if m, _, err := conn.Recv(); err == nil && m.Kind != control.KindError {
			t.Errorf("%s: %q", kind, m.Kind)
		}
		conn.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if all, err := m.wait(ctx, 1, nil); err == nil {
		t.Errorf("%+v came", all)
	}
}

// Who says nothing, and who says again what somebody with the secret said, gets nothing and keeps
// nobody out.
func TestSlowStrangersAndReplay(t *testing.T) {
	addr, launched := startAgent(t)
	for range maxNew + 8 { // more than have room
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	var said bytes.Buffer // by a connection that is a session
	began := quiettest.Start()
	s := session{Run: "r", Build: "that", Peers: []string{addr}, Nodes: []boot.NodeSpec{{Name: "h"}}}
	config, err := secure(secret)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := messages(tls.Client(&recorded{raw, &said}, config))
	if err == nil {
		err = conn.SendValue(kindSession, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err := next(conn, kindUp); err == nil || !strings.Contains(err.Error(), "another build") {
		t.Errorf("%v, %v", m.Kind, err)
	}
	conn.Close()
	began.AtMost(t, silence, "the answer")
	again, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Write(said.Bytes()); err != nil {
		t.Fatal(err)
	}
	_ = again.SetReadDeadline(time.Now().Add(quiettest.Patience))
	answer, _ := io.ReadAll(again)
	if bytes.Contains(answer, []byte("build")) || said.Len() == 0 {
		t.Errorf("%d bytes were answered with %q", said.Len(), answer)
	}
	select {
	case <-launched:
		t.Error("something was launched")
	default:
	}
}

// recorded is a connection that keeps what is written to it.
type recorded struct {
	net.Conn
	said *bytes.Buffer
}

func (r *recorded) Write(p []byte) (int, error) {
	r.said.Write(p)
	return r.Conn.Write(p)
}

// A secret that others can read, or guess, is none.
func TestReadSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for _, c := range []struct {
		text string
		mode os.FileMode
		says string
	}{{secret + "\n", 0o600, ""}, {secret, 0o644, "chmod 600"}, {"short", 0o600, "at least 32"}} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadSecret(path)
		if c.says == "" && (err != nil || got != secret) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
	}
}

// flaky is a listener whose first attempts to accept fail.
type flaky struct {
	net.Listener
	fails atomic.Int32
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.fails.Add(-1) >= 0 {
		return nil, os.NewSyscallError("accept4", unix.EMFILE)
	}
	return f.Listener.Accept()
}

// An agent that has no descriptor left for a connection goes on once it has.
func TestNoDescriptorForAConnection(t *testing.T) {
	l := &flaky{Listener: listenHere(t)}
	l.fails.Store(2)
	addr, _ := startAgentAt(t, l)
	config, err := secure(secret)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dial(t.Context(), addr, config, kindModule, module{Run: "none"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := next(conn, kindUp); err == nil || !strings.Contains(err.Error(), errEnded.Error()) {
		t.Error(err)
	}
}

// Two parts of a run on one agent are refused by what to change.
func TestOneAgentTwice(t *testing.T) {
	addr, _ := startAgent(t)
	all, err := (&Group{Addrs: []string{addr, addr}, Secret: secret, Build: "this"}).Launches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refused := func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "another part of the run")
	}
	errs := make([]error, len(all))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var both sync.WaitGroup
	for k := range all {
		both.Go(func() {
			_, errs[k] = all[k](ctx, runtime.Spec{Lab: "lab", Nodes: []boot.NodeSpec{{Name: "h"}}})
			if errs[k] != nil {
				cancel() // the other part waits for a stream from this one
			}
		})
	}
	both.Wait()
	if !slices.ContainsFunc(errs, refused) {
		t.Error(errs)
	}
}

// liar starts an agent that answers a session with what do sends, and returns its address.
func liar(t *testing.T, do func(conn *link)) (addr string) {
	t.Helper()
	config, err := secure(secret)
	if err != nil {
		t.Fatal(err)
	}
	l := listenHere(t)
	testenv.Background(t, func(ctx context.Context) error {
		return serve(ctx, l, config, func(ctx context.Context, conn *link, _ net.Addr) {
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			if m := first(conn); m == nil || m.Kind != kindSession {
				return
			}
			do(conn)
			<-ctx.Done()
		})
	})
	return l.Addr().String()
}

// What an agent says is bounded, and does not control the terminal where it is printed.
func TestLyingAgents(t *testing.T) {
	escape := "\x1b[2J"
	many := func(s string, n int) []byte {
		return append([]byte{'['}, bytes.TrimSuffix(bytes.Repeat([]byte(s+","), n), []byte{','})...)
	}
	for what, c := range map[string]struct {
		message control.Message
		want    string
	}{
		"a huge message": {control.Message{Kind: kindUp,
			Body: append(append([]byte(`{"Nodes":`), many("{}", maxMessage)...), []byte("]}")...)}, control.ErrTooLarge.Error()},
		"an error": {control.Message{Kind: control.KindError, Body: []byte(`"\u001b[2Jmy words"`)}, "my words"},
		"an end": {control.Message{Kind: kindExit, Body: []byte(`{"Name":"\u001b[2Jh","State":"\u001b[2J","Stderr":"\u001b[2Jit"}`)},
			"died"},
		"too few nodes": {control.Message{Kind: kindUp, Body: []byte(`{}`)}, "0 nodes are up, of 1"},
	} {
		t.Run(what, func(t *testing.T) {
			addr := liar(t, func(conn *link) { _ = conn.Send(c.message) })
			all, err := (&Group{Addrs: []string{addr, addr}, Secret: secret, Build: "this"}).Launches(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = all[0](t.Context(), runtime.Spec{Lab: "lab", Nodes: []boot.NodeSpec{{Name: "h"}}})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), escape) {
				t.Errorf("%q, want %q", err, c.want)
			}
		})
	}
}

// The files of a program whose agent was killed are removed, and nothing else.
func TestFilesOfAKilledAgent(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	files := map[string][]byte{"words": []byte("x")}
	mine, err := placeFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	self, err := runtime.Self()
	if err != nil {
		t.Fatal(err)
	}
	ended := self
	ended.Start++ // its PID is this process's now
	killed := strings.Replace(mine, self.String(), ended.String(), 1)
	stay := []string{mine, filepath.Join(os.TempDir(), "weft-files-of-mine"), filepath.Join(os.TempDir(), "weft-files-"+
		ended.String())}
	for _, name := range append(stay[1:], killed) {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if removed, unseen, err := CleanFiles(); !slices.Equal(removed, []string{killed}) || unseen != nil || err != nil {
		t.Errorf("removed %v, %v, %v", removed, unseen, err)
	}
	for _, name := range stay {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := placeFiles(map[string][]byte{"../words": nil}); err == nil {
		t.Error("a file outside of the folder was written")
	}
}
