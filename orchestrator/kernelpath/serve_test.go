package kernelpath

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/control"
	"weft/internal/dockertest"
	"weft/internal/privilege"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
	"weft/orchestrator/uml"
	"weft/orchestrator/uml/umltest"
	"weft/realtime"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/probe"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// TestMain also runs as the nodes of the built-in runtime, and as an ordinary user in a user
// namespace.
func TestMain(m *testing.M) {
	if code, played := uml.Role(os.Args); played {
		os.Exit(code)
	}
	switch {
	case len(os.Args) > 1 && os.Args[1] == "node":
		if err := serveNode(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) > 1 && os.Args[1] == "enter":
		if privilege.NeedsUserNS() {
			code, err := namespace.Enter(context.Background(), os.Args[1:])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
			os.Exit(code)
		}
		os.Args = slices.Delete(os.Args, 1, 2)
	}
	code := m.Run()
	dockertest.Stop()
	os.Exit(code)
}

// serveNode is the process of a node, which holds the namespaces.
func serveNode() error {
	conn, err := control.Open(control.FD)
	if err != nil {
		return err
	}
	if _, err := boot.Node(conn); err != nil {
		return err
	}
	return boot.Hold(conn)
}

// dilation turns 100 Gb/s into 50 Mb/s, which any machine can keep up.
const dilation = 2000

// runtimeSpec returns what a runtime must start for a planned network.
func runtimeSpec(l *Lab, n *Network) runtime.Spec {
	s := runtime.Spec{Lab: "serve", Cables: n.Cables}
	for i := range n.Switches {
		s.Switches = append(s.Switches, boot.NodeSpec{Name: n.Switches[i].Name, Switch: true, MTU: l.MTU})
	}
	for i := range n.Hosts {
		h := &n.Hosts[i]
		home := &n.Switches[h.Home]
		s.Nodes = append(s.Nodes, boot.NodeSpec{
			Name: h.Name, Addr: netip.PrefixFrom(h.Addr, 32), MAC: h.MAC, MTU: l.MTU, Peers: h.Peers, Wired: true,
			Gateway: &boot.Gateway{Addr: home.Addr, MAC: home.MAC, Net: l.Net},
		})
	}
	return s
}

// buildNodeProgram builds the program that replaces weft in containers, and returns its path.
func buildNodeProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", path,
		"weft/orchestrator/runtime/docker/testdata/node")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// launch brings up a lab in a runtime, or skips the test if the runtime is not available.
func launch(t *testing.T, where string, s runtime.Spec) runtime.Cluster {
	t.Helper()
	testenv.NeedNamespaces(t)
	if where == "docker" {
		if _, err := docker.Probe(t.Context(), dockertest.Host(t)); err != nil {
			t.Skip(err)
		}
		s.Self = buildNodeProgram(t)
		c, err := docker.Launch(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, err := namespace.Launch(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// launchedInNamespaces runs the network of a lab in namespaces until the test ends.
func launchedInNamespaces(t *testing.T, l *Lab) *carrier {
	t.Helper()
	n, err := Plan(l)
	if err != nil {
		t.Fatal(err)
	}
	c := launch(t, "namespace", runtimeSpec(l, n))
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return newCarrier(t, l, n, c)
}

// newCarrier returns a carrier for the nodes of a cluster.
func newCarrier(t *testing.T, l *Lab, n *Network, c runtime.Cluster) *carrier {
	t.Helper()
	k := &carrier{net: n, nodes: c, routes: make([]*routing, len(n.Switches))}
	k.cfg = realtime.Config{Network: *l.Fabric, Dilation: dilation, MaxFrame: int(l.MTU + qdisc.Ethernet)}
	t.Cleanup(k.close)
	var err error
	if k.kernel, err = probe.Probe(); err != nil {
		t.Fatal(err)
	}
	if err := k.forward(); err != nil {
		t.Fatal(err)
	}
	if err := k.open(); err != nil {
		t.Fatal(err)
	}
	shape := k.shape
	if k.kernel.Complete() != nil {
		shape = k.setRates
	}
	if err := shape(); err != nil {
		t.Fatal(err)
	}
	return k
}

// setRates shapes every direction to its rate, with what kernels without netem provide.
func (c *carrier) setRates() error {
	if err := c.open(); err != nil {
		return err
	}
	c.resetLinks()
	for p := range c.lines {
		tree, err := qdisc.Plan(c.queueOnly(p), c.kernel)
		if err == nil {
			err = c.reach(p)
		}
		if err == nil {
			c.lines[p].tree = tree
			err = c.lines[p].dir.Apply(tree)
		}
		if err != nil {
			return c.of(p, err)
		}
	}
	return nil
}

// queueOnly returns the settings of a port without propagation or errors.
func (c *carrier) queueOnly(p int) qdisc.Direction {
	d := c.direction(p)
	d.Wire, d.AtEnds, d.RED, d.Source = false, false, nil, nil
	return d
}

// In both runtimes the nodes match Plan: bridges, routes over groups of next hops on both paths,
// and links at their rates. Package emulate tests what some kernels lack (delay, marks) under User
// Mode Linux.
func TestPrivForwards(t *testing.T) {
	for _, where := range []string{"namespace", "docker"} {
		t.Run(where, func(t *testing.T) {
			l := twoSwitches(2, 2)
			for i := range l.Fabric.Ports {
				l.Fabric.Ports[i].Delay = 0
			}
			n, err := Plan(l)
			if err != nil {
				t.Fatal(err)
			}
			before := interfaces(t)
			c := launch(t, where, runtimeSpec(l, n))
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if after := interfaces(t); !slices.Equal(before, after) {
					t.Errorf("interfaces before: %v; after: %v", before, after)
				}
			}()
			k := newCarrier(t, l, n, c)
			checkSwitchState(t, c, n, k.choices != nil)
			checkOffloads(t, c, n)
			for from, to := range map[string]string{"h0": "10.0.0.2", "h1": "10.0.0.3", "h3": "10.0.0.1"} {
				if out, err := run(t, c, from, "ping", "-c", "2", "-i", "0.1", "-W", "60", to); err != nil {
					t.Errorf("ping from %s to %s: %v: %s", from, to, err, out)
				}
			}
			checkSpreading(t, c, n)
			checkRate(t, k, n.Switches[0].Ports[1].Port)
			checkRate(t, k, 1) // to the first host
		})
	}
}

// The same holds without root, in a user namespace.
func TestPrivForwardsForAnOrdinaryUser(t *testing.T) {
	testenv.NeedRoot(t)
	out, err := asNobody("^TestPrivForwards$/^namespace$")
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	if strings.Contains(out, "--- SKIP") {
		t.Skip(out)
	}
}

// asNobody runs tests as an ordinary user in a user namespace.
func asNobody(tests string) (output string, err error) {
	cmd := exec.Command("/proc/self/exe", "enter", "-test.run="+tests, "-test.v")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: 65534,
		Gid: 65534}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// On a kernel with all parts, an ordinary user's links have delays and marks, too.
func TestUMLShapesForAnOrdinaryUser(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	out, err := asNobody("^TestPrivShapes$")
	skipped := strings.Contains(out, "--- SKIP: TestPrivShapes")
	if err != nil || !skipped && !strings.Contains(out, "--- PASS: TestPrivShapes") {
		t.Errorf("%v:\n%s", err, out)
	}
	t.Log(out)
	if skipped {
		t.Skip("skipped there")
	}
}

func TestPrivShapes(t *testing.T) {
	testenv.NeedNamespaces(t)
	if _, err := Available(); err != nil {
		t.Skip(err)
	}
	l := twoSwitches(1, 1)
	for i := range l.Fabric.Ports {
		p := &l.Fabric.Ports[i]
		p.Rate, p.Delay = 2*units.Gbps, 10*units.Microsecond // 1 Mb/s and 20 ms
		if int(p.From) >= l.Fabric.Hosts {
			p.ECN = fabric.ECNConfig{On: true, Ingress: true, Kmin: 20_000, Kmax: 60_000, Pmax: 1}
		}
	}
	k := launchedInNamespaces(t, l)
	quiettest.Check(t, 2, func() error {
		k.findings = nil
		err := k.verify(t.Context())
		if t.Logf("\n%s", Table(k.findings)); err != nil && !errors.Is(err, errMissed) {
			t.Fatal(err)
		}
		return err
	})
	// Changes by other programs are detected, by reading back and by measuring: here marks that
	// start too late, as after tc qdisc replace.
	const port = 3 // to the second host
	right := k.lines[port].tree
	wrong, says := right, "red 3: min, bytes"
	wrong.Near = slices.Clone(right.Near)
	if right.Gate != nil {
		says = "bpf settings"
		wrong.Gate = &qdisc.Gate{Limit: right.Gate.Limit, RED: &qdisc.RED{Min: 400_000, Max: 500_000, Pmax: 0.25}}
	} else {
		wrong.Near[2].Options = qdisc.REDStage{Min: 400_000, Max: 500_000, MaxP: 1 << 30}
	}
	if err := k.lines[port].dir.Change(right, wrong); err != nil {
		t.Fatal(err)
	}
	quiettest.Check(t, 2, func() error {
		found := k.measure(t.Context(), port)
		if t.Logf("%+v", found); found.Error != "" || !strings.Contains(found.Missed, says) ||
			!strings.Contains(found.Missed, "marks") {
			return fmt.Errorf("marks are wrong, and what is found is %+v", found)
		}
		return nil
	})
}

// All properties of a deployed link can change while packets are queued. None is lost, and the
// counters continue.
func TestUMLChanges(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	l := twoSwitches(1, 1)
	for i := range l.Fabric.Ports {
		p := &l.Fabric.Ports[i]
		p.Rate, p.Delay = 2*units.Gbps, 10*units.Microsecond // 1 Mb/s and 20 ms
	}
	k := launchedInNamespaces(t, l)
	if err := k.begin(); err != nil {
		t.Fatal(err)
	}
	quiettest.Check(t, 3, func() error { return checkChange(t, k, l) })
	quiettest.Check(t, 2, func() error {
		found := k.measure(t.Context(), changed)
		if t.Logf("without delay: %+v", found); found.Error != "" || found.Missed != "" {
			return fmt.Errorf("without delay: %+v", found)
		}
		return nil
	})
}

// changed is a port of the first host.
const changed = 0

// checkChange changes all properties of a link, including its delay to zero, and reports whether
// packets were queued all along.
func checkChange(t *testing.T, k *carrier, l *Lab) error {
	const packets = 30 // some 35 ms each
	s, r, err := k.probes(changed)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer r.Close()
	count := func() qdisc.Statistics {
		s, err := k.statistics(changed)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	line := func(change func(*fabric.Link)) {
		t.Helper()
		to := l.Fabric.Ports[changed].Link
		change(&to)
		if err := k.make(&fabric.Change{Ports: []int{changed, changed + 1}, Link: &to}); err != nil {
			t.Error(err)
			return
		}
		for p := changed; p < changed+2; p++ {
			d, err := qdisc.Plan(k.direction(p), k.kernel)
			if got, e := k.lines[p].dir.Read(d); e != nil {
				t.Error(e)
			} else if err != nil || len(qdisc.Compare(d, got)) > 0 {
				t.Errorf("%+v is\n%v%v%v", to, got, qdisc.Compare(d, got), err)
			}
		}
	}
	line(func(l *fabric.Link) {})
	zero := count()
	done := make(chan []measure.Packet)
	go func() {
		p, err := measure.Run(t.Context(), s, r, measure.Train{Count: packets, Size: l.MTU, Wait: 5 * time.Second})
		if err != nil {
			t.Error(err)
		}
		done <- p
	}()
	before := count()
	for before.Packets+before.Waiting < zero.Packets+packets && t.Context().Err() == nil {
		before = count()
	}
	line(func(l *fabric.Link) { l.Delay = 0 })
	line(func(l *fabric.Link) {})
	line(func(l *fabric.Link) { l.Jitter = 100 * units.Nanosecond })
	line(func(l *fabric.Link) { l.Loss, l.Jitter = 1e-9, 100*units.Nanosecond })
	if d := k.direction(changed); d.Jitter == 0 {
		t.Errorf("a change of loss has put an end to jitter: %+v", d)
	}
	line(func(l *fabric.Link) { l.Duplicate = 1e-9 })
	line(func(l *fabric.Link) { l.Reorder, l.ReorderBy = 0.001, units.Nanosecond })
	line(func(l *fabric.Link) { l.Delay = 0 })
	after := count()
	lost := measure.Lost(<-done)
	if before.Waiting < 15 || after.Waiting < 5 || after.Packets < before.Packets || lost > 0 {
		return fmt.Errorf("before: %+v, after: %+v; %d of %d lost", before, after, lost, packets)
	}
	if s := count(); s.Packets-zero.Packets != packets || s.Arrived-zero.Arrived != packets || s.Lost != zero.Lost {
		t.Errorf("%d were sent: %+v, before %+v", packets, s, zero)
	}
	return nil
}

// checkRate measures a direction until it has the requested rate.
func checkRate(t *testing.T, k *carrier, port int) {
	t.Helper()
	d := k.direction(port)
	if tree := k.lines[port].tree; len(tree.Far) == 0 && (tree.Gate == nil || tree.Gate.Line == nil) {
		d = k.queueOnly(port)
	}
	quiettest.Check(t, 2, func() error {
		found, _, err := k.measureRepeatedly(t.Context(), port, d)
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("port %d: %+v", port, found); !found.OK() {
			return fmt.Errorf("port %d is not as asked: %+v", port, found)
		}
		return nil
	})
}

// checkSwitchState compares the namespace of the first switch with the plan.
func checkSwitchState(t *testing.T, c runtime.Cluster, n *Network, chosen bool) {
	t.Helper()
	sw := &n.Switches[0]
	err := c.Switch(0).Do(func() error {
		bridge, err := netlink.LinkByName(Bridge)
		if err != nil {
			return err
		}
		for _, m := range sw.Rack {
			link, err := netlink.LinkByName(m.Interface)
			if err != nil {
				return err
			}
			if link.Attrs().MasterIndex != bridge.Attrs().Index {
				t.Errorf("%s is not on the bridge", m.Interface)
			}
		}
		for _, to := range sw.Routes {
			route, err := netlink.RouteGet(n.Hosts[to.To].Addr.AsSlice())
			if err != nil || len(route) != 1 {
				return fmt.Errorf("route to %s: %v, %w", n.Hosts[to.To].Name, route, err)
			}
			if !slices.Contains(sw.Groups[to.Group], slices.IndexFunc(sw.Ports,
				func(p Port) bool { return interfaceName(route[0].LinkIndex) == p.Interface })) {
				t.Errorf("%s is reached by %s", n.Hosts[to.To].Name, interfaceName(route[0].LinkIndex))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	out, err := run(t, c, sw.Name, "ip", "nexthop")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no ip of iproute2")
	}
	each := rounds
	if chosen { // by BPF programs
		each = 1
	}
	if hops := strings.Count(out, " via "); err != nil || hops != each*2 || strings.Count(out, "group") != 1 {
		t.Errorf("%d next hops, %v:\n%s", hops, err, out)
	}
	if out, err := run(t, c, sw.Name, "cat", "/proc/sys/net/ipv4/fib_multipath_hash_policy"); err != nil ||
		out != "1\n" {
		t.Errorf("hash policy %q, %v", out, err)
	}
}

// checkOffloads checks that every end of every cable sends single packets with their checksums
// filled in.
func checkOffloads(t *testing.T, c runtime.Cluster, n *Network) {
	t.Helper()
	spares := []struct {
		name string
		get  uint32
	}{{"tx-checksum", 0x16}, {"tso", 0x1e}, {"gso", 0x23}, {"gro", 0x2b}} // ETHTOOL_GTXCSUM, _GTSO, _GGSO, _GGRO
	for _, e := range n.Ends {
		node := c.Switch(max(0, e.Switch))
		if e.Host >= 0 {
			node = c.Node(e.Host)
		}
		err := node.Do(func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			for _, s := range spares {
				value := struct{ cmd, data uint32 }{s.get, 0}
				request := struct {
					name [unix.IFNAMSIZ]byte
					data unsafe.Pointer
					_    [16]byte
				}{data: unsafe.Pointer(&value)}
				copy(request.name[:], e.Interface)
				if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
					uintptr(unsafe.Pointer(&request))); errno != 0 {
					return fmt.Errorf("%s of %s: %w", s.name, e.Interface, errno)
				}
				if value.data != 0 {
					t.Errorf("%+v: %s is on", e, s.name)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// interfaceName returns the name of the interface with an index in this namespace.
func interfaceName(index int) string {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return err.Error()
	}
	return l.Attrs().Name
}

// checkSpreading sends packets of many flows from one rack to the other, and checks that they
// spread over both links between.
func checkSpreading(t *testing.T, c runtime.Cluster, n *Network) {
	t.Helper()
	const flows = 200
	carried := func() (packets [2]uint64) {
		err := c.Switch(0).Do(func() error {
			for i := range packets {
				l, err := netlink.LinkByName(n.Switches[0].Ports[i].Interface)
				if err != nil {
					return err
				}
				packets[i] = l.Attrs().Statistics.TxPackets
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return packets
	}
	before := carried()
	err := c.Node(0).Do(func() error {
		for i := range flows {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			err = unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Addr: n.Hosts[2].Addr.As4(), Port: 20_000 + i})
			unix.Close(fd)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var got [2]uint64
	quiettest.Await(t, func() error {
		now := carried()
		if got = [2]uint64{now[0] - before[0], now[1] - before[1]}; got[0]+got[1] < flows {
			return fmt.Errorf("%d packets on one path and %d on the other, of %d flows", got[0], got[1], flows)
		}
		return nil
	})
	if got[0] < flows/4 || got[1] < flows/4 { // a quarter is more than seven sigma from half
		t.Errorf("of %d flows %d took one path and %d the other", flows, got[0], got[1])
	}
}

// interfaces returns the names of this namespace's interfaces.
func interfaces(t *testing.T) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

// run executes a program in a node and returns what it wrote.
func run(t *testing.T, c runtime.Cluster, node string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), quiettest.Patience)
	defer cancel()
	err := c.Exec(ctx, node, runtime.Command{Args: args, Stdout: &out})
	return out.String(), err
}
