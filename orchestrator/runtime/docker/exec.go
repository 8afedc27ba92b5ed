package docker

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sys/unix"

	"weft/nodeimg/boot"
	"weft/nodeimg/labclock"
	"weft/orchestrator/runtime"
)

// Exec runs a program inside a node and waits for it. A program of this machine runs in the
// namespaces of the node and the container's control groups, with this machine's files to read, as
// in the built-in runtime; see runtime.Inside. A program of an image runs in a container of its own
// beside the node. Either ends with the node and with ctx; see runtime.Cluster.
func (c *Cluster) Exec(ctx context.Context, node string, command runtime.Command) error {
	p := c.Named(node)
	if p == nil {
		return fmt.Errorf("%s: %w", node, runtime.ErrNoNode)
	}
	var err error
	switch {
	case command.Image != "":
		err = c.execImage(ctx, p, command)
	default:
		err = c.execHere(ctx, p, command)
	}
	if err != nil && ctx.Err() == nil && (p.ended() || p.Ending()) {
		return p.exitError()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	return nil
}

// ended reports whether the process has exited.
func (p *proc) ended() bool { return len(runtime.AwaitExit([]int{p.pidfd}, 0)) == 0 }

// exitError returns how a process ended that has begun to exit. It waits for the engine, which may
// be slow, to report that.
func (p *proc) exitError() error {
	if err := p.await(p.died, "has not noticed its end"); err != nil {
		return &runtime.ExitError{Name: p.Name, State: err.Error()}
	}
	p.awaitOutput()
	return p.Exit()
}

// execHere runs a program of this machine in the node.
func (c *Cluster) execHere(ctx context.Context, p *proc, command runtime.Command) error {
	groups, err := p.groups()
	if err != nil {
		return err
	}
	inside := runtime.Inside{PID: p.PID, Enter: p.enter, Hidden: p.spec.Hidden, Memory: c.spec.Memory, Groups: groups,
		Keeper: func() (*labclock.Keeper, error) { return c.Keeper(&c.spec) }}
	return inside.Run(ctx, command)
}

// enter moves the calling thread into every namespace of p except the mount namespace, since the
// node's has no programs. The thread gets a view of this machine's files instead, with the node's
// /proc.
func (p *proc) enter() error {
	if p.ended() {
		return runtime.ErrNoNode
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // root and working directory are shared by all threads
		return err
	}
	home, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(home)
	if err := unix.Setns(p.pidfd, unix.CLONE_NEWNS); err != nil {
		return err
	}
	proc, err := unix.OpenTree(unix.AT_FDCWD, "/proc", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("the node's /proc: %w", err)
	}
	defer unix.Close(proc)
	if err := unix.Setns(home, unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Setns(p.pidfd, unix.CLONE_NEWNET|unix.CLONE_NEWPID|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC); err != nil {
		return err
	}
	spec := *p.spec
	spec.User = boot.ProgramUser(p.PID)
	return boot.View(&spec, proc)
}

// discard removes a container and returns when it is gone.
func (c *Cluster) discard(id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life), removeTime)
	defer cancel()
	over, failed := c.engine.api.ContainerWait(ctx, id, container.WaitConditionRemoved)
	// it may be gone
	_ = c.engine.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	select {
	case <-over:
	case <-failed: // it is gone, or Close removes it
	}
}
