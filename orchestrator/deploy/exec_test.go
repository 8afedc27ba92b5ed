package deploy

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/testenv"
)

// A program ends with its node, and its caller gets the reason, whether the node was killed before
// the program started, during its start, or while it ran.
func TestPrivExecInAKilledNode(t *testing.T) {
	tries := map[string]int{"namespace": 24, "docker": 4}
	inRuntimes(t, func(t *testing.T, runtime string) {
		_, h := newGuardedLab(t)
		for try := range tries[runtime] {
			s, err := h.State()
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan Exit, 1)
			kill := func() {
				if err := syscall.Kill(s.Nodes[1].PID, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
			late := time.Duration(try) * time.Millisecond // from before the request to long after the start
			if try == 0 {
				kill()
			} else {
				time.AfterFunc(late, kill)
			}
			go func() {
				exit, err := h.Exec(t.Context(), Exec{Node: "h1", Args: []string{"sleep", "60"}}, os.Stdin, os.Stdout, os.Stderr)
				if err != nil {
					t.Errorf("killed %v after it was asked for: %v", late, err)
				}
				ended <- exit
			}()
			const says = "h1 has ended (signal: killed); weft node guarded h1 restart starts it again"
			if exit := <-ended; exit.Code != CodeNode || exit.Ended != says {
				t.Errorf("killed %v after it was asked for: %+v", late, exit)
			}
			awaitDead(t, h, 1)
			if err := h.Node(Node{Node: "h1", Action: NodeRestart}); err != nil {
				t.Fatal(err)
			}
		}
		// If the program itself is killed, its exit code says so. A node killed by request has
		// its own reason.
		if code, out := runScript(t, h, "kill -9 $$"); code != 137 {
			t.Errorf("code %d: %s", code, out)
		}
		if err := h.Node(Node{Node: "h1", Action: NodeKill}); err != nil {
			t.Fatal(err)
		}
		exit, err := h.Exec(t.Context(), Exec{Node: "h1", Args: []string{"true"}}, os.Stdin, os.Stdout, os.Stderr)
		if err != nil || exit.Code != CodeNode || exit.Ended != "h1 has ended (it was killed by weft node); weft node guarded h1 restart starts it again" {
			t.Errorf("got %+v, %v", exit, err)
		}
	})
}

// A node that deletes its interface runs on, cut off: inspect and an event report it, but not for a
// node that was killed. A restart gives it a new interface.
func TestPrivNodeWithoutItsInterface(t *testing.T) {
	_, h := newGuardedLab(t)
	if err := h.Node(Node{Node: "h1", Action: NodeKill}); err != nil {
		t.Fatal(err)
	}
	if code, out := runScript(t, h, "ip link del eth0"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	ctx, stop := context.WithTimeout(t.Context(), quiettest.Patience)
	defer stop()
	var told []string
	err := h.Events(ctx, true, func(e Event) error {
		if e.Event == "unplugged" {
			told = append(told, e.Node)
			stop()
		}
		return nil
	})
	if err != nil || !slices.Equal(told, []string{"h0"}) {
		t.Errorf("told of %v, %v", told, err)
	}
	unplugged := func() (names []string) {
		s, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range s.Nodes {
			if n.Unplugged {
				names = append(names, n.Name+" "+n.State)
			}
		}
		return names
	}
	if got := unplugged(); !slices.Equal(got, []string{"h0 running"}) {
		t.Errorf("without their interfaces are %v", got)
	}
	if err := h.Node(Node{Node: "h0", Action: NodeRestart}); err != nil {
		t.Fatal(err)
	}
	if got := unplugged(); len(got) > 0 {
		t.Errorf("after a restart without their interfaces are %v", got)
	}
}

// A node that takes its interface down is cut off until it takes it up again; inspect reports both.
func TestPrivInterfaceDownAndUp(t *testing.T) {
	testenv.NeedProgram(t, "ping", "ip")
	_, h := newGuardedLab(t)
	state := func() *NodeState {
		s, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		return &s.Nodes[0]
	}
	run := func(code int, out string) {
		t.Helper()
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}
	const ask = "ping -c 1 -W 20 "
	h1 := func() string {
		s, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		return s.Nodes[1].Address
	}()
	run(runScript(t, h, ask+h1))
	run(runScript(t, h, "ip link set eth0 down"))
	if n := state(); !n.Unplugged || n.State != "running" || !strings.Contains(n.Why, "ip link set eth0 up") {
		t.Errorf("a node whose interface is down is %+v", n)
	}
	exit, err := h.Exec(t.Context(), Exec{Node: "h1", Args: []string{"ping", "-c", "2", "-i", "0.1", "-W", "1", state().Address}}, os.Stdin, os.Stdout, os.Stderr)
	if err != nil || exit.Code == 0 {
		t.Errorf("a node whose interface is down answers: %+v, %v", exit, err)
	}
	run(runScript(t, h, "ip link set eth0 up"))
	if n := state(); n.Unplugged {
		t.Errorf("a node whose interface is up again is %+v", n)
	}
	run(runScript(t, h, ask+h1))
	exit, err = h.Exec(t.Context(), Exec{Node: "h1", Args: []string{"ping", "-c", "1", "-W", "20", state().Address}}, os.Stdin, os.Stdout, os.Stderr)
	if err != nil || exit.Code != 0 {
		t.Errorf("a node whose interface is up again does not answer: %+v, %v", exit, err)
	}
}

// awaitDead waits until the supervisor has noticed the end of a node, and returns the lab's state.
func awaitDead(t *testing.T, h *Handle, node int) (s *State) {
	t.Helper()
	quiettest.Await(t, func() (err error) {
		if s, err = h.State(); err == nil && s.Nodes[node].State != "dead" {
			err = fmt.Errorf("%s is %s", s.Nodes[node].Name, s.Nodes[node].State)
		}
		return err
	})
	return s
}
