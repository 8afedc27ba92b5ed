package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weft/internal/control"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
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
		var links []boot.Link
		if links, err = boot.Fabric(conn); err == nil {
			runtimetest.Hub(links)
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

// killAtStep kills this process before the operation with a number.
func killAtStep(number string) runtime.Ahead {
	var left atomic.Int64
	if n, err := strconv.Atoi(number); err == nil {
		left.Store(int64(n))
	}
	return func(runtime.Op) error {
		if left.Add(-1) == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
}

// launch is an orchestrator: it starts a lab, reports that, and waits to be killed.
func launch(args []string) int {
	spec := runtimetest.Lab(8)
	if len(args) > 2 {
		spec = runtimetest.Switched(4)
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

// launchLab launches a lab until the end of the test, or skips the test if that is impossible.
func launchLab(t *testing.T, spec runtime.Spec) *Cluster {
	t.Helper()
	testenv.NeedNamespaces(t)
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

// runIn runs a command in a node and returns what it wrote.
func runIn(t *testing.T, c *Cluster, node string, args ...string) (string, error) {
	t.Helper()
	var out buffer
	ctx, cancel := context.WithTimeout(t.Context(), quiettest.Patience)
	defer cancel()
	err := c.Exec(ctx, node, runtime.Command{Args: args, Stdout: &out, Stderr: &out})
	return out.String(), err
}
