package emulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
)

// bothNICs runs a test with sockets and with bypass NICs.
func bothNICs(t *testing.T, test func(t *testing.T, bypass bool)) {
	testenv.NeedNamespaces(t)
	for _, bypass := range []bool{false, true} {
		name := "socket"
		if bypass {
			name = "bypass"
		}
		t.Run(name, func(t *testing.T) { test(t, bypass) })
	}
}

// sharedMemory returns the number of memory files of bypass NICs that a process has open or mapped.
func sharedMemory(t *testing.T, pid string) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/" + pid + "/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "/memfd:weft-") {
			n++
		}
	}
	maps, _ := os.ReadFile("/proc/" + pid + "/maps") // the process may have ended
	return n + strings.Count(string(maps), "/memfd:weft-")
}

// However a process of a lab with bypass NICs ends, the run ends with its name, and no memory is
// left.
func TestPrivBypassKills(t *testing.T) {
	testenv.NeedNamespaces(t)
	kills := 2
	if testing.Short() {
		kills = 1
	}
	for range kills {
		for _, victim := range []string{"h2", runtime.Fabric, runtime.AgentsName(0)} {
			x, underWay := endlessWorkload()
			x.Processes.Bypass = true
			x.During = func(ctx context.Context, c runtime.Cluster) error {
				underWay(ctx)
				p := map[string]*runtime.Proc{"h2": c.Node(2), runtime.Fabric: c.Fabric(),
					runtime.AgentsName(0): c.Agent(0)}[victim]
				if err := unix.Kill(p.PID, unix.SIGKILL); err != nil {
					return err
				}
				<-ctx.Done()
				return nil
			}
			watch := quiettest.Start()
			_, err := Run(t.Context(), x)
			told := victim
			if victim == runtime.AgentsName(0) {
				told += ", the process of h0"
			}
			if err == nil || !strings.Contains(err.Error(), told) {
				t.Errorf("%s was killed: %v", victim, err)
			}
			watch.AtMost(t, quiettest.Patience, "the run")
			if n := sharedMemory(t, "self"); n > 0 {
				t.Errorf("%s was killed: %d pieces of shared memory are left", victim, n)
			}
		}
	}
}

// scribble writes garbage into the memory of a node's bypass NIC until ctx ends. pid is the process
// that drives the node.
func scribble(ctx context.Context, pid, node int) error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	type mapping struct {
		from, to int64
		inode    int
	}
	var all []mapping // by the order in which they were made, which is that of the nodes
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasPrefix(f[5], "/memfd:weft-nic") {
			continue
		}
		var m mapping
		if _, err := fmt.Sscanf(f[0], "%x-%x", &m.from, &m.to); err != nil {
			return err
		}
		if m.inode, err = strconv.Atoi(f[4]); err != nil {
			return err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mapping) int { return a.inode - b.inode })
	if node >= len(all) {
		return fmt.Errorf("%d NICs in process %d", len(all), pid)
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	rng := rand.New(rand.NewPCG(1, 3))
	garbage := make([]byte, 4096)
	for m := all[node]; ctx.Err() == nil; {
		for i := range garbage {
			garbage[i] = byte(rng.Uint32())
		}
		at := m.from + rng.Int64N(m.to-m.from-int64(len(garbage)))
		if _, err := mem.WriteAt(garbage, at); err != nil {
			return err
		}
	}
	return nil
}

// A node whose memory is filled with garbage ends by its name, alone of those that its process
// drives. What the others have sent each other is right.
func TestPrivBypassGarbage(t *testing.T) {
	testenv.NeedNamespaces(t)
	x := allToAll(4, 20, 1000, 1000)
	x.Processes.Bypass = true
	x.During = func(ctx context.Context, c runtime.Cluster) error {
		return scribble(ctx, c.Agent(0).PID, 3)
	}
	o, err := Run(t.Context(), x)
	if err == nil || !strings.Contains(err.Error(), "h3: ") || !strings.Contains(err.Error(), "broke the rules of its rings") {
		t.Errorf("got %v; want that h3 lied", err)
	}
	if o == nil || o.Report == nil || o.Report.Broken != "" || o.Transport.DataPackets == 0 {
		t.Fatalf("the others are lost: %+v", o)
	}
	for _, d := range o.Dones { // what h3 sent may have been overwritten before the fabric read it
		if d.Wrong != 0 && d.Rank != 3 && (d.Blame == nil || d.Blame.Peer != 3) {
			t.Errorf("rank %d has %d wrong elements, of %+v", d.Rank, d.Wrong, d.Blame)
		}
	}
}

// Nodes that drive themselves, as containers do, have bells of their own.
func TestPrivBypassAlone(t *testing.T) {
	x := allToAll(3, 10, 2, 500)
	x.Processes.Bypass, x.Processes.NoAgents = true, true
	if o := mustRun(t, x); len(o.Dones) != 6 {
		t.Errorf("%d dones, want 6", len(o.Dones))
	}
}

// Hosts with sockets and hosts with bypass NICs share a network.
func TestPrivBypassBesideSockets(t *testing.T) {
	x := allToAll(4, 10, 2, 500)
	x.Processes.Bypass, x.Sockets = true, []bool{false, true, true, false}
	o := mustRun(t, x)
	if len(o.Dones) != 8 {
		t.Errorf("%d dones, want 8", len(o.Dones))
	}
	for h, r := range o.Results {
		if r.Refused.Total() != 0 || r.Dropped != 0 || r.Unsent != 0 {
			t.Errorf("h%d: %+v refused, %d dropped, %d not sent", h, r.Refused, r.Dropped, r.Unsent)
		}
	}
	x.Sockets = x.Sockets[:3]
	if _, err := Run(t.Context(), x); err == nil || !strings.Contains(err.Error(), "sockets of 3 hosts, the lab has 4") {
		t.Errorf("got %v", err)
	}
}

// The kernel carries what leaves interfaces.
func TestBypassOnTheKernelIsRefused(t *testing.T) {
	x := star(2, 1)
	x.Processes.Bypass, x.Kernel = true, new(Kernel)
	if _, err := Run(t.Context(), x); err == nil || !strings.Contains(err.Error(), "bypass NICs on the kernel datapath") {
		t.Errorf("got %v", err)
	}
}
