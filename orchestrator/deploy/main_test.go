package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/internal/control"
	"weft/internal/dockertest"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/nodeimg/labclock"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/uml"
)

// The test program stands in for weft: it also runs as the deployer, the destroyer, the supervisor,
// and every process of a lab. killStepVar kills one of them at a step.
func TestMain(m *testing.M) {
	if code, played := uml.Role(os.Args); played {
		os.Exit(code)
	}
	if os.Getenv(idleVar) != "" {
		time.Sleep(time.Minute) // until the test kills it; a minute bounds what a killed test leaves
		os.Exit(0)
	}
	if len(os.Args) > 1 {
		role := os.Args[1]
		body := map[string]func([]string) error{
			"deploy": deployRole, "destroy": destroyRole, "supervise": superviseRole, "node": nodeRole, "fabric": fabricRole,
			"stranger": strangerRole, "clean": cleanRole, "run": runRole, "spin": spinRole,
		}[role]
		if body != nil {
			if err := body(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, role+":", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	code := testenv.Main(m.Run)
	dockertest.Stop()
	if program.folder != "" {
		os.RemoveAll(program.folder)
	}
	os.Exit(code)
}

// killStepVar selects the step at which a process is killed: "supervise:7" kills the supervisor at
// its seventh step, "reaper:7" its reaper at the same step, and "both:7" both. The steps of one
// process come from several goroutines.
const killStepVar = "TEST_FATAL_STEP"

// Variables that configure the labs of a test: their runtime, and the program of their nodes if it
// is not this one.
const (
	runtimeVar = "TEST_RUNTIME"
	nodeVar    = "TEST_NODE"
	hostsVar   = "TEST_HOSTS" // number of hosts; default 2

	datapathVar = "TEST_DATAPATH" // default fabric
	clocksVar   = "TEST_CLOCKS"   // value of clocks; the dilation is then 100, and links are shorter
)

// killAtStep returns a Step function that kills the process of killStepVar at its step, or nil if
// the variable names none of victims.
func killAtStep(victims ...string) func(string) {
	who, number, _ := strings.Cut(os.Getenv(killStepVar), ":")
	n, _ := strconv.Atoi(number)
	if !slices.Contains(victims, who) {
		return nil
	}
	var left atomic.Int64
	left.Store(int64(n))
	return func(step string) {
		if left.Add(-1) != 0 {
			return
		}
		fmt.Fprintf(os.Stderr, "killed: %s: %s\n", who, step)
		if who == "reaper" || who == "both" {
			for _, pid := range reapers() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if who != "reaper" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// reapers returns the PIDs of this process's children that are reapers.
func reapers() (pids []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for pid := range strings.FieldsSeq(string(text)) {
			args, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if n, err := strconv.Atoi(pid); err == nil && strings.HasPrefix(string(args), "weft\x00reap\x00") {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// idleVar makes a process idle, whatever its role.
const idleVar = "TEST_IDLE"

func deployRole(args []string) error {
	hosts := 2
	if n, err := strconv.Atoi(os.Getenv(hostsVar)); err == nil {
		hosts = n
	}
	_, err := Up(context.Background(), args[0], request(args[1], hosts), Options{Step: killAtStep("deploy")})
	return err
}

func destroyRole(args []string) error {
	_, err := Down(context.Background(), args[0], args[1], Options{Step: killAtStep("destroy")})
	return err
}

// runRole runs a lab as weft run does and keeps the results in a folder beside its state directory.
func runRole(args []string) error {
	q := request(args[1], 2)
	q.Text = append(q.Text, "workload:\n  - {collective: all-reduce, size: 4kB}\n"...)
	if os.Getenv(datapathVar) != "kernel" { // with a child in a session of its own, which no group ends
		clock := "lab"
		if labclock.Available() != nil {
			clock = "real"
		}
		q.Text = fmt.Appendf(q.Text, "  - {program: [sh, -c, 'setsid sleep 60 >/dev/null 2>&1 & sleep 0.3'], clock: %s, env: {%s: '%s'}}\n",
			clock, testRootVar, args[0])
	}
	l, err := q.parse()
	if err != nil {
		return err
	}
	x, err := experiment.Build(l)
	if err != nil {
		return err
	}
	_, err = orchestrate.Run(context.Background(), x, orchestrate.Options{
		Engine: "emu", Self: os.Getenv(nodeVar), Root: args[0] + "-results", Step: killAtStep("run"), LabText: q.Text,
	})
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
	return Supervise(conn, args[0], args[1], Options{Node: os.Getenv(nodeVar), Step: killAtStep("supervise", "reaper", "both"),
		Machines: machinesOf})
}

func nodeRole([]string) error {
	conn, err := control.Open(control.FD)
	if err != nil {
		return err
	}
	if err := emulate.NodeProcess(conn); !errors.Is(err, io.EOF) { // io.EOF: the lab ended
		return err
	}
	return nil
}

func fabricRole([]string) error {
	conn, err := control.Open(control.FD)
	if err != nil {
		return err
	}
	return emulate.FabricProcess(conn)
}

// request returns a star with a number of hosts, in real time but for clocksVar. On the kernel
// datapath it is slow enough for any machine.
func request(name string, hosts int) *Request {
	datapath := cmp.Or(os.Getenv(datapathVar), "fabric")
	line, queues := "100Mbps, delay: 1ms", ""
	if datapath == "kernel" {
		line, queues = "1Mbps, delay: 20ms", "queues: {ecn: off}\n"
	}
	dilation, clocks := 1, os.Getenv(clocksVar)
	if clocks != "" {
		dilation, clocks, line = 100, "clocks: "+clocks+"\n", "1Gbps, delay: 100us"
	}
	return &Request{File: name + ".yaml", Text: fmt.Appendf(nil, `
weft: 1
name: %s
topology: {kind: star, hosts: %d, link: {rate: %s}, mtu: 1500}
engine: {dilation: %d, runtime: %s, datapath: %s}
%s%s`, name, hosts, line, dilation, cmp.Or(os.Getenv(runtimeVar), "namespace"), datapath, queues, clocks)}
}

// newStatePath returns the path of a state directory that does not exist yet and belongs to one
// test.
func newStatePath(t testing.TB) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "state")
	t.Cleanup(func() { endLabs(t, root) })
	return root
}

// endLabs ends the labs that a skipped or failed test left in a state directory, since they would
// outlive the directory and disturb tests of the whole machine.
func endLabs(t testing.TB, root string) {
	if _, err := os.Stat(root); err != nil {
		return
	}
	r, err := OpenRoot(root)
	if err != nil {
		return // a test put something else there
	}
	defer r.Close()
	names, _ := r.Labs()
	for _, name := range names {
		if _, err := Down(context.Background(), root, name, Options{}); err != nil {
			t.Logf("lab %s, which the test left: %v", name, err)
		}
	}
}

// snapshot is everything that a lab could leave on this machine.
type snapshot struct {
	interfaces, qdiscs []string
	mounts             string
	engines            string // mounts of the test engine: file systems and network namespaces of containers
}

func takeSnapshot(t *testing.T) snapshot {
	t.Helper()
	var m snapshot
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
		if at, ok := strings.CutPrefix(dockertest.Address(), "unix://"); ok && strings.Contains(line, filepath.Dir(at)+"/") {
			m.engines += line
		}
		if !strings.Contains(line, " - overlay ") && !strings.Contains(line, " - nsfs ") && !strings.Contains(line, "/engine-") { // Docker's
			m.mounts += line
		}
	}
	return m
}

// diff returns an error that names what differs between two snapshots.
func (m snapshot) diff(now snapshot) (err error) {
	if !slices.Equal(m.interfaces, now.interfaces) || !slices.Equal(m.qdiscs, now.qdiscs) {
		err = fmt.Errorf("interfaces were %v with %v, are %v with %v", m.interfaces, m.qdiscs, now.interfaces, now.qdiscs)
	}
	if m.mounts != now.mounts {
		err = errors.Join(err, fmt.Errorf("mounts were\n%sare\n%s", m.mounts, now.mounts))
	}
	if m.engines != now.engines {
		err = errors.Join(err, fmt.Errorf("mounts of the engine were\n%sare\n%s", m.engines, now.engines))
	}
	return err
}

// inRuntimes runs a test in each runtime.
func inRuntimes(t *testing.T, test func(t *testing.T, runtime string)) {
	for _, runtime := range []string{"namespace", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			useRuntime(t, runtime)
			test(t, runtime)
		})
	}
}

// checkUnchanged fails the test unless the machine is as it was, no process belongs to the state
// directory, and the directory is gone.
func (m snapshot) checkUnchanged(t *testing.T, root string) {
	t.Helper()
	quiettest.Await(t, func() error { return m.diff(takeSnapshot(t)) }) // other programs use the machine as well
	if _, err := os.Lstat(root); err == nil {
		files, _ := exec.Command("find", root).CombinedOutput()
		t.Errorf("files are left:\n%s", files)
	}
	if os.Getenv(runtimeVar) == "docker" {
		var left []string
		quiettest.Await(t, func() error { // an engine may be too busy to answer
			names, err := docker.Clean(t.Context(), "", runtime.Owner.Dead)
			left = append(left, names...)
			return err
		})
		if len(left) > 0 {
			t.Errorf("containers %v are left", left)
		}
	}
	quiettest.Await(t, func() (left error) {
		for _, pid := range processesOf(root) {
			args, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			left = errors.Join(left, fmt.Errorf("process %s is left: %q", pid, args))
		}
		return left
	})
}

// processesOf returns the PIDs of the labs of a state directory: its supervisors, and processes
// that inherited testRootVar from them.
func processesOf(root string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, _ := os.ReadFile(f)
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if strings.Contains(string(args), root) || strings.Contains(string(env), testRootVar+"="+root+"\x00") ||
			dockertest.Address() != "" && strings.HasPrefix(string(args), "weft\x00reap\x00"+dockertest.Address()+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return slices.DeleteFunc(pids, func(pid string) bool { return pid == strconv.Itoa(os.Getpid()) })
}

// testRootVar marks the processes that tests start.
const testRootVar = "TEST_STATE_ROOT"

// runSelf runs this program in a role and returns its output.
func runSelf(t testing.TB, root, step string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), killStepVar+"="+step, testRootVar+"="+root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// program is weft itself. Test programs may lack libraries in containers, and their nodes carry out
// no workload.
var program struct {
	sync.Once
	folder string
	err    error
}

func weftBinary(t testing.TB) string {
	t.Helper()
	program.Do(func() {
		if program.folder, program.err = os.MkdirTemp("", "program-*"); program.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(program.folder, "weft"), "weft/cmd/weft")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			program.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return filepath.Join(program.folder, "weft")
}

// useRuntime selects the runtime for the labs of a test, or skips the test if it is not available.
func useRuntime(t testing.TB, runtime string) {
	t.Helper()
	testenv.NeedNamespaces(t)
	if runtime == "docker" {
		if _, err := docker.Probe(t.Context(), dockertest.Host(t)); err != nil {
			t.Skip(err)
		}
	}
	t.Setenv(nodeVar, weftBinary(t))
	t.Setenv(runtimeVar, runtime)
}
