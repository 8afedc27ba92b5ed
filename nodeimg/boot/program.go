package boot

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/units"
)

// A Program is what somebody runs inside a node, and what it may use. Like a process of the lab it starts in two
// images: the first, this program once more, gives everything away, and becomes the second, the program itself. Limits
// and groups of a process can be set only from within, so that nothing the program starts can be without them.
type Program struct {
	Path      string      `json:"path"`      // as it is in the node
	User      int         `json:"user"`      // that it runs as, where there is such a user: see ProgramUser
	Groups    int         `json:"groups"`    // how many control groups' cgroup.procs it inherits, to enter
	Processes uint64      `json:"processes"` // most processes and threads of User; 0: unlimited
	Memory    units.Bytes `json:"memory"`    // most data of one process; 0: unlimited
}

// programVar is the environment variable by which the first image of a program knows what it is.
const programVar = "WEFT_PROGRAM"

// firstUser is that of the numbers of users that systemd, container engines and distributions leave free:
// systemd.io/UIDS-GIDS has them used up to 0x6FFFFFFF.
const firstUser = 0x70000000

// ProgramUser is the user of the programs of the node whose first process has this number: one of their own, who owns nothing
// and whose processes are counted together.
func ProgramUser(pid int) int { return firstUser + pid }

// Command makes cmd, which is otherwise ready, start p. The files are those of its control groups.
func (p *Program) Command(cmd *exec.Cmd, groups []*os.File) error {
	p.Groups = len(groups)
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	cmd.Path = "/proc/self/exe" // found however the node's tree covers its file
	cmd.Env = append(cmd.Env, programVar+"="+string(text))
	cmd.ExtraFiles = groups
	return nil
}

// The first image is recognized here because only init runs before all else, on the first thread, in weft and tests alike.
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
	unix.Exit(126) // as a shell's, for a program that cannot be started; this process never was more
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
	if reachable(p.Path) { // else the file is for its owner alone
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
	heedSignals()
	if err := bound("memory", unix.RLIMIT_DATA, uint64(p.Memory)); err != nil { // last: this process may have more than the program may
		return err
	}
	return unix.Exec(p.Path, os.Args, os.Environ())
}

// heedSignals has every signal do what it does by default. A supervisor ignores Ctrl-C, and what is started by somebody who
// ignores a signal ignores it too: sigaction(2). Nothing of this process runs afterwards.
func heedSignals() {
	const last = 64
	var byDefault [4]uint64 // struct sigaction of the kernel: SIG_DFL, and no flags, restorer and mask
	for s := uintptr(1); s <= last; s++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0) // two cannot be changed
	}
}

// bound lowers a limit of this process, for good; most 0 is none.
func bound(name string, resource int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return fmt.Errorf("limit of %s: %w", name, err)
	}
	if most == 0 || now.Max <= most {
		return nil
	}
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: min(most, now.Cur), Max: most}); err != nil {
		return fmt.Errorf("limit of %s: %w", name, err)
	}
	return nil
}

// ownKeys leaves the session keyring of whoever started this process (keyrings(7)) for a new one.
func ownKeys() error {
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if err == unix.ENOSYS || err == unix.EPERM || err == unix.EACCES { // there are none, or a filter keeps them away
		return nil
	}
	if err != nil {
		return fmt.Errorf("new session keyring: %w", err)
	}
	return nil
}

// reachable says whether any user may run a file.
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

// HasUser says whether a user namespace, that of the calling process, has a user.
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
