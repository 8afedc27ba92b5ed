package uml

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/poller"
	"weft/units"
)

// Roles that a program plays for Run. They are among its arguments.
const (
	roleStage = "uml-stage"
	roleInit  = "uml-init"
)

// Role plays the role that the arguments name, if they name one, and returns the exit code of the process. Every program
// that calls Run calls Role before it looks at its arguments.
func Role(args []string) (code int, played bool) {
	switch {
	case os.Getpid() == 1 && slices.Contains(args, roleInit): // among all that the kernel itself did not understand
		beInit()
	case len(args) == 3 && args[1] == roleStage:
		return beStage(args[2]), true
	}
	return 0, false
}

// stageSpec is what the stage is to do.
type stageSpec struct {
	Kernel   string      `json:"kernel"` // its path
	Self     string      `json:"self"`   // the path of this program, which is to be init
	Memory   units.Bytes `json:"memory"`
	Dirs     []string    `json:"dirs"`     // where the memory's file may be, outside of a mount namespace
	Isolated bool        `json:"isolated"` // in PID and mount namespaces of its own
}

// Exit codes of the stage, beside those of the kernel, which are small.
const (
	stageFailed     = 125
	stageUnisolated = 124 // its namespaces are no use: start another without
)

// lineFD is the descriptor of the serial line, in the stage and the kernel.
const lineFD = 3

// beStage runs the kernel and ends with it, or when its standard input ends, which nobody writes and whose other end
// is Run's: then Run is no more, or no more interested. With the stage everything ends that the kernel started: it is the
// init of its PID namespace, or else looks for them itself.
func beStage(text string) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE) // Run's business
	var s stageSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return stageError(err)
	}
	dirs := s.Dirs
	if s.Isolated {
		if err := isolate(s.Memory); err != nil {
			stageError(err)
			return stageUnisolated
		}
		dirs = []string{memoryMount}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return stageError(err)
	}
	dir, err := memoryDir(dirs, s.Memory)
	if err != nil {
		return stageError(err)
	}
	// Addresses are not drawn at random, or the kernel starts itself again by a path in /proc (personality(2)).
	if _, _, e := unix.Syscall(unix.SYS_PERSONALITY, addrNoRandomize, 0, 0); e != 0 {
		return stageError(e)
	}
	program, err := fitting(s.Kernel)
	if err != nil {
		return stageError(err)
	}
	runtime.LockOSThread() // the parent-death signal is this thread's, which never ends before the stage
	cmd := &exec.Cmd{
		Path: program, Args: s.arguments(), Env: []string{"TMPDIR=" + dir, "HOME=/dev/null"}, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles:  []*os.File{os.NewFile(lineFD, "line")},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	unix.CloseOnExec(lineFD)
	pin()
	if err := cmd.Start(); err != nil {
		return stageError(err)
	}
	_ = poller.Favour(cmd.Process.Pid) // where that may not be, the kernel waits for other programs, and its lateness tells
	ended := make(chan int, 1)
	go func() {
		_ = cmd.Wait()
		ended <- cmd.ProcessState.ExitCode()
	}()
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(gone)
	}()
	code := stageFailed
	select {
	case code = <-ended:
	case <-gone:
		_ = poller.DropRealTime(cmd.Process.Pid) // it is about to be killed, and may wait for a turn to end in
	}
	if !s.Isolated {
		killChildren()
	}
	return code
}

// pin keeps this thread, and what it starts, on one of its processors: the kernel and the process in which it runs others take turns,
// and on two processors each turn wakes an idle one, which takes several times as long (docs/adr/0116).
func pin() {
	var may, one unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil || may.Count() < 2 {
		return
	}
	nth := int(time.Now().UnixNano()/1000) % may.Count() // another than that of other kernels, perhaps
	for cpu := 0; ; cpu++ {
		if may.IsSet(cpu) {
			if nth == 0 {
				one.Set(cpu)
				break
			}
			nth--
		}
	}
	_ = unix.SchedSetaffinity(0, &one) // else it is slower
}

const addrNoRandomize = 0x0040000 // linux/personality.h

func stageError(err error) int {
	fmt.Fprintf(os.Stderr, "weft: %v\n", err)
	return stageFailed
}

// arguments are the kernel's command line.
func (s *stageSpec) arguments() []string {
	return []string{
		"linux.uml", fmt.Sprintf("mem=%dM", int64(s.Memory/units.MiB)),
		"rootfstype=hostfs", "rootflags=/", "rw",
		"init=" + quoted(s.Self),
		"con=null", "con0=null,fd:1", "ssl=null", fmt.Sprintf("ssl0=fd:%d", lineFD),
		"uml_dir=/dev/null/", // which is no directory: no socket that takes orders, and no file to clean up
		"noreboot", "panic=1",
		"initcall_blacklist=raid6_select_algo,calibrate_xor_blocks", // which measure for most of a second what nobody uses
		roleInit, // not behind "--", where the kernel would put words of its own as well
	}
}

// quoted is a value as the kernel reads it (lib/cmdline.c, next_arg): quotes keep spaces together, and nothing quotes quotes. The
// kernel's spaces are Latin-1's (lib/ctype.c): the byte 0xa0 is one, wherever in a character of UTF-8 it stands.
func quoted(value string) string { return `"` + value + `"` }

// memoryMount is where the stage has, in a mount namespace of its own, a file system in memory: for the kernel alone, and
// gone with it.
const memoryMount = "/dev/shm"

// isolate makes what the stage's new namespaces are for.
func isolate(memory units.Bytes) error {
	if os.Getpid() != 1 {
		return errors.New("not in a PID namespace of its own")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("cut mounts off: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	size := memory + 64*units.MiB // the file, and its file system's own needs
	if err := unix.Mount("tmpfs", memoryMount, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=700,size=%d", int64(size))); err != nil {
		return fmt.Errorf("mount %s: %w", memoryMount, err)
	}
	return nil
}

// killChildren ends all children, and children's children that become this process's, until there are none.
func killChildren() {
	for {
		for _, pid := range children() {
			_ = unix.Kill(pid, unix.SIGKILL) // it may just have ended
		}
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return
		}
		if got == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// children lists the processes whose parent is any thread of this one.
func children() []int { return childrenOf(os.Getpid()) }

// childrenOf lists the processes whose parent is any thread of one.
func childrenOf(pid int) []int {
	var pids []int
	of := fmt.Sprintf("/proc/%d/task/", pid)
	tasks, _ := os.ReadDir(of)
	for _, t := range tasks {
		text, _ := os.ReadFile(of + t.Name() + "/children")
		for _, f := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
