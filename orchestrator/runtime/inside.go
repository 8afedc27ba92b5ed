package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/thread"
	"weft/nodeimg/boot"
	"weft/nodeimg/labclock"
	"weft/units"
)

// Limits of the processes in one node. Our own choice: a node itself takes some megabytes and a
// dozen threads.
const (
	DefaultMemory = 2 * units.GiB
	MaxProcesses  = 512
)

// labFolder is where a program sees Command.Lab.
const labFolder = "/lab"

// Inside is a node that a program of this machine is to run in.
type Inside struct {
	PID    int          // of the node's first process
	Enter  func() error // moves the calling thread into the node
	Hidden []string     // boot.NodeSpec.Hidden
	Memory units.Bytes  // data limit of one process; 0: DefaultMemory
	Groups []*os.File   // cgroup.procs files of the program's control groups; Run closes them

	// Keeper returns the lab's keeper of lab time.
	Keeper func() (*labclock.Keeper, error)
}

// Run runs a program of this machine in a node and waits for it. The program runs as a user of its
// own, with no capabilities but those for the node's network. It sees the machine's files that
// every node sees, and in addition the folder with the program.
//
// Run sets no parent-death signal: a process whose parent is outside its PID namespace sees parent
// 0, which Go takes for a parent that has died. The program ends with the init process of the
// namespace, which has the signal.
func (n *Inside) Run(ctx context.Context, command Command) error {
	defer func() {
		for _, f := range n.Groups {
			f.Close()
		}
	}()
	if len(command.Args) == 0 {
		return errors.New("no program to run: the command is empty")
	}
	socket, err := n.attach(&command)
	if err != nil {
		return err
	}
	defer socket.Close() // harmless for nil
	result := make(chan error, 1)
	thread.Own(func() { result <- n.run(ctx, &command, socket) })
	return <-result
}

// attach prepares lab time for a program. It returns nil if the command does not ask for it.
func (n *Inside) attach(command *Command) (*os.File, error) {
	if command.Clock == nil {
		return nil, nil
	}
	keeper, err := n.Keeper()
	if err != nil {
		return nil, err
	}
	errors, _ := command.Stderr.(*os.File)
	return keeper.Attach(command.Clock, errors)
}

// run runs the program on the calling thread, which stays in the node.
func (n *Inside) run(ctx context.Context, command *Command, socket *os.File) error {
	p := boot.Program{User: boot.ProgramUser(n.PID), Processes: MaxProcesses, Memory: cmp.Or(n.Memory, DefaultMemory)}
	if !boot.HasUser(p.User) {
		p.Processes = 0 // the limit would count the whole lab's processes
	}
	shown, err := boot.Show(cmp.Or(command.Shown, command.Args[0]), n.Hidden)
	if err != nil {
		return err
	}
	defer shown.Close()
	files := boot.NoShowing
	if command.Lab != "" {
		if files, err = boot.ShowFolder(command.Lab, labFolder); err != nil {
			return err
		}
		defer files.Close()
	}
	if err := n.Enter(); err != nil {
		return err
	}
	if _, err := files.Place(); err != nil { // first: what the machine has at that path is not meant
		return err
	}
	path, err := shown.Place()
	if err != nil {
		return err
	}
	if command.Shown != "" && command.Shown != command.Args[0] {
		path = command.Args[0]
	}
	if !strings.Contains(path, "/") {
		if path, err = exec.LookPath(path); err != nil {
			return err
		}
	} else if _, err := os.Stat(path); err != nil && !strings.HasPrefix(path, "/proc/") { // /proc is the program's
		return err
	}
	p.Path = path
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = command.Args
	cmd.Env = append(Environment(), command.Env...)
	cmd.Dir = cmp.Or(command.Dir, "/tmp")
	if err := p.Command(cmd, n.Groups, socket); err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = command.Stdin, command.Stdout, command.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) } // tcpdump then flushes its file
	cmd.WaitDelay = time.Second
	if command.TTY {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}
	if command.Whole && !command.TTY {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGTERM) }
		defer func() {
			if cmd.Process != nil {
				_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // an error means that nothing is left
			}
		}()
	}
	kills := n.memoryKills()
	if err := cmd.Start(); err != nil {
		return err
	}
	socket.Close() // if the program fails before it has used its own, the keeper sees the end
	raiseOOMScore(cmd.Process.Pid)
	if command.Started != nil {
		command.Started(cmd.Process.Pid)
	}
	err = Status(cmd.Wait())
	var status *StatusError
	if errors.As(err, &status) && n.memoryKills() > kills {
		status.Text += " (out of memory)"
		status.OutOfMemory = true
	}
	return err
}

// memoryKills returns how often the kernel has killed a process of the control groups since they
// had too little memory. It uses another thread, since the calling one sees the node's files.
func (n *Inside) memoryKills() int {
	result := make(chan int)
	go func() {
		kills := 0
		for _, f := range n.Groups {
			for _, name := range []string{"memory.events", "memory.oom_control"} { // of version 2, 1
				text, _ := os.ReadFile(filepath.Join(filepath.Dir(f.Name()), name)) // an error: not its version
				for line := range strings.Lines(string(text)) {
					if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
						k, _ := strconv.Atoi(count)
						kills += k
					}
				}
			}
		}
		result <- kills
	}()
	return <-result
}

// programOOMScore is the oom_score_adj (-1000 to 1000) of programs in nodes. It is above the nodes'
// own, so that the kernel kills programs first.
const programOOMScore = 900

// raiseOOMScore gives a program programOOMScore. It uses another thread, since the calling one sees
// the node's read-only /proc.
func raiseOOMScore(pid int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// an error means that it has ended
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(programOOMScore)), 0)
	}()
	<-done
}
