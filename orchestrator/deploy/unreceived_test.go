package deploy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"weft/internal/testenv"
)

// Packets to a node that is stopped, whichever way, are not delivered: they are counted as
// unreceived, in the state and where it is shown, and every packet has one fate.
func TestPrivPacketsAtStoppedNodes(t *testing.T) {
	testenv.NeedProgram(t, "ping", "ip")
	_, h := newGuardedLab(t)
	node := func(action string) func() error {
		return func() error { return h.Node(Node{Node: "h0", Action: action}) }
	}
	running := true
	for _, c := range []struct {
		name string
		do   func() error
		runs bool // the node answers afterwards
	}{
		{"paused", node(NodePause), false}, {"resumed", node(NodeResume), true},
		{"without its interface", func() error {
			_, err := h.Exec(t.Context(), Exec{Node: "h0", Args: []string{"ip", "link", "set", "eth0", "down"}}, os.Stdin, os.Stdout, os.Stderr)
			return err
		}, false},
		{"killed", node(NodeKill), false}, {"restarted", node(NodeRestart), true},
	} {
		before, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		running = c.runs
		wait := "1" // s, for answers that do not come
		if running {
			wait = "20"
		}
		exit, err := h.Exec(t.Context(), Exec{Node: "h1", Args: []string{
			"ping", "-c", "3", "-i", "0.1", "-W", wait, before.Nodes[0].Address,
		}}, os.Stdin, os.Stdout, os.Stderr)
		if err != nil || exit.Code == 0 != running {
			t.Errorf("%s: pinging it gives %+v, %v", c.name, exit, err)
		}
		after, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		a, b := before.Network, after.Network
		delivered, unreceived := b.Delivered-a.Delivered, b.Unreceived-a.Unreceived
		if running && (delivered < 6 || unreceived != 0) || !running && (delivered != 0 || unreceived < 3) {
			t.Errorf("%s: of 3 packets to it %d packets were delivered, %d unreceived", c.name, delivered, unreceived)
		}
		if b.Injected != b.Delivered+b.Unreceived+b.Drops+b.Lost+b.Cut {
			t.Errorf("%s: packets without a fate: %+v", c.name, b)
		}
		var shown strings.Builder
		if err := after.Show(&shown); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(" %d at stopped nodes", b.Unreceived); !strings.Contains(shown.String(), want) {
			t.Errorf("%s: no %q in\n%s", c.name, want, &shown)
		}
	}
}
