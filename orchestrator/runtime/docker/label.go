package docker

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The labels of everything that this package makes. An object that lacks one of them was not made by it.
const (
	labelLab   = "weft.lab"   // the lab's name
	labelRun   = "weft.run"   // which launch of it, 16 hexadecimal digits
	labelNode  = "weft.node"  // the node's name, or the fabric's
	labelOwner = "weft.owner" // the process that launched it: see owner
)

// labelImage is the label of images: the SHA-256 of the program inside, in hexadecimal digits.
const labelImage = "weft.program"

// owner is a process of this machine that no later one is mistaken for.
type owner struct {
	uid, pid int
	start    uint64 // when the process began, in clock ticks since the boot: proc_pid_stat(5)
	space    uint64 // the PID namespace in which pid is its number: the inode of /proc/PID/ns/pid, namespaces(7)
	boot     string // which boot of the machine
}

// self is the owner that this process is.
func self() (owner, error) {
	o := owner{uid: os.Geteuid(), pid: os.Getpid()}
	var err error
	if o.start, err = startOf("self"); err != nil {
		return owner{}, err
	}
	if o.space, err = pidSpace(); err != nil {
		return owner{}, err
	}
	o.boot, err = bootID()
	return o, err
}

func (o owner) String() string {
	return fmt.Sprintf("%d.%d.%d.%d.%s", o.uid, o.pid, o.start, o.space, o.boot)
}

// parseOwner is the inverse of String.
func parseOwner(text string) (o owner, ok bool) {
	f := strings.Split(text, ".")
	if len(f) != 5 || f[4] == "" {
		return owner{}, false
	}
	var errs [4]error
	o.uid, errs[0] = strconv.Atoi(f[0])
	o.pid, errs[1] = strconv.Atoi(f[1])
	o.start, errs[2] = strconv.ParseUint(f[2], 10, 64)
	o.space, errs[3] = strconv.ParseUint(f[3], 10, 64)
	o.boot = f[4]
	for _, err := range errs {
		if err != nil {
			return owner{}, false
		}
	}
	return o, o.uid >= 0 && o.pid > 0 && o.String() == text
}

// alive says whether the process still runs. What cannot be read does not count as dead, and nor does a process of another
// PID namespace, in which this one cannot look.
func (o owner) alive() bool {
	boot, err := bootID()
	if err != nil {
		return true
	}
	if boot != o.boot {
		return false
	}
	if space, err := pidSpace(); err != nil || space != o.space {
		return true
	}
	if seen, err := os.Readlink("/proc/self"); err != nil || seen != strconv.Itoa(os.Getpid()) {
		return true // /proc is that of another namespace
	}
	start, err := startOf(strconv.Itoa(o.pid))
	if os.IsNotExist(err) {
		return false
	}
	return err != nil || start == o.start
}

func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// pidSpace identifies the PID namespace of this process.
func pidSpace() (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &s); err != nil {
		return 0, fmt.Errorf("PID namespace: %w", err)
	}
	return s.Ino, nil
}

// startOf reads field 22 of /proc/PID/stat: proc_pid_stat(5). The second field, the name, may hold anything.
func startOf(pid string) (uint64, error) {
	file := "/proc/" + pid + "/stat"
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 20 {
		return 0, fmt.Errorf("%s: cannot read %q", file, text)
	}
	if f[0] == "Z" || f[0] == "X" { // it has ended, and nobody has asked how
		return 0, os.ErrNotExist
	}
	return strconv.ParseUint(f[19], 10, 64)
}

// ours says whether labels are those of a container that this package made, and returns its owner.
func ours(labels map[string]string) (owner, bool) {
	o, ok := parseOwner(labels[labelOwner])
	return o, ok && labels[labelLab] != "" && isRun(labels[labelRun]) && labels[labelNode] != ""
}

// isRun says whether text is the value of labelRun.
func isRun(text string) bool {
	return len(text) == 16 && strings.Trim(text, "0123456789abcdef") == ""
}
