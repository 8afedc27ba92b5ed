package main

import (
	"fmt"
	"strings"
	"testing"

	"weft/orchestrator/deploy"
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
