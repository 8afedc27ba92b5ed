package runtime

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Owner identifies a process of this machine uniquely, even after its PID was reused.
type Owner struct {
	UID, PID int
	Start    uint64 // start time in clock ticks since the boot: proc_pid_stat(5)
	Space    uint64 // PID namespace of PID: the inode of /proc/PID/ns/pid, namespaces(7)
	Boot     string // ID of the machine's boot
}

// Self returns this process as an owner.
func Self() (Owner, error) { return ownerAt("self", os.Getpid()) }

// OwnerOf returns a process of this user and this PID namespace as an owner.
func OwnerOf(pid int) (Owner, error) { return ownerAt(strconv.Itoa(pid), pid) }

// ownerAt returns the owner for a process, by its name in /proc and its PID.
func ownerAt(proc string, pid int) (Owner, error) {
	o := Owner{UID: os.Geteuid(), PID: pid}
	var err error
	if o.Start, err = startTime(proc); err != nil {
		return Owner{}, err
	}
	if o.Space, err = pidNamespace(); err != nil {
		return Owner{}, err
	}
	o.Boot, err = BootID()
	return o, err
}

func (o Owner) String() string {
	return fmt.Sprintf("%d.%d.%d.%d.%s", o.UID, o.PID, o.Start, o.Space, o.Boot)
}

// Is reports whether both are the same process. It ignores users, whose numbers differ between user
// namespaces.
func (o Owner) Is(p Owner) bool {
	o.UID = p.UID
	return o == p
}

// ParseOwner is the inverse of String.
func ParseOwner(text string) (o Owner, ok bool) {
	f := strings.Split(text, ".")
	if len(f) != 5 || f[4] == "" {
		return Owner{}, false
	}
	var errs [4]error
	o.UID, errs[0] = strconv.Atoi(f[0])
	o.PID, errs[1] = strconv.Atoi(f[1])
	o.Start, errs[2] = strconv.ParseUint(f[2], 10, 64)
	o.Space, errs[3] = strconv.ParseUint(f[3], 10, 64)
	o.Boot = f[4]
	for _, err := range errs {
		if err != nil {
			return Owner{}, false
		}
	}
	return o, o.UID >= 0 && o.PID > 0 && o.String() == text
}

// Dead reports whether the process has ended. It returns false if that cannot be read, or if the
// process is in another PID namespace.
func (o Owner) Dead() bool {
	boot, err := BootID()
	if err != nil {
		return false
	}
	if boot != o.Boot {
		return true
	}
	if space, err := pidNamespace(); err != nil || space != o.Space {
		return false
	}
	if seen, err := os.Readlink("/proc/self"); err != nil || seen != strconv.Itoa(os.Getpid()) {
		return false // /proc belongs to another namespace
	}
	start, err := startTime(strconv.Itoa(o.PID))
	if os.IsNotExist(err) {
		return true
	}
	return err == nil && start != o.Start
}

// Gone reports whether the process ran on this machine since it was booted, and has ended.
func (o Owner) Gone() bool {
	boot, err := BootID()
	return err == nil && boot == o.Boot && o.Dead()
}

// BootID returns the number of this boot of the machine, which no other machine has.
func BootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// pidNamespace returns the inode of this process's PID namespace.
func pidNamespace() (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &s); err != nil {
		return 0, fmt.Errorf("PID namespace: %w", err)
	}
	return s.Ino, nil
}

// startTime reads field 22 of /proc/PID/stat, proc_pid_stat(5). Field 2, the name, may contain any
// byte.
func startTime(pid string) (uint64, error) {
	file := "/proc/" + pid + "/stat"
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 20 {
		return 0, fmt.Errorf("%s: cannot read %q", file, text)
	}
	if f[0] == "Z" || f[0] == "X" { // it has ended but was not waited for
		return 0, os.ErrNotExist
	}
	return strconv.ParseUint(f[19], 10, 64)
}

// OwnerIn returns the owner named by a variable in a process's environment. Only the process's user
// may read that.
func OwnerIn(pid int, variable string) (Owner, bool) {
	text, ok := Variable(pid, variable)
	if !ok {
		return Owner{}, false
	}
	return ParseOwner(text)
}
