package runtime

import (
	"errors"
	"fmt"
	"io"
	"time"

	"weft/nodeimg/boot"
)

// Fabric is the name of the fabric's process among the nodes'.
const Fabric = "fabric"

// Spec is a lab to be started.
type Spec struct {
	Lab   string          // its name, for messages and labels
	Nodes []boot.NodeSpec // the hosts, by HostID

	// Images are those that commands in this lab will name. A runtime that does not have one refuses the lab.
	Images []string

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

// Check reports what no runtime can start.
func (s *Spec) Check() error {
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
