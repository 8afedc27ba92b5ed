package deploy

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"weft/internal/testenv"
)

// A lab that is up already is not called so without a word on what is not as its file says: what
// requests changed is listed, and a host that ended unasked is a failure.
func TestPrivUpNamesWhatChanged(t *testing.T) {
	testenv.NeedNamespaces(t)
	t.Setenv(hostsVar, "5")
	r, _ := deployLab(t, "changed")
	q := request("changed", 5)
	if c, err := DryRun(t.Context(), r.Path(), q, Options{}); err != nil || c.Action != ActionNone || len(c.Changed)+len(c.Failed) > 0 {
		t.Fatalf("a lab that nobody changed: %+v, %v", c, err)
	}
	h, err := Open(r, "changed")
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.State()
	if err != nil {
		t.Fatal(err)
	}
	down := Link{Link: s.Links[3].Name, Up: new(false)}
	slow := Link{Link: s.Links[4].Name, Set: "loss=0.5"}
	for _, err := range []error{
		h.Link(slow), h.Link(down), h.Node(Node{Node: "h0", Action: NodeKill}),
		h.Node(Node{Node: "h1", Action: NodePause}), syscall.Kill(s.Nodes[2].PID, syscall.SIGKILL),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	awaitDead(t, h, 0)
	awaitDead(t, h, 2)
	c, err := DryRun(t.Context(), r.Path(), q, Options{})
	if err != nil || c.Action != ActionNone {
		t.Fatalf("%+v, %v", c, err)
	}
	l, err := q.parse()
	if err != nil {
		t.Fatal(err)
	}
	if _, planned, err := SubnetOf(r.Path(), l, ""); err != nil || planned == nil || planned.Text() != c.Text() {
		t.Errorf("a plan says %+v, a dry run %q; %v", planned, c.Text(), err)
	}
	for _, want := range []string{"h0 was killed; weft node changed h0 restart", "h1 is paused; weft node changed h1 resume",
		"link " + down.Link + " is down", "link " + slow.Link + " has loss=0.5; weft link changed " + slow.Link + " set loss=0 restores it"} {
		if got := strings.Join(c.Changed, "\n"); strings.Count(got, want) != 1 || len(c.Changed) != 4 {
			t.Errorf("no %q in %q", want, c.Changed)
		}
		if !strings.Contains(c.Text(), "left as it is") || !strings.Contains(c.Text(), want) {
			t.Errorf("no %q in %q", want, c.Text())
		}
	}
	if len(c.Failed) != 1 || !strings.HasPrefix(c.Failed[0], "h2 ") || !strings.HasSuffix(c.Failed[0], "restart starts it again") {
		t.Errorf("failed: %q", c.Failed)
	}
}

// A long list of changes ends with the number of the others.
func TestManyChangesAreCounted(t *testing.T) {
	s := State{Lab: "lab"}
	for i := range maxFailed + 3 {
		s.Nodes = append(s.Nodes, NodeState{Name: fmt.Sprint("h", i), State: "paused"})
	}
	if got := s.changed(); len(got) != maxFailed+1 || got[maxFailed] != "3 more changed" || len(s.failed()) > 0 {
		t.Errorf("%q", got)
	}
}

// Whoever follows the events of a lab learns whether it was destroyed or its supervisor was killed.
func TestPrivFollowersLearnOfACrash(t *testing.T) {
	testenv.NeedNamespaces(t)
	for _, crash := range []bool{false, true} {
		r, pid := deployLab(t, "followed")
		h, err := Open(r, "followed")
		if err != nil {
			t.Fatal(err)
		}
		seen, ended := make(chan Event, 100), make(chan error)
		go func() {
			ended <- h.Events(t.Context(), true, func(e Event) error { seen <- e; return nil })
		}()
		<-seen
		if crash {
			err = syscall.Kill(pid, syscall.SIGKILL)
		} else {
			_, err = Down(t.Context(), r.Path(), "followed", Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ended; errors.Is(err, ErrCrashed) != crash || !crash && err != nil {
			t.Errorf("killed: %v; followers hear %v", crash, err)
		}
		if err := h.Crashed(); errors.Is(err, ErrCrashed) != crash || !crash && err != nil {
			t.Errorf("killed: %v; the lab: %v", crash, err)
		}
	}
}
