package boot

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/nodeimg/labclock"
	"weft/units"
)

// A Program is a user's program to run inside a node, with its limits. Like a process of the lab it
// starts in two images: the first is this program once more, which drops everything, and becomes
// the second, the program itself. Limits and control groups of a process can be set only from
// within, so that nothing the program starts can escape them.
type Program struct {
	Path string `json:"path"` // path in the node; of an image also a name in its PATH
	User int    `json:"user"` // user ID to run as, if it exists: see ProgramUser
	// Image says that it is a program of an image, which has a user and groups of its own.
	Image       bool  `json:"image"`
	Group       int   `json:"group"`
	OtherGroups []int `json:"other_groups"`
	// number of inherited descriptors of control groups' cgroup.procs, to enter
	Groups    int         `json:"groups"`
	Processes uint64      `json:"processes"` // largest number of processes and threads of User; 0: unlimited
	Memory    units.Bytes `json:"memory"`    // largest data segment of one process; 0: unlimited
	LabTime   bool        `json:"lab_time"`  // read lab time; labclock's socket is inherited after Groups
}

// programVar is an environment variable that tells the first image of a program which program to
// become.
const programVar = "WEFT_PROGRAM"

// firstUser is the first of the user IDs that systemd, container engines and distributions leave
// free: systemd.io/UIDS-GIDS lists uses up to 0x6FFFFFFF.
const firstUser = 0x70000000

// ProgramUser returns the user ID of programs in the node whose first process is pid. The node has
// it to itself, it owns nothing, and its processes are counted together.
func ProgramUser(pid int) int { return firstUser + pid }

// Command changes cmd, which is otherwise ready, to start p. groups are the files of its control
// groups, labTime is the socket of labclock.Keeper.Attach; nil: the program reads the machine's
// clocks.
func (p *Program) Command(cmd *exec.Cmd, groups []*os.File, labTime *os.File) error {
	p.Groups, p.LabTime = len(groups), labTime != nil
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	cmd.Path = "/proc/self/exe" // works even if the node's tree covers the file
	cmd.Env = append(cmd.Env, programVar+"="+string(text))
	cmd.ExtraFiles = groups
	if labTime != nil {
		cmd.ExtraFiles = append(groups[:len(groups):len(groups)], labTime)
	}
	return nil
}

// init becomes the program if this is its first image. It is here because only init runs before
// everything else, on the first thread, in weft and in tests alike.
func init() {
	text, ok := os.LookupEnv(programVar)
	if !ok {
		return
	}
	os.Unsetenv(programVar)
	p := new(Program)
	err := json.Unmarshal([]byte(text), p)
	if err == nil {
		err = p.become()
	}
	fmt.Fprintf(os.Stderr, "weft: %s: %v\n", p.Path, err)
	// like a shell's exit code for a program that cannot be started
	unix.Exit(126)
}

// become turns this process into the program. It returns only on error.
func (p *Program) become() error {
	runtime.LockOSThread()
	for i := range p.Groups {
		if _, err := unix.Write(3+i, []byte("0")); err != nil {
			return fmt.Errorf("enter control group: %w", err)
		}
	}
	if err := control.KeepDescriptors(); err != nil {
		return err
	}
	if err := limits(); err != nil {
		return err
	}
	if err := bound("processes", unix.RLIMIT_NPROC, p.Processes); err != nil {
		return err
	}
	if err := ownKeys(); err != nil {
		return err
	}
	d := dropper{keep: []uintptr{unix.CAP_NET_RAW, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}, contained: true}
	if err := d.boundingSet(); err != nil {
		return err
	}
	switch {
	case p.Image:
		if err := d.become(p.User, p.Group, p.OtherGroups); err != nil {
			return fmt.Errorf("change user: %w", err)
		}
	case reachable(p.Path): // otherwise only its owner may run the file
		if err := d.change(p.User); err != nil {
			return err
		}
	}
	if err := d.capabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := filterCalls(); err != nil {
		return err
	}
	if p.LabTime {
		if err := labclock.Install(3 + p.Groups); err != nil {
			return err
		}
	}
	resetSignals()
	if p.Image && !strings.Contains(p.Path, "/") {
		path, err := exec.LookPath(p.Path)
		if err != nil {
			return err
		}
		p.Path = path
	}
	if narrow(p.Path) {
		return errors.New("it is a 32-bit program; programs in nodes are 64-bit ones, whose system calls are filtered")
	}
	// last: until here this process may need more than the program may have
	if err := bound("memory", unix.RLIMIT_DATA, uint64(p.Memory)); err != nil {
		return err
	}
	err := unix.Exec(p.Path, os.Args, os.Environ())
	if errors.Is(err, unix.ENOEXEC) {
		if other, ok := foreign(p.Path); ok {
			return fmt.Errorf("%w; it is a program for %v, and this machine is %s", err, other, runtime.GOARCH)
		}
		return fmt.Errorf("%w; a script needs a first line such as #!/usr/bin/env python3", err)
	}
	return err
}

// narrow reports whether a file is a 32-bit program.
func narrow(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // exec says what is wrong with it
	}
	defer f.Close()
	var ident [elf.EI_CLASS + 1]byte
	_, err = io.ReadFull(f, ident[:])
	return err == nil && string(ident[:elf.EI_CLASS]) == elf.ELFMAG && elf.Class(ident[elf.EI_CLASS]) == elf.ELFCLASS32
}

// foreign returns the machine that a program is for, if that is another than this one.
func foreign(path string) (machine elf.Machine, is bool) {
	program, err := elf.Open(path)
	if err != nil {
		return 0, false // no program
	}
	defer program.Close()
	own, err := elf.Open("/proc/self/exe")
	if err != nil {
		return 0, false
	}
	defer own.Close()
	return program.Machine, program.Machine != own.Machine
}

// resetSignals restores the default action of every signal. A supervisor ignores Ctrl-C, and
// children of a process that ignores a signal ignore it too: sigaction(2). Nothing of this process
// runs afterwards.
func resetSignals() {
	const last = 64
	// struct sigaction of the kernel: SIG_DFL, with no flags, restorer and mask
	var byDefault [4]uint64
	for s := uintptr(1); s <= last; s++ {
		// two signals cannot be changed
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	}
}

// bound lowers a limit of this process for good; limit 0 leaves it.
func bound(name string, resource int, limit uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return fmt.Errorf("limit of %s: %w", name, err)
	}
	if limit == 0 || now.Max <= limit {
		return nil
	}
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: min(limit, now.Cur), Max: limit}); err != nil {
		return fmt.Errorf("limit of %s: %w", name, err)
	}
	return nil
}

// ownKeys replaces the inherited session keyring (keyrings(7)) by a new one.
func ownKeys() error {
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	// there are none, or a system call filter denies them
	if err == unix.ENOSYS || err == unix.EPERM || err == unix.EACCES {
		return nil
	}
	if err != nil {
		return fmt.Errorf("new session keyring: %w", err)
	}
	return nil
}

// reachable reports whether any user may run a file.
func reachable(path string) bool {
	for {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&1 == 0 {
			return false
		}
		if path == "/" || path == "." {
			return true
		}
		path = filepath.Dir(path)
	}
}

// HasUser reports whether the user namespace of the calling process has a user.
func HasUser(id int) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseInt(f[0], 10, 64)
		count, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 == nil && err2 == nil && int64(id) >= first && int64(id) < first+count {
			return true
		}
	}
	return false
}
