package namespace

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"weft/orchestrator/runtime"
)

// Exec runs a program in all namespaces of a node and waits for it, as runtime.Inside says. It ends with the node, or
// with ctx. An exit status other than 0 is a *runtime.StatusError.
func (c *Cluster) Exec(ctx context.Context, node string, command runtime.Command) error {
	p := c.find(node)
	switch {
	case p == nil:
		return fmt.Errorf("%s: %w", node, runtime.ErrNoNode)
	case command.Image != "":
		return fmt.Errorf("%s: the built-in runtime knows no images such as %s; --runtime docker does", node, command.Image)
	}
	procs, err := c.groups.procs(node)
	if err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	defer func() {
		for _, f := range procs {
			f.Close()
		}
	}()
	inside := runtime.Inside{PID: p.PID, Enter: p.enter, Hidden: c.hidden(node), Memory: c.spec.Memory, Groups: procs}
	if err := inside.Run(ctx, command); err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	return nil
}

// hidden are the directories that a node must not see.
func (c *Cluster) hidden(node string) []string {
	for i := range c.spec.Nodes {
		if c.spec.Nodes[i].Name == node {
			return c.spec.Nodes[i].Hidden
		}
	}
	return nil
}

func (c *Cluster) find(name string) *proc {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil
	}
	for _, p := range slices.Backward(c.started) { // a node that was started again is there twice
		if p.Name == name {
			return p
		}
	}
	return nil
}

// enter moves the calling thread into every namespace of p; its children are born in the PID namespace.
func (p *proc) enter() error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	select {
	case <-p.run.done: // else the process was still ours when the descriptor was opened, not another with its number
		return runtime.ErrNoNode
	default:
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // root and working directory are shared by all threads
		return err
	}
	// All at once, or none: Linux 5.8.
	return unix.Setns(fd, unix.CLONE_NEWNET|unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC)
}
