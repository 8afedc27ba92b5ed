package main

import (
	"fmt"
	"strings"
	"testing"

	"weft/orchestrator/deploy"
	"weft/results/record"
	"weft/results/view"
)

// changes is a lab that notes what was asked of it.
type changes []string

func (c *changes) Link(k deploy.Link) error {
	switch {
	case k.Up != nil:
		*c = append(*c, fmt.Sprint(k.Link, " up ", *k.Up))
	default:
		*c = append(*c, fmt.Sprint(k.Link, " set"))
	}
	return nil
}

func (c *changes) Node(n deploy.Node) error {
	*c = append(*c, n.Node+" "+n.Action)
	return nil
}

// A page asks for the same changes as weft link and weft node, and gets the same errors.
func TestActionsAreVerbs(t *testing.T) {
	var c changes
	for _, x := range []struct {
		verb string
		args []string
		err  string
	}{
		{"link", []string{"h0-switch0", "down"}, ""},
		{"link", []string{"h0-switch0", "up"}, ""},
		{"link", []string{"h0-switch0", "set", "delay=5us,loss=0.1%"}, ""},
		{"node", []string{"h1", "pause"}, ""},
		{"node", []string{"h1", "restart"}, ""},
		{"link", []string{"h0-switch0", "sideways"}, `unknown change "sideways"`},
		{"link", []string{"h0-switch0"}, `unknown change ""`},
		{"link", []string{"h0-switch0", "set", "dly=5us"}, "dly"},
		{"node", []string{"h1", "explode"}, `unknown action "explode"`},
		{"destroy", []string{"quickstart"}, `unknown action "destroy"`},
	} {
		err := perform(&c, view.Action{Verb: x.verb, Args: x.args})
		if (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s %v: %v, want %q", x.verb, x.args, err, x.err)
		}
	}
	if got := fmt.Sprint(c); got != "[h0-switch0 up false h0-switch0 up true h0-switch0 set h1 pause h1 restart]" {
		t.Errorf("asked: %s", got)
	}
}

// What is seen of a deployed lab becomes frames that count from the first look, and faults that
// begin and end.
func TestWatchedLab(t *testing.T) {
	look := func(us float64, bytes int64, link, node string) *deploy.State {
		return &deploy.State{
			Lab: "small", Runtime: "namespace", NowUS: us,
			Nodes: []deploy.NodeState{{Name: "h0", Tier: "host", State: node}, {Name: "h1", Tier: "host", State: "running"}, {Name: "switch0", Tier: "switch"}},
			Links: []deploy.LinkState{
				{Name: "h0-switch0", A: "h0", B: "switch0", State: link, RateBPS: 1e9, Ports: []deploy.PortState{{Name: "h0->switch0", Bytes: bytes}, {Name: "switch0->h0", QueuedBytes: 7, Drops: bytes / 1000}}},
				{Name: "h1-switch0", A: "h1", B: "switch0", State: "up", RateBPS: 1e9, Ports: []deploy.PortState{{Name: "h1->switch0"}, {Name: "switch0->h1"}}},
			},
		}
	}
	w := newWatched(look(1000, 5000, "up", "running"))
	for _, s := range []*deploy.State{
		look(1000, 5000, "up", "running"), look(301000, 9000, "down", "running"), look(601000, 9000, "up", "paused"),
	} {
		w.add(s)
	}
	all := w.recorder.Frames()
	if len(all) != 3 {
		t.Fatalf("%d frames", len(all))
	}
	if p := all[1].Ports; p[0].Sent != 4000 || p[1].Queued != 7 || p[1].Drops != 4 {
		t.Errorf("the second frame has %+v", p)
	}
	want := []record.Fault{{Link: "h0-switch0", What: "down", FromUS: 301000, UntilUS: 601000}, {Host: "h0", What: "paused", FromUS: 601000}}
	if fmt.Sprint(w.faults) != fmt.Sprint(want) {
		t.Errorf("faults %v, want %v", w.faults, want)
	}
	m := w.model(look(901000, 9000, "up", "paused"))
	if len(m.Network.Nodes) != 3 || len(m.Network.Ports) != 4 || m.Network.Ports[1].From != 2 || m.Network.Ports[1].To != 0 || len(m.Links) != 2 || m.Network.Width <= 0 {
		t.Errorf("the page shows %+v", m.Network)
	}
}
