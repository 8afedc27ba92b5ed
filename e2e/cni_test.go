package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/cni"
	"weft/orchestrator/deploy"
)

const cniLab = `
weft: 1
name: cni
topology: {kind: star, hosts: 2, link: {rate: 20Mbps, delay: 5ms}, mtu: 1300}
engine: {dilation: 1}
`

// container is a network namespace with a process, as a container engine makes it.
type container struct {
	t     *testing.T
	cmd   *exec.Cmd
	id    string
	netns string
}

func newContainer(t *testing.T, id string) *container {
	t.Helper()
	c := &container{t: t, id: id, cmd: exec.Command("sleep", "600")}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.netns = fmt.Sprintf("/proc/%d/ns/net", c.cmd.Process.Pid)
	t.Cleanup(c.end)
	return c
}

// end ends the container and its network namespace.
func (c *container) end() {
	_ = c.cmd.Process.Kill() // it has ended if the test did so
	_ = c.cmd.Wait()
}

// run runs a program in the container's network and returns its output.
func (c *container) run(args ...string) (string, error) {
	out, err := exec.Command("nsenter", append([]string{"--net=" + c.netns}, args...)...).CombinedOutput()
	return string(out), err
}

// interfaces returns the names of the container's interfaces, without lo.
func (c *container) interfaces() string {
	c.t.Helper()
	out, err := c.run("ip", "-o", "link")
	if err != nil {
		c.t.Fatal(err, out)
	}
	var names []string
	for line := range strings.Lines(out) {
		if name := strings.Trim(strings.Fields(line)[1], ":"); name != "lo" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// plugin is weft as a CNI runtime finds it.
type plugin struct {
	d      *workspace
	folder string
	config string
}

func newPlugin(d *workspace, config string) *plugin {
	d.t.Helper()
	testenv.NeedNamespaces(d.t)
	testenv.NeedProgram(d.t, "ip", "nsenter", "ping")
	p := &plugin{d: d, folder: d.t.TempDir(), config: config}
	if err := os.Symlink(weft, filepath.Join(p.folder, cni.Program)); err != nil {
		d.t.Fatal(err)
	}
	return p
}

// command prepares a request.
func (p *plugin) command(verb string, c *container) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.folder, cni.Program))
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID="+c.id, "CNI_NETNS="+c.netns, "CNI_IFNAME=lab0",
		"CNI_PATH="+p.folder)
	cmd.Stdin = strings.NewReader(p.config)
	return cmd
}

// do makes a request and fails the test unless the answer has a text; an empty one stands for
// success.
func (p *plugin) do(verb string, c *container, want string) {
	p.d.t.Helper()
	out, err := p.command(verb, c).CombinedOutput()
	if failed := err != nil; failed != (want != "") || !bytes.Contains(out, []byte(want)) {
		p.d.t.Fatalf("%s of %s: %v; want %q; it said:\n%s", verb, c.id, err, want, out)
	}
}

// ping sends a packet from the container to a host, and from the other host to the container's.
func (c *container) ping(d *workspace, own, other int) {
	c.t.Helper()
	nodes := d.inspect().Nodes
	if out, err := c.run("ping", "-c1", "-W20", nodes[other].Address); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	d.run("exec", nodes[other].Name, "--", "ping", "-c1", "-W20", nodes[own].Name).wantCode(0)
}

// Containers get the interfaces of hosts, one each, and the lab carries their packets. Every
// request may be repeated, and what cannot be done is refused by name.
func TestPrivCNI(t *testing.T) {
	d := newWorkspace(t).withState()
	p := newPlugin(d, `{"cniVersion": "1.1.0", "name": "net", "type": "weft-cni"}`)
	a, b, c := newContainer(t, "aaaa"), newContainer(t, "bbbb"), newContainer(t, "cccc")
	p.do("ADD", a, "no lab is deployed")
	p.do("STATUS", a, "no lab is deployed")
	p.do("DEL", a, "")
	d.run("deploy", d.writeLab("lab.yaml", cniLab)).wantCode(0)
	p.do("STATUS", a, "")
	p.do("CHECK", a, "container aaaa has no host of lab cni")
	p.do("ADD", a, "")
	p.do("ADD", a, "") // a runtime that was killed does not know that it is done
	p.do("CHECK", a, "")
	a.ping(d, 0, 1)
	if r := d.run("exec", "h0", "--", "true"); r.code != deploy.CodeNode {
		t.Errorf("a program ran on a host whose interface a container has: %+v", r)
	}
	p.do("ADD", b, "")
	p.do("ADD", c, "the host is taken: no host of lab cni is free")
	p.do("ADD", c, `"code": 101`)
	if out, err := a.run("ip", "link", "set", "lab0", "down"); err != nil {
		t.Fatal(err, out)
	}
	p.do("CHECK", a, "lab0 is down")
	p.do("DEL", a, "")
	p.do("DEL", a, "")
	if got := a.interfaces(); got != "" {
		t.Errorf("the first container still has %s", got)
	}
	d.run("exec", "h0", "--", "true").wantCode(0)
	own := &container{t: t, id: "machine", netns: "/proc/self/ns/net"}
	p.do("ADD", own, "this is the network of the machine")
	p.config = strings.Replace(p.config, `"type"`, `"ipam": {"type": "host-local"}, "type"`, 1)
	p.do("ADD", a, "the lab gives addresses")
	p.config = `{"cniVersion": "1.1.0", "name": "net", "type": "weft-cni", "lab": "cni", "host": "h1"}`
	p.do("ADD", a, "container bbbb has the interface of h1")
	b.end() // and nobody detaches it
	p.do("ADD", a, "")
	a.ping(d, 1, 0)
	p.config = strings.Replace(p.config, `"type"`, `"cni.dev/valid-attachments": [], "type"`, 1)
	p.do("GC", a, "")
	if holder := d.inspect().Nodes[1].Holder; holder != (deploy.Holder{}) {
		t.Errorf("after GC, h1 still belongs to %+v", holder)
	}
	d.run("node", "cni", "h1", "restart").wantCode(0) // GC does not reach into namespaces that live
	quiettest.Await(t, func() error {                 // the kernel removes a namespace that has ended a moment later
		if got := a.interfaces(); got != "" {
			return fmt.Errorf("the container still has %s of a node that was restarted", got)
		}
		return nil
	})
	p.config = strings.Replace(p.config, `"h1"`, `"h9"`, 1)
	p.do("ADD", a, `lab cni has no node \"h9\"`)
	d.run("node", "cni", "h0", "kill").wantCode(0)
	p.config = strings.Replace(p.config, `"h9"`, `"h0"`, 1)
	p.do("ADD", a, "h0 has ended")
	p.do("STATUS", a, "") // h1 runs
	d.run("node", "cni", "h1", "kill").wantCode(0)
	p.do("STATUS", a, "lab cni: no host runs")
}

// Whatever is killed while a container is attached, at any instant: after DEL nothing is left, and
// the next container gets the host. If the lab's supervisor is killed, the interface is gone.
func TestPrivCNIKilled(t *testing.T) {
	d := newWorkspace(t).withState()
	p := newPlugin(d, `{"cniVersion": "1.0.0", "name": "net", "type": "weft-cni", "host": "h0"}`)
	a := newContainer(t, "aaaa")
	d.run("deploy", d.writeLab("lab.yaml", cniLab)).wantCode(0)
	begin := time.Now()
	p.do("ADD", a, "")
	took := time.Since(begin)
	const kills = 12
	for i := range kills {
		if i%2 == 0 {
			p.do("DEL", a, "")
		}
		cmd := p.command([]string{"ADD", "DEL"}[i%2], a)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(took * time.Duration(i) / kills) // the kill comes at another step each time
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		p.do("ADD", a, "")
	}
	p.do("DEL", a, "")
	if got := a.interfaces(); got != "" {
		t.Errorf("after %d kills the container still has %s", kills, got)
	}
	p.do("ADD", a, "")
	if err := syscall.Kill(d.inspect().Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if left := eventually(patience, a.interfaces); left != "" {
		t.Errorf("the lab is dead and the container still has %s", left)
	}
	p.do("DEL", a, "")
	d.run("clean").wantCode(0)
}

// The project's own tool for trying plugins attaches a container, checks it and detaches it.
func TestPrivCNITool(t *testing.T) {
	d := newWorkspace(t).withState()
	p := newPlugin(d, "")
	tool := filepath.Join(p.folder, "cnitool")
	if out, err := exec.Command("go", "build", "-o", tool, "github.com/containernetworking/cni/cnitool").CombinedOutput(); err != nil {
		t.Skipf("no cnitool: %v\n%s", err, out)
	}
	d.run("deploy", d.writeLab("lab.yaml", cniLab)).wantCode(0)
	config := `{"cniVersion": "1.1.0", "name": "net", "plugins": [{"type": "weft-cni", "lab": "cni"}]}`
	if err := os.WriteFile(filepath.Join(p.folder, "net.conflist"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	a := newContainer(t, "")
	for _, verb := range []string{"status", "add", "check", "del"} {
		cmd := exec.Command(tool, verb, "net", a.netns)
		cmd.Env = append(os.Environ(), "CNI_PATH="+p.folder, "NETCONFPATH="+p.folder, "CNI_ARGS=WEFT_HOST=h1", "CNI_IFNAME=lab0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cnitool %s: %v\n%s", verb, err, out)
		}
		if verb == "check" {
			a.ping(d, 1, 0)
		}
	}
	if got := a.interfaces(); got != "" {
		t.Errorf("the container still has %s", got)
	}
}
