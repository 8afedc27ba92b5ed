package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"weft/nodeimg/boot"
)

// Command is a program of the host to be run inside a node.
type Command struct {
	Args           []string // the program, by path or by name in PATH, and its arguments
	Env            []string // added to an environment that is otherwise made new
	Dir            string   // empty: /tmp, which is the node's own
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// ErrNoNode is returned for a node that the lab does not have, or that is no longer running.
var ErrNoNode = errors.New("no such node is running")

// Exec runs a program in all namespaces of a node and waits for it. The program is root there, with no
// capability but those to use the node's network as it likes. It ends with the node, or with ctx. An exit
// status other than 0 is an *exec.ExitError.
func (c *Cluster) Exec(ctx context.Context, node string, command Command) error {
	p := c.find(node)
	if p == nil || len(command.Args) == 0 {
		return fmt.Errorf("%s: %w", node, ErrNoNode)
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is in the node and ends with the goroutine
		result <- p.exec(ctx, command)
	}()
	if err := <-result; err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	return nil
}

func (c *Cluster) find(name string) *Proc {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil
	}
	for _, p := range c.started {
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
func (p *Proc) exec(ctx context.Context, command Command) error {
	if err := p.enter(); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	if err := boot.Confine(unix.CAP_NET_RAW, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command.Args[0], command.Args[1:]...)
	cmd.Env = append(environment(), command.Env...)
	cmd.Dir = command.Dir
	if cmd.Dir == "" {
		cmd.Dir = "/tmp"
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = command.Stdin, command.Stdout, command.Stderr
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// enter moves the calling thread into every namespace of p; its children are born in the PID namespace.
func (p *Proc) enter() error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	select {
	case <-p.run.done: // else the process was still ours when the descriptor was opened, not another with its number
		return ErrNoNode
	default:
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // root and working directory are shared by all threads
		return err
	}
	// All at once, or none: Linux 5.8.
	return unix.Setns(fd, unix.CLONE_NEWNET|unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC)
}

// Do calls f on a thread that is in the network namespace of p, and in no other. f must not start goroutines
// that rely on it.
func (p *Proc) Do(f func() error) error {
	return ns.WithNetNSPath(fmt.Sprintf("/proc/%d/ns/net", p.PID), func(ns.NetNS) error { return f() })
}
