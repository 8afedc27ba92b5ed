package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"

	"github.com/containernetworking/plugins/pkg/ns"

	"weft/internal/control"
	"weft/nodeimg/boot"
)

// A Launch starts every process of a lab, waits until all are configured and connected, and returns. When it fails,
// or ctx ends meanwhile, nothing is left. When ctx ends later, the cluster is closed.
type Launch func(ctx context.Context, spec Spec) (Cluster, error)

// A Cluster is a running lab. Its methods may be called from several goroutines.
type Cluster interface {
	// Nodes is the number of hosts, and Node the process of the host with this number.
	Nodes() int
	Node(i int) *Proc
	// Switches is the number of switches that are nodes, and Switch the process of the one with this number.
	Switches() int
	Switch(i int) *Proc
	// Fabric is the fabric's process; nil if switches are nodes.
	Fabric() *Proc
	// Agents is the number of processes that may drive nodes, and Agent one of them: see Spec.Agents.
	Agents() int
	Agent(i int) *Proc
	// Exits reports each process that ends before Close, at once. It is closed by Close.
	Exits() <-chan Exit
	// Bound says in words what memory the nodes may use, and what keeps them to it.
	Bound() string
	// Exec runs a program inside a node and waits for it. It ends with the node, or with ctx. An exit status other
	// than 0 is a *StatusError. Where the node has ended, before the program could run or while it ran, the error is
	// the node's *ExitError.
	Exec(ctx context.Context, node string, command Command) error
	// Close ends every process and returns when all are gone. It may be called at any time, and again, with the same
	// result. An error means that something could not be ended.
	Close() error
}

// Proc is one process of a running lab.
type Proc struct {
	Name   string
	PID    int           // in the PID namespace of the caller of Launch
	Conn   *control.Conn // the caller's from the return of Launch to Close
	Link   boot.Link     // of a node: its cable; FD is not valid here
	Report boot.Report   // how its boot went
}

// Process returns p. With it, a type that embeds a Proc is closer to a Member.
func (p *Proc) Process() *Proc { return p }

// Do calls f on a thread that is in the network namespace of p, and in no other. f must not start goroutines
// that rely on it.
func (p *Proc) Do(f func() error) error {
	return ns.WithNetNSPath(p.network(), func(ns.NetNS) error { return f() })
}

// network is the path of the process's network namespace.
func (p *Proc) network() string { return fmt.Sprintf("/proc/%d/ns/net", p.PID) }

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

func (e *ExitError) Error() string { return fmt.Sprintf("%s died: %s", e.Name, e.How()) }

// How says how the process ended, without its name.
func (e *ExitError) How() string {
	if e.Stderr == "" {
		return e.State
	}
	return e.State + ": " + e.Stderr
}

// Command is a program to be run inside a node.
type Command struct {
	// Image is the container image that holds the program; empty: it is a program of this machine. Only Docker's
	// runtime knows images.
	Image string
	// Args are the program, by path or by name in PATH, and its arguments. With an image they replace its command,
	// and may be empty if it has one.
	Args           []string
	Env            []string // added to an environment that is otherwise made new
	Dir            string   // empty: /tmp, which is the node's own, or what the image says
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// TTY says that Stdin, a file, is a terminal that is to be the program's own: what is typed there as Ctrl-C is for
	// the program, which is the first of a session.
	TTY bool
}

// A Restarter is a cluster whose nodes can be ended and started again. The end of a node that Kill ended is still
// among the Exits.
type Restarter interface {
	// Kill ends a node at once, with all that runs in it.
	Kill(i int) error
	// Freeze stops every process of a node, or lets them go on.
	Freeze(i int, frozen bool) error
	// Restart starts a node again that has ended, with a new cable, whose other end is Link.FD, the caller's.
	Restart(ctx context.Context, i int) (boot.Link, error)
}

// ErrNoNode is returned for a node that the lab does not have, or that cannot be changed since it is not running.
var ErrNoNode = errors.New("no such node is running")

// StatusError is a program in a node that ended with an exit status other than 0.
type StatusError struct {
	Code int    // 1 to 255; 128 and the signal's number if a signal ended it
	Text string // "exit status 1", "signal: killed"
}

func (e *StatusError) Error() string { return e.Text }

// Status returns err as a *StatusError if it says how a program ended, and else as it is.
func Status(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	s := &StatusError{Code: exit.ExitCode(), Text: exit.Error()}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		s.Code = 128 + int(w.Signal())
	}
	return s
}
