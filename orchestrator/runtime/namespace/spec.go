package namespace

import (
	"errors"
	"fmt"
	"io"
	"time"

	"weft/nodeimg/boot"
	"weft/nodeimg/control"
)

// Fabric is the name of the fabric's process among the nodes'.
const Fabric = "fabric"

// Spec is a lab to be started.
type Spec struct {
	Lab   string          // its name, for messages
	Nodes []boot.NodeSpec // the hosts, by HostID

	// Self is the program to run as every process; empty means this one. NodeArgs and FabricArgs are its
	// arguments, "node" and "fabric" when nil. Env is added to an environment that is otherwise made new.
	Self                 string
	NodeArgs, FabricArgs []string
	Env                  []string

	// FabricNice is the scheduling priority that the fabric's process asks for, as boot.FabricSpec.Nice.
	FabricNice int

	// Stderr receives, line by line and headed by the name, what the processes write to standard output and
	// standard error. It may be nil: the last of it is in the error of a process that dies either way.
	Stderr io.Writer

	// Grace is how long processes may take to end by themselves once their connection is closed, before
	// they are killed; 0 means 100 ms.
	Grace time.Duration
}

func (s *Spec) check() error {
	if len(s.Nodes) == 0 {
		return errors.New("a lab without nodes")
	}
	seen := map[string]bool{Fabric: true}
	for _, n := range s.Nodes {
		if seen[n.Name] {
			return fmt.Errorf("two processes would be called %q", n.Name)
		}
		seen[n.Name] = true
	}
	return nil
}

// Proc is one process of a running lab.
type Proc struct {
	Name   string
	PID    int           // in the namespace of the caller of Launch
	Conn   *control.Conn // the caller's from the return of Launch to Close
	Link   boot.Link     // of a node: its cable; FD is not valid here
	Report boot.Report   // how its boot went

	run *running
}

// Exit is the unexpected end of a process.
type Exit struct {
	Name string
	PID  int
	Err  *ExitError
}

// ExitError says how a process of a lab ended, and what it last said.
type ExitError struct {
	Name   string
	State  string // "exit status 1", "signal: killed"
	Stderr string // the end of its standard error, at most 8 KiB
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("%s died: %s", e.Name, e.State)
	}
	return fmt.Sprintf("%s died: %s: %s", e.Name, e.State, e.Stderr)
}
