package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weft/internal/clip"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// Taken is the error for a host that has no interface to give, and says why.
type Taken string

func (t Taken) Error() string { return "the host is taken: " + string(t) }

// Attach gives a container the interface of a host, whose programs are then cut off, and returns
// its addresses. For a container that has it already, it only returns them. With a.Check it changes
// nothing. netns is the path of the container's network namespace.
func (h *Handle) Attach(a Attach, netns string) (is Attached, err error) {
	f, err := os.Open(netns)
	if err != nil {
		return is, fmt.Errorf("network namespace of container %s: %w", a.short(), err)
	}
	defer f.Close()
	err = h.callWithin(callTime, kindAttach, a, kindAttached, &is, int(f.Fd()))
	if err == nil && is.Taken != "" {
		err = is.Taken
	}
	return is, err
}

// Detach takes the interface of a host from a container, and gives it back to the host. What is
// gone already, the container's network namespace included, is no error.
func (h *Handle) Detach(d Detach, netns string) error {
	var fds []int
	if f, err := os.Open(netns); err == nil {
		defer f.Close()
		fds = []int{int(f.Fd())}
	}
	return h.callWithin(callTime, kindDetach, d, kindDone, nil, fds...)
}

// attach serves Attach.
func (s *supervisor) attach(a *Attach, files []*os.File) (*Attached, error) {
	if len(files) != 1 || a.Network == "" || a.Container == "" || filepath.Base(a.Interface) != a.Interface {
		return nil, errors.New("attach needs a network, a container, an interface and a network namespace")
	}
	s.attaching.Lock()
	defer s.attaching.Unlock()
	c := &runtime.ContainerNet{Namespace: files[0], Interface: a.Interface}
	if h := s.hostOf(a.Holder); h >= 0 && (a.Host == "" || a.Host == s.x.Graph.Nodes[h].Name) {
		err := c.Check(s.lab.Host(h))
		if err == nil || a.Check {
			return s.attached(h), err
		}
	}
	if a.Check {
		return nil, fmt.Errorf("container %s has no host of lab %s", a.short(), s.deployment.Lab)
	}
	if a.Host != "" {
		h, err := s.host(a.Host)
		if err != nil {
			return nil, err
		}
		return s.attachTo(h, a, c)
	}
	for h := range s.nodes {
		is, err := s.attachTo(h, a, c)
		if !errors.As(err, new(Taken)) {
			return is, err
		}
	}
	return nil, Taken(fmt.Sprintf("no host of lab %s is free", s.deployment.Lab))
}

// The kernel removes the interfaces of a namespace some time after its last process has ended. A
// container that requests the host of one that has just ended waits for that. Our own values.
const (
	releaseTime = 3 * time.Second
	releasePoll = 20 * time.Millisecond
)

// attachTo gives a container the interface of host h. The error is Taken if the host has none to
// give.
func (s *supervisor) attachTo(h int, a *Attach, c *runtime.ContainerNet) (*Attached, error) {
	if m := s.lab.Machine(h); m != "" {
		return nil, fmt.Errorf("%s is on %s: a container gets the interface of a host on its own machine only; "+
			"deploy the lab without --on", s.x.Graph.Nodes[h].Name, m)
	}
	s.mu.Lock()
	is := s.nodes[h]
	s.mu.Unlock()
	name := s.x.Graph.Nodes[h].Name
	if is.dead != "" || is.paused {
		why, err := s.unavailable(name)
		if err == nil {
			err = Taken(cmp.Or(why, name+" does not run"))
		}
		return nil, err
	}
	if s.lab.Runs(h) {
		return nil, Taken(name + " runs a program of the lab")
	}
	// The kernel decides: a container that has ended without being detached has nothing any more.
	node, own := s.lab.Cluster().Node(h), s.lab.Host(h)
	err := node.Attach(own, c)
	over := time.Now().Add(releaseTime)
	for a.Host != "" && errors.Is(err, boot.ErrShared) && time.Now().Before(over) {
		time.Sleep(releasePoll)
		err = node.Attach(own, c)
	}
	if errors.Is(err, boot.ErrShared) {
		by := "a network namespace that was detached and lives on"
		if is.holder.Container != "" {
			by = "container " + is.holder.short()
		}
		return nil, Taken(fmt.Sprintf("%s has the interface of %s; weft node %s %s restart takes it back", by, name,
			s.deployment.Lab, name))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.updateNode(h, func(l *nodeLife) { l.holder = a.Holder })
	s.events.add(Event{Event: "attached", Node: name, Text: "container " + a.short()})
	return s.attached(h), nil
}

// attached describes host h to the container that has its interface.
func (s *supervisor) attached(h int) *Attached {
	n := s.lab.Host(h)
	return &Attached{Host: n.Name, Address: n.Addr, MAC: n.MAC.String(), Routes: n.Routes()}
}

// hostOf returns the host that a container was given, or -1.
func (s *supervisor) hostOf(who Holder) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.nodes {
		if s.nodes[h].holder == who {
			return h
		}
	}
	return -1
}

// detach serves Detach.
func (s *supervisor) detach(d *Detach, files []*os.File) error {
	s.attaching.Lock()
	defer s.attaching.Unlock()
	h := s.hostOf(d.Holder)
	if h < 0 {
		return nil
	}
	if len(files) == 1 {
		c := &runtime.ContainerNet{Namespace: files[0], Interface: d.Interface}
		if err := c.Detach(s.lab.Host(h)); err != nil {
			return err
		}
	}
	s.updateNode(h, func(l *nodeLife) { l.holder = Holder{} })
	s.events.add(Event{Event: "detached", Node: s.x.Graph.Nodes[h].Name, Text: "container " + d.short()})
	return nil
}

// short returns the container's ID as it is printed: Docker's twelve characters are enough.
func (k *Holder) short() string { return clip.Text(k.Container[:min(12, len(k.Container))]) }
