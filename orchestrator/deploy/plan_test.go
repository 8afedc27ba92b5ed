package deploy

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerclient "github.com/docker/docker/client"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/dockertest"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/machine"
	"weft/orchestrator/plan"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/runtime"
	"weft/orchestrator/uml/umltest"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
)

// A lab that is deployed or runs has exactly the properties that weft plan lists, in both runtimes,
// on the modelled fabric and, if this machine's kernel can, on the kernel datapath.
func TestPrivLabMatchesPlan(t *testing.T) {
	if umltest.Inside() {
		t.Skip("for the machine itself")
	}
	inRuntimes(t, func(t *testing.T, _ string) {
		for _, datapath := range []string{"fabric", "kernel"} {
			t.Run(datapath, func(t *testing.T) {
				err := unix.Access("/dev/net/tun", unix.R_OK|unix.W_OK) // else a TAP device is a veth pair, as the plan says
				if datapath == "kernel" {
					var kernel qdisc.Capabilities
					if kernel, err = kernelpath.Available(); err == nil && !kernel.Delays() {
						t.Skip("this kernel has no netem, and cannot have a lab deployed on it")
					}
				}
				if err != nil {
					t.Skip(err)
				}
				t.Setenv(datapathVar, datapath)
				t.Run("deploy", func(t *testing.T) { deployedAsPlanned(t, "star, hosts: 3", "") })
				t.Run("run", func(t *testing.T) { runAsPlanned(t, "star, hosts: 3", "") })
				if datapath == "fabric" {
					t.Run("bypass", func(t *testing.T) { runAsPlanned(t, "star, hosts: 3", "", "engine.nic=bypass") })
				}
			})
		}
	})
}

// A lab on two machines has what the plan says where the plan says it.
func TestPrivLabOnMachinesMatchesPlan(t *testing.T) {
	if umltest.Inside() {
		t.Skip("for the machine itself")
	}
	useRuntime(t, "namespace")
	if err := unix.Access("/dev/net/tun", unix.R_OK|unix.W_OK); err != nil {
		t.Skip(err)
	}
	on := startAgents(t)
	t.Run("deploy", func(t *testing.T) { deployedAsPlanned(t, acrossRacks, on) })
	t.Run("run", func(t *testing.T) { runAsPlanned(t, acrossRacks, on) })
}

// acrossRacks is a topology of two parts.
const acrossRacks = "leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2"

// machineVar is the variable with the machine in the environment of the processes that an agent of
// startAgents starts.
const machineVar = "TEST_MACHINE"

// agentSecret is the secret of the agents of startAgents.
var agentSecret = strings.Repeat("5e", 32)

// startAgents starts two agents in this process and returns their addresses, separated by commas.
func startAgents(t *testing.T) string {
	t.Helper()
	var addrs []string
	for k := range 2 {
		l, err := machine.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		a := machine.Agent{Secret: agentSecret, Build: "test", Self: os.Getenv(nodeVar), Say: func(line string) { t.Log(line) },
			Launch: func(ctx context.Context, spec runtime.Spec) (runtime.Cluster, error) {
				spec.Env = append(spec.Env, machineVar+"="+emulate.MachineName(k))
				return emulate.LaunchHere(ctx, spec)
			}}
		testenv.Background(t, func(ctx context.Context) error { return a.Serve(ctx, l) })
		addrs = append(addrs, l.Addr().String())
	}
	return strings.Join(addrs, ",")
}

// machinesOf returns the agents of a request of a test.
func machinesOf(q *Request, _ func(string), _ runtime.Ahead) (Machines, error) {
	return &machine.Group{Addrs: strings.Split(q.On, ","), Secret: agentSecret, Build: "test"}, nil
}

// The same on the kernel datapath with every queueing discipline available: bridges, routes and
// links are as planned.
func TestUMLLabMatchesPlan(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	t.Setenv(datapathVar, "kernel")
	t.Run("deploy", func(t *testing.T) { deployedAsPlanned(t, "leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2", "") })
	t.Run("run", func(t *testing.T) { runAsPlanned(t, "star, hosts: 3", "") })
}

// planRequest returns a lab with a topology, in the runtime and on the datapath of the test, on the
// machines of agents if there are any.
func planRequest(topology, more, on string) *Request {
	q := request("planned", 2)
	if q.On = on; on != "" {
		q.Secret = "that of the test"
		q.Set = append(q.Set, "engine.machines=2")
	}
	q.Text = append([]byte(strings.Replace(string(q.Text), "star, hosts: 2", topology, 1)), more...)
	return q
}

func deployedAsPlanned(t *testing.T, topology, on string) {
	root, q := newStatePath(t), planRequest(topology, "", on)
	l, err := q.parse()
	if err != nil {
		t.Fatal(err)
	}
	subnet, up, err := SubnetOf(root, l, on)
	if err != nil || up != nil {
		t.Fatalf("it is up: %v; %v", up, err)
	}
	said, err := orchestrate.PlanDeployment(t.Context(), l, subnet, on != "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var c *Change
	retryMeasured(t, func() error {
		c, err = Up(t.Context(), root, q, Options{Machines: machinesOf})
		return err
	})
	defer func() {
		if _, err := Down(context.WithoutCancel(t.Context()), root, l.Name, Options{}); err != nil {
			t.Error(err)
		}
	}()
	checkPlan(t, &said, markVar+"="+c.Deployment.ID)
	if on != "" {
		refusesContainers(t, root, l.Name)
	}
	if again, up, err := SubnetOf(root, l, on); again != subnet || up == nil || err != nil {
		t.Errorf("it has subnet %d, and now %d; it is up: %v; %v", subnet, again, up, err)
	}
	another := *l
	another.Name = "another"
	if other, up, err := SubnetOf(root, &another, on); other == subnet || up != nil || err != nil {
		t.Errorf("two labs have subnet %d; the other is up: %v; %v", other, up, err)
	}
}

// refusesContainers checks that no container gets an interface of a lab on other machines.
func refusesContainers(t *testing.T, path, name string) {
	r, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := Open(r, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"h3", ""} {
		_, err := h.Attach(Attach{Holder: Holder{"net", "container", "lab0"}, Host: host}, "/proc/self/ns/net")
		if err == nil || !strings.Contains(err.Error(), "deploy the lab without --on") {
			t.Errorf("%q was given to a container: %v", host, err)
		}
	}
}

// runAsPlanned checks a run at its first progress report. The run waits meanwhile.
func runAsPlanned(t *testing.T, topology, on string, set ...string) {
	q := planRequest(topology, "workload: [{collective: broadcast, size: 4kB}]\n", on)
	q.Set = append(q.Set, set...)
	l, err := q.parse()
	if err != nil {
		t.Fatal(err)
	}
	said, err := orchestrate.PlanRun(t.Context(), l, on != "", nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := experiment.Build(l)
	if err != nil {
		t.Fatal(err)
	}
	self, err := runtime.Self()
	if err != nil {
		t.Fatal(err)
	}
	var machines orchestrate.Machines
	if on != "" {
		if machines, err = machinesOf(q, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	looked := false
	retryMeasured(t, func() error {
		_, err := orchestrate.Run(t.Context(), x, orchestrate.Options{
			Engine: "emu", Self: os.Getenv(nodeVar), Root: t.TempDir(), LabText: q.Text, Machines: machines,
			Progress: func(p orchestrate.Progress) {
				if p.Phase == "running" && !looked {
					looked = true
					checkPlan(t, &said, "WEFT_LAUNCHER="+self.String())
				}
			},
		})
		return err
	})
	if !looked {
		t.Error("nobody has looked at it")
	}
}

// retryMeasured calls up, and again if links are not as asked, at most three times.
func retryMeasured(t *testing.T, up func() error) {
	t.Helper()
	quiettest.Check(t, 3, func() error {
		err := up()
		if err != nil && !strings.Contains(err.Error(), "links differ from the lab") {
			t.Fatal(err)
		}
		return err
	})
}

// checkPlan compares a lab, whose processes have a variable in their environment, with its plan.
func checkPlan(t *testing.T, said *plan.Plan, variable string) {
	t.Helper()
	var want []string
	for _, op := range said.Ops {
		want = append(want, op.Makes...)
	}
	of := processesByName(t, said, variable)
	for _, m := range said.Machines {
		for _, host := range m.Hosts {
			if on := machineOf(of[host]); on != m.Name {
				t.Errorf("%s is on %q, the plan says %s", host, on, m.Name)
			}
		}
	}
	var got []string
	spaces := map[string]bool{}
	for name, pid := range of {
		got = append(got, name+": process")
		own := 0
		for _, kind := range []string{"net", "mnt", "pid", "uts", "ipc"} {
			theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
			ours, _ := os.Readlink("/proc/self/ns/" + kind)
			if err != nil {
				t.Fatal(err)
			}
			if theirs != ours {
				own++
				spaces[theirs] = true
			}
		}
		if own > 0 && said.Runtime == "docker" {
			got = append(got, name+": container")
		}
		if own > 0 {
			got = append(got, netnsProperties(t, name, pid)...)
		}
	}
	t.Logf("%s: %d properties were planned of %d processes", t.Name(), len(want), len(of))
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("- planned, + there:\n%s", d)
	}
	count := func(what string) (n int) {
		for _, line := range got {
			if strings.Contains(line+" ", what) {
				n++
			}
		}
		return n
	}
	r := plan.Resources{
		Processes: len(of), Namespaces: len(spaces), TAPs: count(" tap "), Cables: count(" veth ") / 2,
		Neighbours: count(" neigh "), Memory: said.Resources.Memory,
	}
	if d := cmp.Diff(said.Resources, r); d != "" {
		t.Errorf("resources, - planned, + there:\n%s", d)
	}
}

// processesByName returns the PIDs of a lab's processes by their names in the plan.
func processesByName(t *testing.T, said *plan.Plan, variable string) map[string]int {
	t.Helper()
	of := map[string]int{}
	if said.Runtime == "docker" {
		addContainers(t, said.Lab, of)
	}
	for _, pid := range runtime.Processes(func(pid int) bool {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		args := runtime.Arguments(pid)
		return err == nil && strings.Contains("\x00"+string(env), "\x00"+variable+"\x00") || len(args) == 4 && args[1] == "reap" && args[2] == dockertest.Address()
	}) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			t.Fatal(err)
		}
		who, ours := strings.CutPrefix(strings.TrimSpace(string(name)), "weft-")
		if args := runtime.Arguments(pid); !ours {
			who = map[string]string{"supervise": "supervisor", "reap": "reaper"}[args[1]]
		}
		if on := machineOf(pid); on != "" && strings.TrimRight(who, "0123456789") != "h" {
			who += " of " + on
		}
		if other, there := of[who]; there && other != pid || who == "" {
			t.Errorf("processes %d and %d are both %q: %q", other, pid, who, runtime.Arguments(pid))
		}
		of[who] = pid
	}
	return of
}

// machineOf returns the machine of a process that an agent of startAgents has started; "": none.
func machineOf(pid int) string {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // an error: it has ended
	_, rest, _ := strings.Cut("\x00"+string(env), "\x00"+machineVar+"=")
	name, _, _ := strings.Cut(rest, "\x00")
	return name
}

// addContainers adds the PIDs of a lab's containers by the names of their nodes.
func addContainers(t *testing.T, lab string, of map[string]int) {
	t.Helper()
	engine, err := dockerclient.NewClientWithOpts(dockerclient.WithHost(dockertest.Host(t)), dockerclient.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	all, err := engine.ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "weft.lab="+lab))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		about, err := engine.ContainerInspect(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		of[c.Labels["weft.node"]] = about.State.Pid
	}
}

// netnsProperties returns the properties of a process's network namespace.
func netnsProperties(t *testing.T, name string, pid int) (all []string) {
	t.Helper()
	fresh := builtinDevices(t)
	p := runtime.Proc{Name: name, PID: pid}
	err := p.Do(func() error {
		conn, err := tcnl.Open()
		if err != nil {
			return err
		}
		defer conn.Close()
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		names := map[int]string{}
		for _, l := range links {
			names[l.Attrs().Index] = l.Attrs().Name
		}
		for _, l := range links {
			if fresh[l.Attrs().Name] {
				continue
			}
			of, err := deviceProperties(l, names, conn)
			if err != nil {
				return fmt.Errorf("%s: %w", l.Attrs().Name, err)
			}
			for _, property := range of {
				all = append(all, fmt.Sprintf("%s: %s %s", name, l.Attrs().Name, property))
			}
		}
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		for _, r := range routes {
			all = append(all, name+": "+formatRoute(&r, names))
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return all
}

// builtinDevices returns the names of the devices that this kernel puts into every new network
// namespace, without lo: ends of tunnels.
func builtinDevices(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	scratch, err := ns.TempNetNS()
	if err != nil {
		t.Fatal(err)
	}
	defer scratch.Close()
	err = scratch.Do(func(ns.NetNS) error {
		links, err := netlink.LinkList()
		for _, l := range links {
			names[l.Attrs().Name] = l.Attrs().Name != "lo"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// deviceProperties returns the properties of an interface. The devices that lines are sent through
// count as part of their interfaces.
func deviceProperties(l netlink.Link, names map[int]string, conn *tcnl.Conn) (all []string, err error) {
	a := l.Attrs()
	if l.Type() == "ifb" && tcnl.IsIFBName(a.Name) {
		if n, err := strconv.Atoi(strings.TrimPrefix(a.Name, tcnl.IFBName(0)[:len(tcnl.IFBName(0))-1])); err == nil && names[n] != "" {
			return nil, nil
		}
	}
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if a.Flags&unix.IFF_UP != 0 {
		add("up")
	}
	if a.Name != "lo" {
		add("%s", strings.Replace(l.Type(), "tuntap", "tap", 1))
		add("mtu %d", a.MTU)
		add("link/ether %v", a.HardwareAddr)
		if l.Type() != "bridge" {
			add("txqueuelen %d", a.TxQLen)
		}
	}
	if a.MasterIndex != 0 {
		add("master %s", names[a.MasterIndex])
	}
	addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, addr := range addrs {
		if !addr.IP.IsLoopback() {
			add("inet %v", addr.IPNet)
		}
	}
	neighbours, err := netlink.NeighList(a.Index, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	for _, n := range neighbours {
		if n.State&netlink.NUD_PERMANENT != 0 {
			add("neigh %v lladdr %v", n.IP, n.HardwareAddr)
		}
	}
	end, err := conn.End(a.Name)
	if err != nil {
		return nil, err
	}
	tree, err := tcnl.Direction{Near: end, Far: end}.Read(qdisc.Tree{})
	if err != nil {
		return nil, err
	}
	for _, q := range tree.Near {
		if q.Options.Kind() == "pfifo" { // its limit is the length of the queue
			add("out %v pfifo handle %v", q.Parent, q.Handle)
			continue
		}
		add("out %v", q)
	}
	for _, q := range tree.Far {
		add("in %v", q)
	}
	arrive, leave, err := end.Programs()
	if tree.Source != nil && len(arrive) == 0 { // programs admit senders themselves
		add("in %v", tree.Source)
	}
	for _, name := range arrive {
		add("in bpf %s", name)
	}
	for _, name := range leave {
		add("out bpf %s", name)
	}
	return all, err
}

// formatRoute returns a route in the words of the plan.
func formatRoute(r *netlink.Route, names map[int]string) string {
	if len(r.MultiPath) > 0 {
		count := map[int]int{}
		var order []int
		for _, hop := range r.MultiPath {
			if count[hop.LinkIndex]++; count[hop.LinkIndex] == 1 {
				order = append(order, hop.LinkIndex)
			}
		}
		slices.Sort(order)
		by := make([]string, len(order))
		for i, index := range order {
			by[i] = fmt.Sprintf("%d of %s", count[index], names[index])
		}
		return fmt.Sprintf("route %v by %s", r.Dst, strings.Join(by, ", "))
	}
	via := ""
	if r.Gw != nil {
		via = fmt.Sprintf(" via %v", r.Gw)
	}
	return fmt.Sprintf("%s route %v%s", names[r.LinkIndex], r.Dst, via)
}

// A dry run refuses what a deployment refuses on this machine, with the same words, and makes
// nothing.
func TestPrivDryRunLooksAtTheMachine(t *testing.T) {
	testenv.NeedNamespaces(t)
	t.Setenv("DOCKER_HOST", "unix:///nonexistent")
	for _, set := range []string{"engine.runtime=docker", "engine.datapath=kernel"} {
		root, q := newStatePath(t), request("refused", 2)
		q.Set = []string{set, "queues.ecn=off"}
		_, dry := DryRun(t.Context(), root, q, Options{})
		if _, err := os.Lstat(root); !missing(err) {
			t.Errorf("%s: the state directory after a dry run: %v", set, err)
		}
		_, up := Up(t.Context(), root, q, Options{})
		if fmt.Sprint(dry) != fmt.Sprint(up) || up == nil && set != "engine.datapath=kernel" {
			t.Errorf("%s: a dry run: %v; a deployment: %v", set, dry, up)
		}
		if _, err := Down(t.Context(), root, "refused", Options{}); err != nil {
			t.Error(err)
		}
	}
}
