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

// Fabric is the name of the fabric's process among the nodes'.
const Fabric = "fabric"

// Spec is a lab to be started.
type Spec struct {
	Lab   string          // its name, for messages and labels
	Nodes []boot.NodeSpec // the hosts, by HostID

	// Switches are nodes too, of a lab that the machine's kernel switches: it has no fabric process, and Cables join its
	// nodes by their names. The hosts of one are wired (boot.NodeSpec.Wired).
	Switches []boot.NodeSpec
	Cables   []boot.Cable

	// Images are those that commands in this lab will name. A runtime that does not have one refuses the lab.
	Images []string

	// Self is the program to run as every process; empty means this one. NodeArgs and FabricArgs are its
	// arguments, "node" and "fabric" when nil. Env is added to an environment that is otherwise made new.
	Self                 string
	NodeArgs, FabricArgs []string
	Env                  []string

	// Agents is how many processes are to be started besides that are no nodes, and may drive some (agent.KindAdopt). A runtime
	// may start none.
	Agents int

	// Memory is the most that one process may use, where the runtime can bound it; 0: 2 GiB.
	Memory units.Bytes

	// FabricNice is the scheduling priority that the fabric's process asks for, as boot.FabricSpec.Nice.
	FabricNice int

	// Stderr receives, line by line and headed by the name, what the processes write to standard output and
	// standard error. It may be nil: the last of it is in the error of a process that dies either way.
	Stderr io.Writer

	// Ahead is told of every operation of Launch before it is done, with what undoes it when whoever launched the lab
	// is gone: a journal. What it returns, unless that is nil, is called when the operation was done. An error stops the
	// launch. It may be called from several goroutines, and be nil.
	Ahead func(Op) (done func(error) error, err error)

	// Step is told before and after every step of starting and ending the lab, for tests that end the process there. It
	// may be called from several goroutines, and be nil.
	Step func(step string)

	// Grace is how long processes may take to end by themselves once their connection is closed, before
	// they are killed; 0 means what the runtime deems enough.
	Grace time.Duration
}

// ThisProgram is its path, however its file was renamed, replaced or deleted since it was started, and in nodes too.
const ThisProgram = "/proc/self/exe"

// Environment is what a process of a lab sees of this one's: nothing that could change what it does.
func Environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8"}
}

// Prepare checks a spec, fills in what it leaves open, and returns who launches it and where its processes' output goes; nil: nobody
// listens. Grace is how long processes may take to end by themselves.
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

// check reports what no runtime can start.
func (s *Spec) check() error {
	if len(s.Nodes) == 0 {
		return errors.New("a lab without nodes")
	}
	seen := map[string]bool{Fabric: true}
	for _, n := range slices.Concat(s.Nodes, s.Switches) {
		if seen[n.Name] {
			return fmt.Errorf("two processes would be called %q", n.Name)
		}
		seen[n.Name] = true
	}
	for _, c := range s.Cables {
		for _, end := range []boot.CableEnd{c.A, c.B} {
			if !seen[end.Node] || end.Node == Fabric {
				return fmt.Errorf("a cable leads to %q, which is no node", end.Node)
			}
		}
	}
	for i := range s.Agents {
		if seen[AgentsName(i)] {
			return fmt.Errorf("two processes would be called %q", AgentsName(i))
		}
	}
	return nil
}

// AgentsName is the name of a process that drives nodes.
func AgentsName(i int) string { return fmt.Sprintf("agents%d", i) }

// Switched says that the machine's kernel switches the lab: it has no fabric process.
func (s *Spec) Switched() bool { return len(s.Switches) > 0 }

// Op is an operation of a launch, and its undo. It is plain data, so that another process can undo it.
type Op struct {
	Do   string // in words: "start node h0"
	Kind string // of what it makes: Process, Container, Group
	Name string // what undoes it knows it by: the name of the process in the lab, the name of a container, the path of a group
}

// Kinds of what operations make.
const (
	Process   = "process"   // ends with its orchestrator by itself
	Container = "container" // stays until it is removed
	Group     = "group"     // a control group with those of nodes in it, by its path: stays, empty, until it is removed
)

// Do tells Ahead, if there is one, of an operation, and does it.
func (s *Spec) Do(op Op, f func() error) error {
	var done func(error) error
	if s.Ahead != nil {
		var err error
		if done, err = s.Ahead(op); err != nil {
			return fmt.Errorf("%s: %w", op.Do, err)
		}
	}
	err := s.Around(op.Do, f)
	if err == nil && done != nil {
		err = done(nil)
	}
	return err
}

// Around does a step, and tells Step before and after.
func (s *Spec) Around(step string, f func() error) error {
	if s.Step == nil {
		return f()
	}
	s.Step("before " + step)
	err := f()
	s.Step("after " + step)
	return err
}
