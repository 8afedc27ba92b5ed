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

// Roles of this program during Run, found among its arguments.
const (
	roleStage = "uml-stage"
	roleInit  = "uml-init"
)

// Role carries out the role that the arguments name, if any, and returns the exit code of the
// process. Every program that calls Run must call Role before it reads its arguments.
func Role(args []string) (code int, played bool) {
	switch {
	case os.Getpid() == 1 && slices.Contains(args, roleInit): // among arguments that the kernel did not understand
		beInit()
	case len(args) == 3 && args[1] == roleStage:
		return beStage(args[2]), true
	}
	return 0, false
}

// stageSpec tells the stage what to do.
type stageSpec struct {
	Kernel   string      `json:"kernel"` // its path
	Self     string      `json:"self"`   // path of this program, which becomes init
	Memory   units.Bytes `json:"memory"`
	Dirs     []string    `json:"dirs"`     // candidates for the memory file, outside a mount namespace
	Isolated bool        `json:"isolated"` // in PID and mount namespaces of its own
}

// Exit codes of the stage. Those of the kernel are small.
const (
	stageFailed     = 125
	stageUnisolated = 124 // its namespaces do not work: start another without
)

// lineFD is the descriptor of the serial line, in the stage and in the kernel.
const lineFD = 3

// beStage runs the kernel until it ends, or until standard input ends. Nobody writes to that; Run
// holds the other end, so its end means that Run has died or stopped waiting. When the stage ends,
// so does everything the kernel started: the stage is the init of its PID namespace, or else kills
// them itself.
func beStage(text string) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE) // Run handles these
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
	// Switch off address randomisation; otherwise the kernel re-executes itself by a path in /proc
	// (personality(2)).
	if _, _, e := unix.Syscall(unix.SYS_PERSONALITY, addrNoRandomize, 0, 0); e != 0 {
		return stageError(e)
	}
	program, err := fitting(s.Kernel)
	if err != nil {
		return stageError(err)
	}
	runtime.LockOSThread() // the parent-death signal belongs to this thread, which must not end before the stage
	cmd := &exec.Cmd{
		Path: program, Args: s.arguments(), Env: []string{"TMPDIR=" + dir, "HOME=/dev/null"}, Stdout: os.Stdout,
		Stderr:      os.Stderr,
		ExtraFiles:  []*os.File{os.NewFile(lineFD, "line")},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	unix.CloseOnExec(lineFD)
	pin()
	if err := cmd.Start(); err != nil {
		return stageError(err)
	}
	// if not permitted, the kernel waits for other programs, and the run reports its lateness
	_ = poller.Favour(cmd.Process.Pid)
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
		_ = poller.DropRealTime(cmd.Process.Pid) // so that the kill takes effect at once
	}
	if !s.Isolated {
		killChildren()
	}
	return code
}

// pin restricts this thread and its children to one processor. The kernel and its tracee take
// turns; on two processors each turn would wake an idle one, which takes several times as long (ADR
// 116).
func pin() {
	var may, one unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil || may.Count() < 2 {
		return
	}
	nth := int(time.Now().UnixNano()/1000) % may.Count() // probably not the one of another kernel
	for cpu := 0; ; cpu++ {
		if may.IsSet(cpu) {
			if nth == 0 {
				one.Set(cpu)
				break
			}
			nth--
		}
	}
	_ = unix.SchedSetaffinity(0, &one) // otherwise it is only slower
}

const addrNoRandomize = 0x0040000 // linux/personality.h

func stageError(err error) int {
	fmt.Fprintf(os.Stderr, "weft: %v\n", err)
	return stageFailed
}

// arguments returns the kernel's command line.
func (s *stageSpec) arguments() []string {
	return []string{
		"linux.uml", fmt.Sprintf("mem=%dM", int64(s.Memory/units.MiB)),
		"rootfstype=hostfs", "rootflags=/", "rw",
		"init=" + quoted(s.Self),
		"con=null", "con0=null,fd:1", "ssl=null", fmt.Sprintf("ssl0=fd:%d", lineFD),
		"uml_dir=/dev/null/", // not a directory: no management socket, and no file to clean up
		"noreboot", "panic=1",
		// they measure for most of a second, and nothing needs the result
		"initcall_blacklist=raid6_select_algo,calibrate_xor_blocks",
		roleInit, // not after "--", where the kernel adds words of its own
	}
}

// quoted returns a value in the form that the kernel parses (lib/cmdline.c, next_arg): quotes keep
// spaces together, and quotes cannot be escaped. The kernel's spaces are those of Latin-1
// (lib/ctype.c), so the byte 0xa0 is one even within a UTF-8 character.
func quoted(value string) string { return `"` + value + `"` }

// memoryMount is where an isolated stage mounts a file system in memory for the kernel only.
const memoryMount = "/dev/shm"

// isolate sets up the stage's new namespaces.
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
	size := memory + 64*units.MiB // the file and its file system's overhead
	if err := unix.Mount("tmpfs", memoryMount, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=700,size=%d",
		int64(size))); err != nil {
		return fmt.Errorf("mount %s: %w", memoryMount, err)
	}
	return nil
}

// killChildren ends all children, and adopted descendants, until there are none.
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

// children returns the child processes of all threads of this process.
func children() []int { return childrenOf(os.Getpid()) }

// childrenOf returns the child processes of all threads of a process.
func childrenOf(pid int) []int {
	var pids []int
	threads, _ := poller.Threads(pid)
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, thread))
		for _, f := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
