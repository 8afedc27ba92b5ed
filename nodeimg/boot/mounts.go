package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A tree is the file system of a process of the lab: the machine's programs and their libraries,
// read-only, with its own /proc, /sys, /dev, /tmp and /run, and nothing else of the machine. A
// read-only mount of everything would let a program read keys and connect to the socket of a
// container engine.
type tree struct {
	hosts  []HostName // names for /etc/hosts; none: the machine's file stays
	hidden []string   // directories that appear empty, if at all
	user   int        // of programs: a line of /etc/passwd; 0: none
	lacks  []string   // Report.Lacks
}

func (t *tree) lack(format string, args ...any) {
	t.lacks = append(t.lacks, fmt.Sprintf(format, args...))
}

// devices are the devices of /dev that programs expect. All others, such as the host's disks, are
// out of reach.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// isolate separates the mounts from the host's, and gives the process the /proc of its own PID
// namespace, writable until seal.
func (t *tree) isolate() error {
	if err := cutOff(); err != nil {
		return err
	}
	// A user namespace may not mount these if the host hides part of its own (mount_too_revealing).
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		t.lack("mount /proc: %v: the node sees the host's processes", err)
	}
	return t.sysfs()
}

// cutOff stops mounts made here from propagating. Unmounts of the machine still propagate to here.
func cutOff() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("cut mounts off: %w", err)
	}
	return nil
}

// ownMounts moves the calling thread to its own mount namespace, cut off.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("new mount namespace: %w", err)
	}
	return cutOff()
}

// sysfs mounts the /sys of the thread's network namespace.
func (t *tree) sysfs() error {
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		if err := tmpfs("/sys", "mode=755,size=4k"); err != nil {
			return err
		}
		t.lack("mount /sys: %v: it is empty in the node", err)
	}
	return nil
}

// View gives the calling thread the file system of programs in a node: the host's, read-only and
// without its devices. The thread must be locked, share no file system with others (CLONE_FS), and
// be in the node's network namespace. proc is a detached mount of the node's /proc.
func View(spec *NodeSpec, proc int) error {
	if err := ownMounts(); err != nil {
		return err
	}
	if err := unix.MoveMount(proc, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	t := tree{hosts: spec.Hosts, hidden: spec.Hidden, user: spec.User}
	if err := t.sysfs(); err != nil {
		return err
	}
	return t.seal()
}

// seal installs the final tree, read-only but for /tmp, /run and /dev/shm, which are new, empty and
// in memory.
func (t *tree) seal() error {
	if err := makeDev(); err != nil {
		return err
	}
	if err := t.plant(); err != nil {
		return err
	}
	for _, dir := range t.hidden {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := tmpfs(dir, "mode=755,size=4k"); err != nil {
			return err
		}
	}
	if err := readOnly("/"); err != nil {
		return err
	}
	for _, dir := range []string{"/tmp", "/run", "/dev/shm"} {
		if err := tmpfs(dir, "mode=1777,size=64m,nr_inodes=16k"); err != nil {
			return err
		}
	}
	return nil
}

// makeDev replaces /dev. It prepares the new one at /tmp and then moves it over the old.
func makeDev() error {
	const stage = "/tmp"
	if err := tmpfs(stage, "mode=755,size=64k"); err != nil {
		return err
	}
	for _, name := range devices {
		if _, err := os.Stat("/dev/" + name); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := create(stage+"/"+name, nil, 0o600); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+name, stage+"/"+name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind /dev/%s: %w", name, err)
		}
	}
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+to, stage+"/"+name); err != nil {
			return err
		}
	}
	if err := os.Mkdir(stage+"/shm", 0o755); err != nil {
		return err
	}
	if err := unix.Mount(stage, "/dev", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the new /dev into place: %w", err)
	}
	return nil
}

// create makes a file of a tree, or writes it again. No program is started while the file is open:
// the child would have it open, too, until it runs its program, and a mount with a file that can be
// written does not become read-only (EBUSY).
func create(name string, text []byte, mode fs.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(name, text, mode)
}

func tmpfs(dir, options string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	return nil
}

// readOnly makes every mount at and below dir read-only, and disables its set-user-ID bits.
func readOnly(dir string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID,
	})
	// before Linux 5.12, or denied by a system call filter
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return remountEach()
	}
	if err != nil {
		return fmt.Errorf("make %s read-only: %w", dir, err)
	}
	return nil
}

// remountEach does the same as readOnly, one mount after the other.
func remountEach() error {
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(table)) {
		point, flags, ok := mountPoint(line)
		if !ok {
			return fmt.Errorf("mountinfo: cannot read %q", line)
		}
		err := unix.Mount("", point, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|flags, "")
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EACCES) {
			continue // covered by a later mount: no path leads to it
		}
		if err != nil {
			return fmt.Errorf("make %s read-only: %w", point, err)
		}
	}
	return nil
}

// mountPoint parses a line of mountinfo (proc(5)). It returns the mount point and the flags that a
// remount must repeat, since a user namespace may not clear them.
func mountPoint(line string) (point string, flags uintptr, ok bool) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return "", 0, false
	}
	known := map[string]uintptr{"nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC, "noatime": unix.MS_NOATIME,
		"nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME}
	for option := range strings.SplitSeq(f[5], ",") {
		flags |= known[option]
	}
	return Unescape(f[4]), flags, true
}

// Unescape reverses the kernel's escapes for spaces, tabs, newlines and backslashes in mountinfo.
func Unescape(path string) string { return unescape.Replace(path) }

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
