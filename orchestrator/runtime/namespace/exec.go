package namespace

import (
	"context"
	"fmt"
	"os/exec"
	goruntime "runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// Exec runs a program in all namespaces of a node and waits for it. The program is root there, with no
// capability but those to use the node's network as it likes. It ends with the node, or with ctx. An exit
// status other than 0 is a *runtime.StatusError.
func (c *Cluster) Exec(ctx context.Context, node string, command runtime.Command) error {
	p := c.find(node)
	switch {
	case p == nil:
		return fmt.Errorf("%s: %w", node, runtime.ErrNoNode)
	case command.Image != "":
		return fmt.Errorf("%s: the built-in runtime knows no images such as %s; --runtime docker does", node, command.Image)
	case len(command.Args) == 0:
		return fmt.Errorf("%s: no program was named", node)
	}
	result := make(chan error, 1)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread is in the node and ends with the goroutine
		result <- p.exec(ctx, command)
	}()
	if err := <-result; err != nil {
		return fmt.Errorf("%s: %w", node, err)
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

// exec moves the calling thread into the node and starts the program from there.
//
// No parent-death signal is set: a process whose parent lies outside its PID namespace cannot tell whether
// the parent is alive, and Go would take it for dead. The program ends with the init of the namespace, which
// has the signal.
func (p *proc) exec(ctx context.Context, command runtime.Command) error {
	if err := p.enter(); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	if err := boot.Confine(unix.CAP_NET_RAW, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command.Args[0], command.Args[1:]...)
	cmd.Env = append(runtime.Environment(), command.Env...)
	cmd.Dir = command.Dir
	if cmd.Dir == "" {
		cmd.Dir = "/tmp"
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = command.Stdin, command.Stdout, command.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) } // so that tcpdump writes out what it has
	cmd.WaitDelay = time.Second
	if command.TTY {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}
	return runtime.Status(cmd.Run())
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
