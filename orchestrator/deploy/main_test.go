package deploy

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/fabric/realtime"
	"weft/nodeimg/boot"
	"weft/nodeimg/control"
	"weft/orchestrator/runtime/namespace"
)

// The test program stands in for weft: it is run again as whoever deploys and destroys, as the supervisor, and as every
// process of a lab. fatalVar has one of them end at a step.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		role := os.Args[1]
		body := map[string]func([]string) error{
			"deploy": deployRole, "destroy": destroyRole, "supervise": superviseRole, "node": nodeRole, "fabric": fabricRole,
			"stranger": strangerRole, "clean": cleanRole,
		}[role]
		if body != nil {
			if err := body(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, role+":", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// fatalVar says at which step a process of a role is killed: "supervise:7" is the seventh step of the supervisor.
const fatalVar = "TEST_FATAL_STEP"

// fatal kills this process at its step, if it has that role.
func fatal(role string) func(string) {
	who, number, _ := strings.Cut(os.Getenv(fatalVar), ":")
	n, _ := strconv.Atoi(number)
	return func(step string) {
		if who != role {
			return
		}
		if n--; n == 0 {
			fmt.Fprintf(os.Stderr, "killed: %s: %s\n", role, step)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

func deployRole(args []string) error {
	_, err := Up(context.Background(), args[0], request(args[1], 2), Options{Step: fatal("deploy")})
	return err
}

func destroyRole(args []string) error {
	_, err := Down(context.Background(), args[0], args[1], Options{Step: fatal("destroy")})
	return err
}

func cleanRole(args []string) error {
	swept, err := Clean(context.Background(), args[0], Options{})
	for _, s := range swept {
		fmt.Printf("%s: %s %s\n", s.Lab, s.What, s.Why)
	}
	return err
}

func superviseRole(args []string) error {
	conn, err := control.Open(control.FD)
	if err != nil {
		return err
	}
	return Supervise(conn, args[0], args[1], Options{Step: fatal("supervise")})
}

func nodeRole([]string) error {
	conn, err := control.Open(control.FD)
	if err != nil {
		return err
	}
	if _, err := boot.Node(conn); err != nil {
		return err
	}
	_, _, _ = conn.Recv() // until the lab ends
	return nil
}

func fabricRole([]string) error {
	conn, err := control.Open(control.FD)
	if err != nil {
		return err
	}
	env, err := boot.Fabric(conn)
	if err != nil {
		return err
	}
	ports := make([]realtime.Port, len(env.Links))
	for _, l := range env.Links {
		ports[l.Index] = realtime.Port{FD: l.FD, Kind: string(l.Kind)}
	}
	return realtime.Run(conn, ports)
}

// request is a star of so many hosts, in real time.
func request(name string, hosts int) *Request {
	return &Request{File: name + ".yaml", Text: fmt.Appendf(nil, `
weft: 1
name: %s
topology: {kind: star, hosts: %d, link: {rate: 100Mbps, delay: 1ms}, mtu: 1500}
engine: {dilation: 1}
`, name, hosts)}
}

func privileged(t *testing.T) {
	t.Helper()
	if namespace.NeedsUserNS() {
		t.Skip("needs the privilege to create namespaces: run as root, or under unshare --user --map-root-user")
	}
	if err := namespace.Available(); err != nil {
		t.Skip(err)
	}
}

// stateRoot is a state directory that is not there yet, and belongs to one test.
func stateRoot(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state")
}

// machine is everything that a lab could leave.
type machine struct {
	interfaces, qdiscs []string
	mounts             string
}

func look(t *testing.T) machine {
	t.Helper()
	var m machine
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		m.interfaces = append(m.interfaces, l.Name)
		if link, err := netlink.LinkByName(l.Name); err == nil {
			if disciplines, err := netlink.QdiscList(link); err == nil {
				for _, q := range disciplines {
					m.qdiscs = append(m.qdiscs, l.Name+" "+q.Type())
				}
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if !strings.Contains(line, " - overlay ") && !strings.Contains(line, " - nsfs ") && !strings.Contains(line, "/engine-") { // Docker's
			m.mounts += line
		}
	}
	return m
}

func (m machine) same(n machine) bool {
	return slices.Equal(m.interfaces, n.interfaces) && slices.Equal(m.qdiscs, n.qdiscs) && m.mounts == n.mounts
}

// nothingLeft fails the test unless the machine is as it was, nothing runs for a state directory, and there is none.
func (m machine) nothingLeft(t *testing.T, root string) {
	t.Helper()
	now := look(t)
	for deadline := time.Now().Add(3 * time.Second); !m.same(now) && time.Now().Before(deadline); now = look(t) {
		time.Sleep(10 * time.Millisecond) // others use the machine too
	}
	if !slices.Equal(m.interfaces, now.interfaces) || !slices.Equal(m.qdiscs, now.qdiscs) {
		t.Errorf("interfaces were %v with %v, are %v with %v", m.interfaces, m.qdiscs, now.interfaces, now.qdiscs)
	}
	if m.mounts != now.mounts {
		t.Errorf("mounts were\n%sare\n%s", m.mounts, now.mounts)
	}
	if _, err := os.Lstat(root); err == nil {
		files, _ := exec.Command("find", root).CombinedOutput()
		t.Errorf("files are left:\n%s", files)
	}
	deadline := time.Now().Add(5 * time.Second)
	for pids := processesOf(root); len(pids) > 0; pids = processesOf(root) {
		if time.Now().After(deadline) {
			t.Fatalf("processes %v are left", pids)
		}
		time.Sleep(time.Millisecond)
	}
}

// processesOf are the processes of labs of a state directory: its supervisors, and what carries the mark that they have
// of it in their environment.
func processesOf(root string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, _ := os.ReadFile(f)
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if strings.Contains(string(args), root) || strings.Contains(string(env), testRootVar+"="+root+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return slices.DeleteFunc(pids, func(pid string) bool { return pid == strconv.Itoa(os.Getpid()) })
}

// testRootVar is how processes that tests start are known.
const testRootVar = "TEST_STATE_ROOT"

// again runs this program in a role, and returns how that went.
func again(t *testing.T, root, fatal string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), fatalVar+"="+fatal, testRootVar+"="+root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
