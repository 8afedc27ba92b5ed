package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/units"
)

// Fabric is the name of the fabric's process.
const Fabric = "fabric"

// Spec describes a lab to be started.
type Spec struct {
	Lab   string          // the lab's name, for messages and labels
	Nodes []boot.NodeSpec // the hosts, by HostID

	// Switches are the switches that are nodes, if the machine's kernel switches the lab. Such a
	// lab has no fabric process; Cables join its nodes by name, and its hosts are wired
	// (boot.NodeSpec.Wired).
	Switches []boot.NodeSpec
	Cables   []boot.Cable

	// Images are the container images that commands in this lab need. The launch fails if one is
	// missing.
	Images []string

	// Self is the program that every process runs; empty: this one. NodeArgs and FabricArgs are its
	// arguments; nil: "node" and "fabric". Env is added to Environment.
	Self                 string
	NodeArgs, FabricArgs []string
	Env                  []string

	// Agents is the number of additional processes that are not nodes but may drive some
	// (agent.KindAdopt). A runtime may start none.
	Agents int

	// Standing says that the lab has no workload: nothing drives its nodes, on other machines
	// either.
	Standing bool

	// Memory is the memory limit of a node, or of each process if the runtime cannot limit nodes;
	// 0: DefaultMemory.
	Memory units.Bytes

	// Stderr receives the standard output and standard error of all processes, line by line with
	// the process's name in front. It may be nil; the error of a process that dies has the end of
	// its output in any case.
	Stderr io.Writer

	// Ahead is called before every operation of Launch. It must be safe for concurrent use. It may
	// be nil.
	Ahead Ahead

	// Step is called before and after every step of starting and ending the lab, for tests that
	// kill the process there. It must be safe for concurrent use, and may be nil.
	Step func(step string)

	// Grace is the time limit for processes to end by themselves once their connection is closed,
	// before they are killed; 0: the runtime's default.
	Grace time.Duration
}

// ThisProgram is the path of the running program, even if its file was renamed, replaced or
// deleted, and also inside nodes.
const ThisProgram = "/proc/self/exe"

// Environment returns the environment of a lab's processes. It has nothing from this process that
// could change what they do.
func Environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "TMPDIR=/tmp",
		"LANG=C.UTF-8"}
}

// Prepare checks a spec and fills in defaults. It returns this process as the lab's owner, and the
// writer for its processes' output, which may be nil. grace is the default of Spec.Grace.
func (s *Spec) Prepare(grace time.Duration) (owner Owner, out *Lines, err error) {
	if err = control.KeepDescriptors(); err == nil {
		err = s.check()
	}
	if err != nil {
		return owner, nil, err
	}
	s.Grace = cmp.Or(s.Grace, grace)
	s.Self = cmp.Or(s.Self, ThisProgram)
	owner, err = Self()
	return owner, NewLines(s.Stderr), err
}

// check returns an error for a spec that no runtime can start.
func (s *Spec) check() error {
	if len(s.Nodes) == 0 {
		return errors.New("the lab has no nodes")
	}
	seen := map[string]bool{Fabric: true}
	for _, n := range slices.Concat(s.Nodes, s.Switches) {
		if seen[n.Name] {
			return fmt.Errorf("two processes have the name %q", n.Name)
		}
		seen[n.Name] = true
	}
	for _, c := range s.Cables {
		for _, end := range []boot.CableEnd{c.A, c.B} {
			if !seen[end.Node] || end.Node == Fabric {
				return fmt.Errorf("a cable leads to %q, which is not a node of the lab", end.Node)
			}
		}
	}
	for i := range s.Agents {
		if seen[AgentsName(i)] {
			return fmt.Errorf("two processes have the name %q", AgentsName(i))
		}
	}
	return nil
}

// AgentsName returns the name of a process that drives nodes.
func AgentsName(i int) string { return fmt.Sprintf("agents%d", i) }

// Switched reports whether the machine's kernel switches the lab, which then has no fabric process.
func (s *Spec) Switched() bool { return len(s.Switches) > 0 }

// Ahead is called before an operation, so that a journal can undo the operation if this process is
// killed. An error stops what the operation is part of.
type Ahead func(Op) error

// Op is an operation of a launch together with its undo. It is plain data, so that another process
// can undo it.
type Op struct {
	Do   string // in words: "start node h0"
	Kind string // what it makes: Process, Container, Group or Agents
	Name string // identifies that for the undo: name of the process or container, path of the group

	Where string // of Agents: their engine, and how another process finds it
}

// Kinds of things that operations make.
const (
	Process   = "process"   // ends with its launcher by itself
	Container = "container" // exists until it is removed
	Group     = "group"     // a control group with those of nodes in it: exists, empty, until it is removed
	Agents    = "agents"    // of other machines, whose engine keeps a service or a job until that is removed
)

// Do calls Ahead, if there is one, and then carries out the operation.
func (s *Spec) Do(op Op, f func() error) error {
	if s.Ahead != nil {
		if err := s.Ahead(op); err != nil {
			return fmt.Errorf("%s: %w", op.Do, err)
		}
	}
	return s.Around(op.Do, f)
}

// Around carries out a step and calls Step before and after it.
func (s *Spec) Around(step string, f func() error) error {
	if s.Step == nil {
		return f()
	}
	s.Step("before " + step)
	err := f()
	s.Step("after " + step)
	return err
}
