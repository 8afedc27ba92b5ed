package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"weft/clocksync/clock"
	"weft/internal/control"
	"weft/internal/stalls"
	"weft/nodeimg/boot"
	"weft/nodeimg/labclock"
)

// A Launch starts every process of a lab, waits until all are configured and connected, and
// returns. If it fails or ctx ends meanwhile, it leaves nothing. If ctx ends later, the cluster is
// closed.
type Launch func(ctx context.Context, spec Spec) (Cluster, error)

// A Cluster is a running lab. Its methods are safe for concurrent use.
type Cluster interface {
	// Nodes returns the number of hosts, and Node the process of host i.
	Nodes() int
	Node(i int) *Proc
	// Switches returns the number of switches that are nodes, and Switch the process of switch i.
	Switches() int
	Switch(i int) *Proc
	// Fabric returns the fabric's process, or nil if switches are nodes.
	Fabric() *Proc
	// Agents returns the number of processes that may drive nodes, and Agent one of them; see
	// Spec.Agents.
	Agents() int
	Agent(i int) *Proc
	// Exits returns a channel that reports each process that ends before Close. Close closes it.
	Exits() <-chan Exit
	// Bound describes, for people, the nodes' memory limit and what enforces it.
	Bound() string
	// Exec runs a program inside a node and waits for it. The program ends with the node and with
	// ctx. An exit status other than 0 is a *StatusError. If the node has ended, before the program
	// could run or while it ran, the error is the node's *ExitError.
	Exec(ctx context.Context, node string, command Command) error
	// Close ends every process and returns when all are gone. It may be called at any time; later
	// calls return the same result. An error means that something could not be ended.
	Close() error
}

// Proc is one process of a running lab.
type Proc struct {
	Name   string
	PID    int           // in the PID namespace of Launch's caller; 0: on another machine
	FarPID int           // in that of the other machine's agent; 0: on this machine
	Conn   *control.Conn // belongs to the caller between Launch and Close
	Link   boot.Link     // a node's cable; FD is not valid here
	Report boot.Report   // result of its boot
}

// Process returns p. It makes a type that embeds a Proc almost a Member.
func (p *Proc) Process() *Proc { return p }

// Do calls f on a thread in the network namespace of p. f must not rely on goroutines that it
// starts: they run elsewhere.
func (p *Proc) Do(f func() error) error {
	network, err := p.network()
	if err != nil {
		return err
	}
	defer network.Close()
	return network.Do(func(ns.NetNS) error { return f() })
}

// Output runs a program of this machine in the network namespace of p, and returns what it prints.
// Unlike Cluster.Exec it has the rights, the files and the environment of this process, so only
// programs that this process trusts may run like this. The error is exec.ErrNotFound if neither
// PATH nor a directory of the administrator has the program. The program ends with ctx.
func (p *Proc) Output(ctx context.Context, program string, args ...string) (out []byte, err error) {
	path, err := exec.LookPath(program)
	for _, dir := range []string{"/usr/sbin", "/sbin"} { // an ordinary user's PATH may lack them
		if err != nil {
			path, err = exec.LookPath(filepath.Join(dir, program))
		}
	}
	if err != nil {
		return nil, exec.ErrNotFound
	}
	err = p.Do(func() (err error) {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.WaitDelay = outputDelay
		out, err = cmd.CombinedOutput()
		return err
	})
	return out, err
}

// outputDelay is how long Output waits for what a program that was killed has printed.
const outputDelay = time.Second

// network opens the network namespace of the process. The error is an *EndedError if the process
// has none any more.
func (p *Proc) network() (ns.NetNS, error) {
	network, err := ns.GetNS(fmt.Sprintf("/proc/%d/ns/net", p.PID))
	var missing ns.NSPathNotExistErr
	if errors.As(err, &missing) || errors.Is(err, fs.ErrNotExist) {
		return nil, &EndedError{p, err}
	}
	return network, err
}

// EndedError means that a process has ended, although nobody has reported its exit yet. Err is how
// that showed.
type EndedError struct {
	Proc *Proc
	Err  error
}

func (e *EndedError) Error() string { return fmt.Sprintf("%s: it has ended: %v", e.Proc.Name, e.Err) }

// Exit is the unexpected end of a process.
type Exit struct {
	Name        string
	PID, FarPID int // of Proc
	Err         *ExitError
}

// ExitError describes how a process of a lab ended, with the end of its output.
type ExitError struct {
	Name   string
	State  string // "exit status 1", "signal: killed"
	Stderr string // the end of its standard error, at most 8 KiB
	Lost   bool   // its machine is lost, with all that ran there
}

// Succeeded is how a process ended that had nothing left to do.
const Succeeded = "exit status 0"

func (e *ExitError) Error() string { return fmt.Sprintf("%s died: %s", e.Name, e.How()) }

// How returns how the process ended, without its name.
func (e *ExitError) How() string {
	if e.Stderr == "" {
		return e.State
	}
	return e.State + ": " + e.Stderr
}

// Command is a program to be run inside a node.
type Command struct {
	// Image is the container image with the program; empty: a program of this machine. Only
	// Docker's runtime supports images.
	Image string
	// Args are the program, as a path or a name in PATH, and its arguments. They replace the
	// command of an image, and may be empty if the image has one.
	Args           []string
	Env            []string // added to Environment
	Dir            string   // empty: the node's own /tmp, or the image's
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Clock is what the program's clocks show; nil: the machine's time.
	Clock *labclock.Page
	// Model are the errors of Clock, and Watch receives what the tasks of the program have needed,
	// if the node is on another machine, which makes its own clock. Both may be nil.
	Model *clock.Config
	Watch *Watch
	// Whole ends the program's process group with the program, which makes its own: not what became
	// a daemon. It has no effect with TTY.
	Whole bool
	// TTY makes Stdin, a terminal, the controlling terminal of the program in a session of its own:
	// Ctrl-C then reaches the program.
	TTY bool
	// Shown is the program of the machine whose folder the program sees, as if it were Args[0] that
	// starts it; "": Args[0].
	Shown string
	// Lab is a folder of the machine that the program sees at /lab, read-only; "": it sees none.
	Lab string
	// Started, if not nil, receives the process once it has started: its PID in this process's
	// namespace.
	Started func(pid int)
}

// Watch is what the tasks of a program have needed.
type Watch struct {
	Datagrams bool // those of UDP count as traffic of programs
	CPU       time.Duration
	// real time in which the node's network was in use, and in which some task waited for a
	// processor meanwhile, at most
	Busy, Waited time.Duration
	Seen
}

// Seen is what looks at the tasks of a program have found, in real time since the first.
type Seen struct {
	Stood  stalls.Log // when some process was stopped
	Unseen stalls.Log // when who looks was stopped: nobody knows whether processes stood
}

// Check returns an error for what another process says that no looks have found.
func (s *Seen) Check() error { return errors.Join(s.Stood.Check(), s.Unseen.Check()) }

// A Restarter is a cluster whose nodes can be killed and restarted. Exits also reports a node that
// Kill ended.
type Restarter interface {
	// Kill kills a node with everything that runs in it.
	Kill(i int) error
	// Freeze stops every process of a node, or continues them.
	Freeze(i int, frozen bool) error
	// Restart starts a node again that has ended, with a new cable. Its other end is Link.FD, which
	// the caller owns; it is -1 on another machine, which keeps it for realtime.KindPlug.
	Restart(ctx context.Context, i int) (boot.Link, error)
}

// ErrNoNode is returned for a node that the lab does not have or that is not running.
var ErrNoNode = errors.New("no such node is running")

// ErrUnreachable is returned for a program whose node is on a machine that does not answer.
var ErrUnreachable = errors.New("its machine does not answer")

// StatusError reports a program in a node that ended with an exit status other than 0.
type StatusError struct {
	Code int    // 1 to 255; 128 plus the signal's number if a signal ended it
	Text string // "exit status 1", "signal: killed", "signal: killed (out of memory)"
	// Signal is the name of the signal that ended it, such as SIGKILL; "": none, or not known
	Signal string
	// OutOfMemory reports that the kernel killed the program, or one of its children, since their
	// node had too little memory.
	OutOfMemory bool
}

func (e *StatusError) Error() string { return e.Text }

// Status converts an *exec.ExitError into a *StatusError. It returns other errors unchanged.
func Status(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	s := &StatusError{Code: exit.ExitCode(), Text: exit.Error()}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		s.Code, s.Signal = 128+int(w.Signal()), unix.SignalName(w.Signal())
	}
	return s
}
