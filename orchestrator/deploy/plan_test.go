package deploy

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/emulate"
	"weft/orchestrator/machine"
	"weft/orchestrator/plan"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/runtime"
	"weft/orchestrator/uml/umltest"
)

// A lab on two machines has its hosts where the plan says, in the subnet that it says. No other lab
// gets that, and no container gets one of its interfaces.
func TestPrivLabOnMachines(t *testing.T) {
	if umltest.Inside() {
		t.Skip("for the machine itself")
	}
	testenv.NeedNamespaces(t)
	t.Setenv(runtimeVar, "namespace")
	on := startAgents(t)
	root, q := newStatePath(t), request("planned", 2)
	q.On, q.Secret, q.Set = on, "that of the test", append(q.Set, "engine.machines=2")
	q.Text = []byte(strings.Replace(string(q.Text), "star, hosts: 2",
		"leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2", 1))
	l, err := q.parse()
	if err != nil {
		t.Fatal(err)
	}
	subnet, up, err := SubnetOf(root, l, on)
	if err != nil || up != nil {
		t.Fatalf("it is up: %v; %v", up, err)
	}
	said, err := orchestrate.PlanDeployment(t.Context(), l, subnet, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	retryMeasured(t, func() error {
		_, err := Up(t.Context(), root, q, Options{Machines: machinesOf})
		return err
	})
	defer func() {
		if _, err := Down(context.WithoutCancel(t.Context()), root, l.Name, Options{}); err != nil {
			t.Error(err)
		}
	}()
	r, err := OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	state, err := stateOf(r, l.Name)
	if err != nil {
		t.Fatal(err)
	}
	if state.Subnet != said.Subnet {
		t.Errorf("its subnet is %s, the plan says %s", state.Subnet, said.Subnet)
	}
	for _, n := range state.Nodes {
		m := slices.IndexFunc(said.Machines, func(m plan.Machine) bool { return slices.Contains(m.Hosts, n.Name) })
		if m >= 0 && n.Machine != said.Machines[m].Name {
			t.Errorf("%s is on %q, the plan says %s", n.Name, n.Machine, said.Machines[m].Name)
		}
	}
	refusesContainers(t, root, l.Name)
	if again, up, err := SubnetOf(root, l, on); again != subnet || up == nil || err != nil {
		t.Errorf("it has subnet %d, and now %d; it is up: %v; %v", subnet, again, up, err)
	}
	another := *l
	another.Name = "another"
	if other, up, err := SubnetOf(root, &another, on); other == subnet || up != nil || err != nil {
		t.Errorf("two labs have subnet %d; the other is up: %v; %v", other, up, err)
	}
}

// agentSecret is the secret of the agents of startAgents.
var agentSecret = strings.Repeat("5e", 32)

// startAgents starts two agents in this process and returns their addresses, separated by commas.
func startAgents(t *testing.T) string {
	t.Helper()
	var addrs []string
	for range 2 {
		l, err := machine.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		a := machine.Agent{Secret: agentSecret, Build: "test", Self: os.Getenv(nodeVar), Say: func(line string) { t.Log(line) },
			Launch: emulate.LaunchHere}
		testenv.Background(t, func(ctx context.Context) error { return a.Serve(ctx, l) })
		addrs = append(addrs, l.Addr().String())
	}
	return strings.Join(addrs, ",")
}

// machinesOf returns the agents of a request of a test.
func machinesOf(q *Request, _ func(string), _ runtime.Ahead) (Machines, error) {
	return &machine.Group{Addrs: strings.Split(q.On, ","), Secret: agentSecret, Build: "test"}, nil
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
