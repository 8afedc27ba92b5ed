package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weft/internal/control"
	"weft/internal/quiettest"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// The test program stands in for weft: it also runs as every process of a lab, and as an
// orchestrator that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "node", "fabric":
			os.Exit(process(os.Args[1]))
		case "launch":
			os.Exit(launch(os.Args[2:]))
		case "enter":
			os.Exit(ordinaryUser(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// process is the simplest process of a lab. A node sends every message back; the fabric also
// forwards frames.
func process(kind string) int {
	conn, err := control.Open(control.FD)
	if err == nil && kind == "node" {
		_, err = boot.Node(conn)
	}
	if err == nil && kind == "fabric" {
		var env *boot.FabricEnv
		if env, err = boot.Fabric(conn); err == nil {
			runHub(env.Links)
		}
	}
	for err == nil {
		var m control.Message
		if m, _, err = conn.Recv(); err == nil {
			switch m.Kind {
			case "crash":
				panic("asked to")
			case "hang":
				for {
					time.Sleep(time.Hour) // until the test kills it
				}
			}
			err = conn.Send(m)
		}
	}
	if errors.Is(err, io.EOF) {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// runHub forwards frames as a hub that knows every host: octet 5 of a hardware address is the
// node's number plus one.
func runHub(links []boot.Link) {
	files := make([]*os.File, len(links))
	for i, l := range links {
		files[i] = os.NewFile(uintptr(l.FD), l.Node)
	}
	for _, f := range files {
		go func() {
			frame := make([]byte, 1<<16)
			for {
				n, err := f.Read(frame)
				if err != nil {
					return
				}
				if to := int(frame[5]) - 1; n > 14 && to >= 0 && to < len(files) && frame[0] == 2 {
					files[to].Write(frame[:n])
				}
			}
		}()
	}
}

// killAtStep kills this process before the operation with a number.
func killAtStep(number string) func(runtime.Op) (func(error) error, error) {
	var left atomic.Int64
	if n, err := strconv.Atoi(number); err == nil {
		left.Store(int64(n))
	}
	return func(runtime.Op) (func(error) error, error) {
		if left.Add(-1) == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil, nil
	}
}

// launch is an orchestrator: it starts a lab, reports that, and waits to be killed.
func launch(args []string) int {
	spec := lab(8)
	if len(args) > 2 {
		spec = switched(4)
	}
	spec.NodeArgs, spec.FabricArgs = []string{"node", args[0]}, []string{"fabric", args[0]}
	if len(args) > 1 {
		spec.Ahead = killAtStep(args[1])
	}
	c, err := Launch(context.Background(), spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("up")
	time.Sleep(time.Minute) // until the test kills it; a minute bounds what a killed test leaves
	c.Close()
	return 0
}

// lab returns n nodes that know each other's names.
func lab(n int) runtime.Spec {
	s := runtime.Spec{Lab: "test", Nodes: make([]boot.NodeSpec, n)}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }
	for i := range s.Nodes {
		s.Nodes[i] = boot.NodeSpec{
			Name: fmt.Sprint("h", i), Addr: netip.PrefixFrom(addr(i), 16), MAC: boot.MACOf(addr(i)), MTU: 4200,
		}
		for j := range s.Nodes {
			if i != j {
				s.Nodes[i].Peers = append(s.Nodes[i].Peers, boot.Peer{Addr: addr(j), MAC: boot.MACOf(addr(j))})
			}
		}
	}
	return s
}

// switched returns n nodes on one switch, which is a node as well.
func switched(n int) runtime.Spec {
	s := lab(n)
	s.Switches = []boot.NodeSpec{{Name: "s0", Switch: true}}
	gateway := netip.AddrFrom4([4]byte{10, 128, 0, 1})
	for i := range s.Nodes {
		h := &s.Nodes[i]
		h.Wired, h.Addr = true, netip.PrefixFrom(h.Addr.Addr(), 32)
		h.Gateway = &boot.Gateway{Addr: gateway, MAC: boot.MACOf(gateway), Net: netip.MustParsePrefix("10.0.0.0/8")}
		s.Cables = append(s.Cables, boot.Cable{
			A: boot.CableEnd{Node: "s0", Interface: h.Name, MAC: boot.MACOf(gateway), Index: 1000 + i},
			B: boot.CableEnd{Node: h.Name, Interface: boot.Interface, MAC: h.MAC}, MTU: h.MTU, Queue: 100,
		})
	}
	return s
}

// launchLab launches a lab until the end of the test, or skips the test if that is impossible.
func launchLab(t *testing.T, spec runtime.Spec) *Cluster {
	t.Helper()
	needRoot(t)
	c, err := Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// needRoot skips the test without the right to create network namespaces.
func needRoot(t *testing.T) {
	t.Helper()
	if NeedsUserNS() {
		t.Skip("needs the privilege to create namespaces: run as root, or under unshare --user --map-root-user")
	}
	if err := Available(); err != nil {
		t.Skip(err)
	}
}

// runIn runs a command in a node and returns what it wrote.
func runIn(t *testing.T, c *Cluster, node string, args ...string) (string, error) {
	t.Helper()
	var out buffer
	ctx, cancel := context.WithTimeout(t.Context(), quiettest.Patience)
	defer cancel()
	err := c.Exec(ctx, node, runtime.Command{Args: args, Stdout: &out, Stderr: &out})
	return out.String(), err
}
