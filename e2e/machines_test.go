package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// acrossLab is a lab of two racks that lasts a while.
const acrossLab = `
weft: 1
name: across
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link: {rate: 100Gbps, delay: 3us}, mtu: 4096}
transport: {kind: pc4}
workload:
  - {collective: all-to-all, size: 1MB}
engine: {dilation: 3000}
`

// far is a machine of its own: a network namespace with a cable to this one.
type far struct {
	d     *workspace
	holds *exec.Cmd // keeps the namespace
	addr  string
	agent *process
}

// inside returns a command in the machine's namespace.
func (f *far) inside(args ...string) *exec.Cmd {
	cmd := f.d.command(args...)
	cmd.Path = "/usr/bin/nsenter"
	cmd.Args = append([]string{"nsenter", "-t", fmt.Sprint(f.holds.Process.Pid), "-n"}, append([]string{weft}, args...)...)
	return cmd
}

// newFar returns machine n with an agent.
func newFar(d *workspace, n int) *far {
	d.t.Helper()
	if _, err := os.Stat("/usr/bin/nsenter"); err != nil {
		d.t.Skip("needs nsenter")
	}
	f := &far{d: d, holds: exec.Command("unshare", "-n", "sleep", "1000"), addr: fmt.Sprintf("192.0.2.%d:7788", 4*n+2)}
	f.holds.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := f.holds.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = f.holds.Process.Kill()
		_ = f.holds.Wait()
	})
	pid, own := fmt.Sprint(f.holds.Process.Pid), "/proc/self/ns/net"
	mine, err := os.Readlink(own)
	if err != nil {
		d.t.Fatal(err)
	}
	if what := eventually(patience, func() string {
		if theirs, err := os.Readlink("/proc/" + pid + "/ns/net"); err != nil || theirs == mine {
			return "no namespace of its own"
		}
		return ""
	}); what != "" {
		d.t.Fatal(what)
	}
	host := fmt.Sprintf("far%d", n)
	for _, c := range [][]string{
		{"ip", "link", "add", host, "type", "veth", "peer", "name", "eth9", "netns", pid},
		{"ip", "addr", "add", fmt.Sprintf("192.0.2.%d/30", 4*n+1), "dev", host}, {"ip", "link", "set", host, "up"},
		{"nsenter", "-t", pid, "-n", "ip", "addr", "add", fmt.Sprintf("192.0.2.%d/30", 4*n+2), "dev", "eth9"},
		{"nsenter", "-t", pid, "-n", "ip", "link", "set", "eth9", "up"},
		{"nsenter", "-t", pid, "-n", "ip", "link", "set", "lo", "up"},
		{"nsenter", "-t", pid, "-n", "ip", "route", "add", "default", "via", fmt.Sprintf("192.0.2.%d", 4*n+1)},
		{"sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			d.t.Fatalf("%v: %v %s", c, err, out)
		}
	}
	d.t.Cleanup(func() { _ = exec.Command("ip", "link", "del", host).Run() })
	f.agent = d.startCommand(f.inside("machine", "--listen", f.addr, "--secret", "secret"))
	f.agent.awaitOutput(&f.agent.stderr, "listening")
	return f
}

// newSecret makes the secret of a workspace.
func (d *workspace) newSecret() {
	if err := os.WriteFile(filepath.Join(d.dir, "secret"), []byte(strings.Repeat("5e", 32)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// A lab runs on two machines, and its data are right; the run ends by the name of a machine that
// dies, and leaves nothing on the other.
func TestPrivMachines(t *testing.T) {
	needEmulation(t)
	d := newWorkspace(t)
	d.newSecret()
	a, b := newFar(d, 0), newFar(d, 1)
	on := a.addr + "," + b.addr
	d.writeLab("lab.yaml", acrossLab)
	r := d.run("run", "lab.yaml", "--engine", "emu", "--on", on, "--secret", "secret").wantCode(0)
	if !strings.Contains(r.stdout, "data verified") || !strings.Contains(r.stdout, "packets between parts of the network") {
		t.Errorf("it printed\n%s", r.stdout)
	}
	for name, args := range map[string][]string{
		"another secret":   {"--secret", "other"},
		"nobody's address": {"--secret", "secret", "--on", a.addr + ",127.0.0.1:1"},
	} {
		if err := os.WriteFile(filepath.Join(d.dir, "other"), []byte(strings.Repeat("0a", 32)), 0o600); err != nil {
			t.Fatal(err)
		}
		d.run(append([]string{"run", "lab.yaml", "--engine", "emu", "--on", on}, args...)...).wantCode(1)
		if !a.agent.running() || !b.agent.running() {
			t.Fatalf("%s: an agent has ended", name)
		}
	}
	long := d.start("run", "lab.yaml", "--engine", "emu", "--on", on, "--secret", "secret", "--set",
		"workload.0.repeat=2000")
	if what := eventually(patience, func() string {
		if len(childrenOf(a.agent.cmd.Process.Pid)) < 3 || len(childrenOf(b.agent.cmd.Process.Pid)) < 3 {
			return "the processes are not up"
		}
		return ""
	}); what != "" {
		t.Fatal(what)
	}
	<-time.After(2 * time.Second) // some of the workload
	killed := time.Now()
	b.agent.signal(syscall.SIGKILL)
	r = long.wait().wantCode(1)
	if took := time.Since(killed); took > 8*time.Second {
		t.Errorf("it ended %v after a machine had died", took)
	}
	if !strings.Contains(r.stdout+r.stderr, "m2") {
		t.Errorf("no word of m2:\n%s%s", r.stdout, r.stderr)
	}
	if what := eventually(patience, func() string {
		if left := childrenOf(a.agent.cmd.Process.Pid); len(left) > 0 {
			return fmt.Sprintf("processes are left on the other machine: %v", left)
		}
		return ""
	}); what != "" {
		t.Error(what)
	}
}

// childrenOf returns the processes that a process has started.
func childrenOf(pid int) (all []string) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}
