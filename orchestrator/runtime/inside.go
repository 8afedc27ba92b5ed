package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

// Inside is a node that a program is to run in.
type Inside struct {
	PID    int          // of the node's first process, or of that of a container beside it
	Enter  func() error // moves the calling thread into the node, or the container
	Image  bool         // a container with the files, user and variables of the program's image
	Hidden []string     // boot.NodeSpec.Hidden
	Memory units.Bytes  // data limit of one process; 0: DefaultMemory
	Groups []*os.File   // cgroup.procs files of the program's control groups; Run closes them

	// Keeper returns the lab's keeper of lab time.
	Keeper func() (*labclock.Keeper, error)
}

// Run runs a program in a node and waits for it. The program has no capabilities but those for the
// node's network. One of this machine runs as a user of its own, sees the machine's files that
// every node sees, and in addition the folder with the program. One of an image has what the
// process PID has.
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
	if command.Clock == nil {
		return n.start(ctx, &command, nil)
	}
	keeper, err := n.Keeper()
	if err != nil {
		return err
	}
	complaints, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer complaints.Close()
	socket, err := keeper.Attach(command.Clock, theirs)
	theirs.Close()
	if err != nil {
		return err
	}
	defer socket.Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if to, ok := command.Stderr.(*os.File); ok {
			_, _ = io.Copy(to, complaints) // nobody may read it any more
		}
	}()
	defer func() {
		// a daemon keeps the keeper's end open; what was said before the end is there
		_ = complaints.SetReadDeadline(time.Now().Add(lostTime))
		select {
		case <-copied:
		case <-time.After(2 * lostTime): // nobody reads the program's output
		}
	}()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-keeper.Lost():
			end()
		case <-ctx.Done():
		}
	}()
	if err = n.start(ctx, &command, socket); err == nil {
		return nil
	}
	ended := time.Now()
	for { // a program may notice before this process does
		past := time.Since(ended)
		over := keeper.Closed() || past > keeperTime || !dying(keeper.PID()) && (!wasKilled(err) || past > killedTime)
		select {
		case <-keeper.Lost():
			return keeperLost(keeper)
		case <-time.After(time.Millisecond):
		}
		if over {
			return err
		}
	}
}

// killedTime is how long a keeper may seem to be alive after it took a program with it, which the
// kernel then kills. Our own choice: with one look at once, 1 of 20 keepers did on a busy machine.
const killedTime = 100 * time.Millisecond

// wasKilled reports whether err is that of a program that ended by SIGKILL.
func wasKilled(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == 128+int(unix.SIGKILL)
}

// keeperTime bounds how long a keeper that has begun to exit may take until it has ended. Our own
// choice: it takes a millisecond, and longer on a busy machine.
const keeperTime = 10 * time.Second

// KeeperName is the name of the process that gives programs lab time, for people.
const KeeperName = "the keeper of lab time"

// keeperLost describes the end of a keeper, and what it means for programs.
func keeperLost(k *labclock.Keeper) *ExitError {
	return &ExitError{Name: KeeperName,
		State: k.How() + "; programs with lab time cannot go on without it: start them again"}
}

// lostTime is how late what a keeper wrote may arrive. Our own choice: it takes less than a
// millisecond.
const lostTime = 20 * time.Millisecond

// start runs the program on a thread of its own.
func (n *Inside) start(ctx context.Context, command *Command, socket *os.File) error {
	result := make(chan error, 1)
	thread.Own(func() { result <- n.run(ctx, command, socket) })
	return <-result
}

// run runs the program on the calling thread, which stays in the node.
func (n *Inside) run(ctx context.Context, command *Command, socket *os.File) error {
	p := boot.Program{User: boot.ProgramUser(n.PID), Processes: MaxProcesses, Memory: cmp.Or(n.Memory, DefaultMemory)}
	env, dir := Environment(), "/tmp"
	if n.Image {
		as, err := identityOf(n.PID)
		if err != nil {
			return err
		}
		p.Image, p.User, p.Group, p.OtherGroups, env, dir = true, as.user, as.group, as.others, as.env, as.dir
	}
	if n.Image || !boot.HasUser(p.User) {
		p.Processes = 0 // the limit would count others' processes
	}
	path, err := n.place(command)
	if err != nil {
		return err
	}
	p.Path = path
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = command.Args
	cmd.Env = append(env, command.Env...)
	cmd.Dir = cmp.Or(command.Dir, dir)
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
	awaitEnd(cmd.Process.Pid)
	err = Status(cmd.Wait())
	var status *StatusError
	if errors.As(err, &status) && n.memoryKills() > kills {
		status.Text += " (out of memory)"
		status.OutOfMemory = true
	}
	return err
}

// place moves the calling thread into the node, with the files that the program sees, and returns
// the program's path there. That of an image may be a name in the image's PATH.
func (n *Inside) place(command *Command) (path string, err error) {
	shown := boot.NoShowing
	if !n.Image {
		if shown, err = boot.Show(cmp.Or(command.Shown, command.Args[0]), n.Hidden); err != nil {
			return "", err
		}
		defer shown.Close()
	}
	files := boot.NoShowing
	if command.Lab != "" {
		if files, err = boot.ShowFolder(command.Lab, labFolder); err != nil {
			return "", err
		}
		defer files.Close()
	}
	if err := n.Enter(); err != nil {
		return "", err
	}
	if _, err := files.Place(); err != nil { // first: what the machine has at that path is not meant
		return "", err
	}
	if n.Image {
		return command.Args[0], nil
	}
	if path, err = shown.Place(); err != nil {
		return "", err
	}
	if command.Shown != "" && command.Shown != command.Args[0] {
		path = command.Args[0]
	}
	if !strings.Contains(path, "/") {
		return exec.LookPath(path)
	}
	if _, err := os.Stat(path); err != nil && !strings.HasPrefix(path, "/proc/") { // /proc is the program's
		return "", err
	}
	return path, nil
}

// identity is what a program of an image has from the engine.
type identity struct {
	user, group int
	others      []int // groups
	env         []string
	dir         string
}

// identityOf returns the identity of a process. Variables that are Weft's own are left out: they
// would make another process of what starts the program.
func identityOf(pid int) (*identity, error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return nil, err
	}
	is := new(identity)
	ids := map[string][]int{}
	for line := range strings.Lines(string(status)) {
		name, values, _ := strings.Cut(line, ":")
		if name != "Uid" && name != "Gid" && name != "Groups" {
			continue
		}
		for _, v := range strings.Fields(values) {
			id, err := strconv.Atoi(v)
			if err != nil {
				return nil, err
			}
			ids[name] = append(ids[name], id)
		}
	}
	if len(ids["Uid"]) == 0 || len(ids["Gid"]) == 0 {
		return nil, fmt.Errorf("process %d shows no user", pid)
	}
	is.user, is.group, is.others = ids["Uid"][0], ids["Gid"][0], ids["Groups"]
	env, err := os.ReadFile(proc + "environ")
	if err != nil {
		return nil, err
	}
	for v := range strings.SplitSeq(string(env), "\x00") {
		if v != "" && !strings.HasPrefix(v, "WEFT_") {
			is.env = append(is.env, v)
		}
	}
	is.dir, err = os.Readlink(proc + "cwd")
	return is, err
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
