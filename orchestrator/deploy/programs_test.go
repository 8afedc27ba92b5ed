package deploy

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// A host's program that fails at its start, or later, is named by deploy and in the state.
func TestPrivProgramsThatFail(t *testing.T) {
	needRoot(t)
	path := newStatePath(t)
	q := &Request{File: "p.yaml", Text: []byte(`
weft: 1
name: programs
topology:
  kind: custom
  link: {rate: 100Mbps, delay: 1ms}
  nodes:
    - {name: h0}
    - {name: h1, run: [/bin/sleep, "100"]}
    - {name: h2, run: [/bin/nosuch]}
    - {name: h3, run: [/bin/sh, -c, "printf 'bad\\033[31m'; exit 7"]}
    - {name: h4, run: [/bin/true]}
    - {name: sw, switch: true}
  links: [{between: [h0, sw]}, {between: [h1, sw]}, {between: [h2, sw]}, {between: [h3, sw]}, {between: [h4, sw]}]
engine: {dilation: 1, runtime: namespace}
queues: {ecn: off}
`)}
	want := []string{
		"the program of h2 failed: stat /bin/nosuch: no such file or directory",
		"the program of h3 failed: exit status 7: bad\ufffd[31m",
	}
	for _, action := range []string{ActionDeploy, ActionNone} {
		c, err := Up(t.Context(), path, q, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Action != action || !slices.Equal(c.Failed, want) {
			t.Errorf("%s: %s, %q, want %q", action, c.Action, c.Failed, want)
		}
	}
	t.Cleanup(func() {
		if _, err := Down(context.WithoutCancel(t.Context()), path, "programs", Options{}); err != nil {
			t.Error(err)
		}
	})
	r, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := Open(r, "programs")
	if err != nil {
		t.Fatal(err)
	}
	states := func() string {
		s, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, n := range s.Nodes {
			out = append(out, n.Program)
		}
		return strings.Join(out, ",")
	}
	if got := states(); got != ",running,failed,failed,done," {
		t.Error(got)
	}
	if err := h.Node(Node{Node: "h1", Action: NodeKill}); err != nil {
		t.Fatal(err)
	}
	if got := states(); got != ",,failed,failed,done," {
		t.Errorf("h1 killed: %s", got)
	}
	if err := h.Node(Node{Node: "h1", Action: NodeRestart}); err != nil {
		t.Fatal(err)
	}
	if got := states(); got != ",running,failed,failed,done," {
		t.Errorf("h1 restarted: %s", got)
	}
}
