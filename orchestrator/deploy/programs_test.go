package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/internal/quiettest"
	"weft/internal/testenv"
)

// A host's program that fails at its start, or later, is named by deploy and in the state.
func TestPrivProgramsThatFail(t *testing.T) {
	testenv.NeedNamespaces(t)
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
	up := func(action string) (failed []string) {
		t.Helper()
		c, err := Up(t.Context(), path, q, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Action != action {
			t.Errorf("the action is %s, want %s", c.Action, action)
		}
		return c.Failed
	}
	watch := quiettest.Start()
	first := up(ActionDeploy)
	t.Cleanup(func() {
		if _, err := Down(context.WithoutCancel(t.Context()), path, "programs", Options{}); err != nil {
			t.Error(err)
		}
	})
	if !slices.Equal(first, want) { // they fail in milliseconds, on a busy machine later
		watch.Late(t, "deploy names %q, want %q", first, want)
	}
	quiettest.Await(t, func() error {
		if failed := up(ActionNone); !slices.Equal(failed, want) {
			return fmt.Errorf("it is up already, and %q failed; want %q", failed, want)
		}
		return nil
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
	become := func(want string) {
		t.Helper()
		quiettest.Await(t, func() error {
			if got := states(); got != want {
				return fmt.Errorf("programs are %s, want %s", got, want)
			}
			return nil
		})
	}
	become(",running,failed,failed,done,")
	if err := h.Node(Node{Node: "h1", Action: NodeKill}); err != nil {
		t.Fatal(err)
	}
	become(",,failed,failed,done,")
	if err := h.Node(Node{Node: "h1", Action: NodeRestart}); err != nil {
		t.Fatal(err)
	}
	become(",running,failed,failed,done,")
}
