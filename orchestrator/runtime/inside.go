package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/thread"
	"weft/nodeimg/boot"
	"weft/units"
)

// Bounds of what runs in one node. Ours: a node itself takes some megabytes and a dozen threads.
const (
	DefaultMemory = 2 * units.GiB
	MaxProcesses  = 512
)

// Inside is a node that a program of this machine is to run in.
type Inside struct {
	PID    int          // of the node's first process
	Enter  func() error // moves the calling thread into the node
	Hidden []string     // boot.NodeSpec.Hidden
	Memory units.Bytes  // most data of one process; 0: DefaultMemory
	Groups []*os.File   // cgroup.procs of the control groups that the program is to be in; Run closes them
}

// Run runs a program of this machine in a node and waits for it. The program is a user of its own, with no capability
// but those to use the node's network as it likes, and sees besides what every node has of the machine's files the
// folder it lies in.
//
// No parent-death signal is set: a process whose parent lies outside its PID namespace cannot tell whether
// the parent is alive, and Go would take it for dead. The program ends with the init of the namespace, which
// has the signal.
func (n *Inside) Run(ctx context.Context, command Command) error {
	defer func() {
		for _, f := range n.Groups {
			f.Close()
		}
	}()
	if len(command.Args) == 0 {
		return errors.New("no program was named")
	}
	result := make(chan error, 1)
	thread.Own(func() { result <- n.run(ctx, &command) })
	return <-result
}

// run runs the program from the calling thread, which stays in the node.
func (n *Inside) run(ctx context.Context, command *Command) error {
	p := boot.Program{User: boot.ProgramUser(n.PID), Processes: MaxProcesses, Memory: cmp.Or(n.Memory, DefaultMemory)}
	if !boot.HasUser(p.User) {
		p.Processes = 0 // those of the whole lab would be counted
	}
	shown, err := boot.Show(command.Args[0], n.Hidden)
	if err != nil {
		return err
	}
	defer shown.Close()
	if err := n.Enter(); err != nil {
		return err
	}
	path, err := shown.Place()
	if err != nil {
		return err
	}
	if !strings.Contains(path, "/") {
		if path, err = exec.LookPath(path); err != nil {
			return err
		}
	} else if _, err := os.Stat(path); err != nil && !strings.HasPrefix(path, "/proc/") { // which is the program's own, not this thread's
		return err
	}
	p.Path = path
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = command.Args
	cmd.Env = append(Environment(), command.Env...)
	cmd.Dir = cmp.Or(command.Dir, "/tmp")
	if err := p.Command(cmd, n.Groups); err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = command.Stdin, command.Stdout, command.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) } // so that tcpdump writes out what it has
	cmd.WaitDelay = time.Second
	if command.TTY {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	expend(cmd.Process.Pid)
	return Status(cmd.Wait())
}

// mostExpendable is above what nodes are: where a node is out of memory a program in it goes first. oom_score_adj, of -1000 to 1000.
const mostExpendable = 900

// expend makes a program the first to go when memory is short. The calling thread sees the node's /proc, in which nothing can be
// written; others see the machine's.
func expend(pid int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(mostExpendable)), 0) // it may have ended
	}()
	<-done
}
