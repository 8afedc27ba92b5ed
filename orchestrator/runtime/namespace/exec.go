package namespace

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"weft/nodeimg/labclock"
	"weft/orchestrator/runtime"
)

// Exec runs a program in all namespaces of a node and waits for it; see runtime.Cluster and
// runtime.Inside.
func (c *Cluster) Exec(ctx context.Context, node string, command runtime.Command) error {
	p := c.Named(node)
	switch {
	case p == nil:
		return fmt.Errorf("%s: %w", node, runtime.ErrNoNode)
	case command.Image != "":
		return fmt.Errorf("%s: the built-in runtime cannot run image %s; use --runtime docker", node, command.Image)
	}
	err := c.exec(ctx, p, command)
	if err != nil && ctx.Err() == nil && p.ending() {
		return p.exitError()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	return nil
}

// exec runs a program in a node.
func (c *Cluster) exec(ctx context.Context, p *proc, command runtime.Command) error {
	procs, err := c.groups.procs(p.Name)
	if err != nil {
		return err
	}
	inside := runtime.Inside{PID: p.PID, Enter: p.enter, Hidden: c.hidden(p.Name), Memory: c.spec.Memory, Groups: procs,
		Keeper: func() (*labclock.Keeper, error) { return c.Keeper(&c.spec) }}
	return inside.Run(ctx, command)
}

// ending reports whether the process has begun to exit, or has exited.
func (p *proc) ending() bool {
	select {
	case <-p.done: // its PID may be reused
		return true
	default:
		return p.Ending()
	}
}

// exitError returns how a process ended that has begun to exit.
func (p *proc) exitError() error {
	if left := awaitExits([]*proc{p}, runtime.KillTime); len(left) > 0 {
		return &runtime.ExitError{Name: p.Name,
			State: fmt.Sprintf("its process has not exited within %v", runtime.KillTime)}
	}
	return p.Exit()
}

// hidden returns the directories that a node must not see.
func (c *Cluster) hidden(node string) []string {
	for i := range c.spec.Nodes {
		if c.spec.Nodes[i].Name == node {
			return c.spec.Nodes[i].Hidden
		}
	}
	return nil
}

// enter moves the calling thread into every namespace of p. Its children start in the PID
// namespace.
func (p *proc) enter() error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	select {
	case <-p.done: // if not, the PID was not reused when the descriptor was opened
		return runtime.ErrNoNode
	default:
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // root and working directory are shared by all threads
		return err
	}
	// Enters all or none: Linux 5.8.
	return unix.Setns(fd, unix.CLONE_NEWNET|unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC)
}
