package namespace

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
)

// traces is everything that a lab could leave on a machine. Others may use the machine meanwhile,
// so processes count only if they are ours: by their parent, or by a mark in their arguments.
type traces struct {
	interfaces []string
	mounts     string
	children   []string
}

// takeTraces returns what is on the machine now.
func takeTraces(t *testing.T) traces {
	t.Helper()
	var s traces
	ifs, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range ifs {
		s.interfaces = append(s.interfaces, i.Name)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		// A container engine's come and go; a lab has none of these kinds.
		if !strings.Contains(line, " - overlay ") && !strings.Contains(line, " - nsfs ") && !strings.Contains(line, "/containers/") {
			s.mounts += line
		}
	}
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		s.children = append(s.children, strings.Fields(string(text))...)
	}
	slices.Sort(s.children)
	return s
}

// check fails the test unless everything is as it was.
func (s traces) check(t *testing.T) {
	t.Helper()
	now := takeTraces(t)
	if !slices.Equal(s.interfaces, now.interfaces) {
		t.Errorf("interfaces were %v, are %v", s.interfaces, now.interfaces)
	}
	if s.mounts != now.mounts {
		t.Errorf("mounts were\n%sare\n%s", s.mounts, now.mounts)
	}
	if !slices.Equal(s.children, now.children) {
		t.Errorf("children were %v, are %v", s.children, now.children)
	}
}

// marked returns the processes with a mark in their arguments.
func marked(mark string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if args := strings.Split(string(text), "\x00"); slices.Contains(args, mark) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// namespacesOf returns the network namespaces of processes, other than this one. They are held open
// until the test ends, so that their inode numbers are not reused.
func namespacesOf(t *testing.T, pids []string) map[string]bool {
	t.Helper()
	host, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]bool{}
	for _, pid := range pids {
		hold, err := os.Open("/proc/" + pid + "/ns/net")
		if err != nil {
			continue // it has ended
		}
		t.Cleanup(func() { hold.Close() })
		if ns, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", hold.Fd())); err == nil && ns != host {
			namespaces[ns] = true
		}
	}
	return namespaces
}

// inUse returns those of the namespaces in which any process still is.
func inUse(namespaces map[string]bool) (left []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/task/*/ns/net")
	for _, f := range files {
		if ns, err := os.Readlink(f); err == nil && namespaces[ns] {
			left = append(left, ns)
		}
	}
	return left
}

// An orchestrator killed at any instant, while it starts a lab or later, leaves nothing.
func TestPrivKilledOrchestratorLeavesNothing(t *testing.T) {
	testenv.NeedNamespaces(t)
	before := takeTraces(t)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	temp := t.TempDir()
	for i := range 12 {
		mark := fmt.Sprintf("mark-%d-%d", os.Getpid(), rng.Uint32())
		cmd := exec.Command("/proc/self/exe", "launch", mark)
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i < 2 { // when all is up
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
				t.Errorf("got %q, %v", line, err)
			}
		} else {
			// Anywhere in the start-up: the instant is what the test varies.
			time.Sleep(time.Duration(rng.Int64N(int64(60 * time.Millisecond))))
		}
		pids := marked(mark)
		spaces := namespacesOf(t, pids)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		cmd.Wait()
		quiettest.Await(t, func() error {
			// A process that is ending loses its arguments before it leaves its namespaces.
			left, used := marked(mark), inUse(spaces)
			if len(left)+len(used) > 0 {
				return fmt.Errorf("killed with %d processes; %d still run, in namespaces %v", len(pids), len(left), used)
			}
			return nil
		})
		t.Logf("killed with %2d processes: all gone after %v", len(pids), time.Since(killed).Round(time.Millisecond))
	}
	if _, err := CleanGroups(t.Context(), runtime.Owner.Dead); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(temp); err != nil || len(files) > 0 {
		t.Errorf("files were left: %v, %v", files, err)
	}
	before.check(t)
}

// A closed lab leaves nothing.
func TestPrivCloseLeavesNothing(t *testing.T) {
	testenv.NeedNamespaces(t)
	before := takeTraces(t)
	mark := fmt.Sprintf("mark-%d-close", os.Getpid())
	spec := runtimetest.Lab(4)
	spec.NodeArgs, spec.FabricArgs = []string{"node", mark}, []string{"fabric", mark}
	for i := range spec.Nodes {
		spec.Nodes[i].Veth = i%2 == 0
	}
	c, err := Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	pids := marked(mark)
	spaces := namespacesOf(t, pids)
	if len(pids) != 5 || len(spaces) != 5 {
		t.Errorf("processes %v in namespaces %v; want 5 in 5", pids, spaces)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if pids := marked(mark); len(pids) > 0 {
		t.Errorf("processes %v still run", pids)
	}
	if left := inUse(spaces); len(left) > 0 {
		t.Errorf("network namespaces %v still have processes", left)
	}
	before.check(t)
}

// The same holds at every step of the start: before each process.
func TestPrivKilledAtEveryStep(t *testing.T) {
	killedAtEveryStep(t, 1+8)
}

// The same holds at every step of a lab whose switches are nodes.
func TestPrivSwitchedLabKilledAtEveryStep(t *testing.T) {
	killedAtEveryStep(t, 1+4+1, "switched") // and its cables
}

// killedAtEveryStep kills an orchestrator before each of the operations of a launch.
func killedAtEveryStep(t *testing.T, operations int, kind ...string) {
	testenv.NeedNamespaces(t)
	before := takeTraces(t)
	for n := 1; ; n++ {
		mark := fmt.Sprintf("mark-%d-step-%d", os.Getpid(), n)
		cmd := exec.Command("/proc/self/exe", append([]string{"launch", mark, fmt.Sprint(n)}, kind...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		_ = cmd.Process.Kill() // where there was no such step
		_ = cmd.Wait()
		quiettest.Await(t, func() error {
			if left := marked(mark); len(left) > 0 {
				return fmt.Errorf("killed before operation %d: processes %v are left", n, left)
			}
			return nil
		})
		if line == "up\n" {
			want := operations
			if _, err := GroupMemory(); err == nil {
				want++
			}
			if n-1 != want {
				t.Errorf("the lab is started in %d steps, want %d", n-1, want)
			}
			break
		}
	}
	if _, err := CleanGroups(t.Context(), runtime.Owner.Dead); err != nil {
		t.Error(err)
	}
	before.check(t)
}
