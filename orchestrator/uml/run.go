package uml

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/units"
)

// BootTime measures how long a kernel takes to boot and run weft version.
func BootTime(ctx context.Context, k *Kernel) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	code, err := Run(ctx, Command{
		Kernel: k, Path: self, Args: []string{"weft", "version"}, Dir: "/",
		Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("weft version ended with exit code %d under User Mode Linux", code)
	}
	return time.Since(began), err
}

// Time limits. Our own values: a boot takes 1 to 2 s on an idle machine, and an interrupted run
// writes its results.
const (
	bootTime  = time.Minute
	endTime   = time.Minute     // for the program to end after it was interrupted
	closeTime = 5 * time.Second // for the stage to end with all its processes
)

// Command is a program to run under its own kernel.
type Command struct {
	Kernel *Kernel
	Path   string   // of the program, as in this process
	Args   []string // including the program's name
	Env    []string // TMPDIR is replaced by a directory in memory that vanishes with the kernel
	Dir    string   // empty means this process's
	Stdout io.Writer
	Stderr io.Writer

	Memory units.Bytes   // of the kernel; 0: half of what is available, at most 4 GiB
	Boot   time.Duration // how long the kernel may take to boot; 0: a minute

	bare bool // without namespaces, as where there are none; for tests
}

// Run boots the kernel, runs the program, and returns its exit code: 128 and the signal's number if
// a signal ended it. When ctx ends, the program gets SIGINT, and a minute to end by itself; before
// the program runs, Run returns ctx's cause at once. When Run returns, and when this process is
// killed, nothing is left of kernel, program, and what that started.
func Run(ctx context.Context, c Command) (code int, err error) {
	if c.Memory == 0 {
		if c.Memory, err = chooseMemory(); err != nil {
			return 0, err
		}
	}
	o, err := c.order()
	if err != nil {
		return 0, err
	}
	if !c.bare {
		if code, err = c.runIn(ctx, o, true); !errors.Is(err, errUnisolated) {
			return code, err
		}
	}
	return c.runIn(ctx, o, false)
}

// runIn runs the program with namespaces for the stage or without.
func (c *Command) runIn(ctx context.Context, o *order, isolated bool) (code int, err error) {
	m, err := start(c, isolated)
	if err != nil {
		return 0, err
	}
	return m.run(ctx, c, o)
}

// insideVar is set to the kernel's release in the program's environment.
const insideVar = "WEFT_UML"

// Inside returns the release of the User Mode Linux that this process runs under, or "" if it does
// not.
func Inside() string { return os.Getenv(insideVar) }

// order returns the order for init.
func (c *Command) order() (*order, error) {
	dir := c.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	if err := Shared(dir); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	env := []string{"TMPDIR=" + inTmp, insideVar + "=" + c.Kernel.Release}
	for _, v := range c.Env {
		if name, _, _ := strings.Cut(v, "="); name != "TMPDIR" && name != "XDG_RUNTIME_DIR" { // the latter is in /run
			env = append(env, v)
		}
	}
	return &order{Path: []byte(c.Path), Args: texts(c.Args), Env: texts(env), Dir: []byte(dir), Host: host,
		Modules: c.Kernel.Modules}, nil
}

// machine is a running kernel and the stage around it.
type machine struct {
	cmd     *exec.Cmd
	alive   *os.File // the stage ends when this is closed
	line    *os.File
	console *tail
	ended   chan struct{} // the stage has ended
}

var errUnisolated = errors.New("no namespaces for User Mode Linux")

// unisolated reports whether a process failed to start because of its namespaces.
func unisolated(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EUSERS)
}

// start starts the stage.
func start(c *Command, isolated bool) (*machine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(self, "\"\n") {
		return nil, fmt.Errorf("%q, a path with quotes or line ends, cannot be started by User Mode Linux; "+
			"copy the program elsewhere", self)
	}
	if err := unix.Access(self, unix.R_OK); err != nil {
		return nil, fmt.Errorf("%s must be readable to start in User Mode Linux: %w", self, err)
	}
	if err := Shared(self); err != nil {
		return nil, err
	}
	spec, err := json.Marshal(stageSpec{Kernel: c.Kernel.Path, Self: self, Memory: c.Memory, Dirs: memoryDirs(),
		Isolated: isolated})
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	in, alive, err := os.Pipe()
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer in.Close()
	m := &machine{alive: alive, line: ours, console: &tail{}, ended: make(chan struct{})}
	m.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"weft", roleStage, string(spec)}, Env: []string{},
		Stdin: in, Stdout: m.console, Stderr: m.console, ExtraFiles: []*os.File{theirs},
		WaitDelay:   time.Second, // others may still hold the console
		SysProcAttr: stageAttr(isolated),
	}
	if err := m.cmd.Start(); err != nil {
		ours.Close()
		alive.Close()
		if isolated && unisolated(err) {
			return nil, fmt.Errorf("%w: %w", errUnisolated, err)
		}
		return nil, fmt.Errorf("start User Mode Linux: %w", err)
	}
	go func() {
		_ = m.cmd.Wait() // its exit code is in ProcessState
		close(m.ended)
	}()
	return m, nil
}

// stageAttr requests namespaces, within a user namespace if the user is not permitted others. The
// terminal's signals go to this process only.
func stageAttr(isolated bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if !isolated {
		return attr
	}
	attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// memoryDirs returns candidate directories for the memory file, best first.
func memoryDirs() []string {
	dirs := []string{"/dev/shm"}
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		dirs = append(dirs, d)
	}
	return append(dirs, os.TempDir(), "/tmp", "/var/tmp")
}

// socketPair returns the two ends of a stream. The kernel's end stays blocking until the kernel
// changes it.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that Close ends a Read
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "line"), os.NewFile(uintptr(fds[1]), "line"), nil
}

// close stops the machine and waits until nothing of it is left.
func (m *machine) close() error {
	m.alive.Close()
	m.line.Close()
	select {
	case <-m.ended:
		return nil
	case <-time.After(closeTime):
	}
	if err := m.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-m.ended
	return nil
}

// run lets the machine's init carry out an order.
func (m *machine) run(ctx context.Context, c *Command, o *order) (code int, err error) {
	defer func() {
		if cerr := m.close(); err == nil {
			err = cerr
		}
	}()
	if err := m.boot(ctx, cmp.Or(c.Boot, bootTime)); err != nil {
		return 0, m.explain(ctx, err)
	}
	o.Clock = time.Now().UnixNano()
	out := &writer{to: m.line}
	if err := out.value(kindOrder, o); err != nil {
		return 0, m.explain(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = out.frame(kindSignal, []byte{byte(unix.SIGINT)}) // follow reports a broken line
		_ = m.line.SetReadDeadline(time.Now().Add(endTime))
	})
	defer stop()
	code, err = m.follow(c)
	if err != nil && !errors.Is(err, errProgram) {
		return 0, m.explain(ctx, err)
	}
	return code, err
}

// boot waits for init's hello.
func (m *machine) boot(ctx context.Context, most time.Duration) error {
	if err := m.line.SetReadDeadline(time.Now().Add(most)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = m.line.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	k, _, err := readFrame(m.line)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it has not booted within %v", most)
	case errors.Is(err, io.EOF):
		return errors.New("it ended before it had booted")
	case err == nil && k != kindHello:
		return errFrame
	case err != nil:
		return err
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return m.line.SetReadDeadline(time.Time{})
}

// errProgram means that init could not start the program.
var errProgram = errors.New("under User Mode Linux")

// follow forwards the program's output until init sends how it ended.
func (m *machine) follow(c *Command) (code int, err error) {
	for {
		k, body, err := readFrame(m.line)
		if err != nil {
			return 0, err
		}
		switch k {
		case kindOut:
			_, err = c.Stdout.Write(body)
		case kindErr:
			_, err = c.Stderr.Write(body)
		case kindExit:
			var x exit
			if err := json.Unmarshal(body, &x); err != nil {
				return 0, fmt.Errorf("%w: %w", errFrame, err)
			}
			if x.Error != "" {
				return 0, fmt.Errorf("%w: %s", errProgram, x.Error)
			}
			return x.Code, nil
		default:
			err = errFrame
		}
		if err != nil {
			return 0, err
		}
	}
}

// explain adds the last lines of the console to an error, which usually show the cause.
func (m *machine) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return context.Cause(ctx)
	}
	if cerr := m.close(); cerr != nil {
		return cerr
	}
	state := m.cmd.ProcessState
	if state.ExitCode() == stageUnisolated {
		return errUnisolated
	}
	text := m.console.String()
	if text == "" {
		text = "nothing"
	}
	return fmt.Errorf("no run under User Mode Linux: %w (%v); its console says last:\n%s", err, state, text)
}

// tail is a writer that keeps the last bytes written.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

const tailSize = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String returns the kept text from its first whole line on, if it has one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text
	if len(text) == tailSize {
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	return strings.TrimSpace(string(text))
}
