package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folders are the folders of the machine that a node sees: programs, and what the distribution puts
// beside them.
var folders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/proc", "/sys", "/dev",
}

// settings are the files of /etc that programs read. Keys, passwords and the settings of services
// are not among them.
var settings = []string{
	"alternatives", "bash.bashrc", "bash_completion.d", "ca-certificates", "default/locale", "ethertypes", "fonts",
	"gai.conf",
	"group", "host.conf", "hosts", "inputrc", "iproute2", "java-17-openjdk", "ld.so.cache", "ld.so.conf",
	"ld.so.conf.d",
	"ld-musl-x86_64.path", "libnl-3", "locale.alias", "locale.conf", "localtime", "magic", "mime.types", "mtab",
	"networks",
	"nsswitch.conf", "os-release", "passwd", "perl", "pki/tls/certs", "profile", "profile.d", "protocols", "python3",
	"rpc", "services", "shells", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "vim", "wireshark",
	"xattr.conf", "zsh",
}

// empty are empty folders that programs expect.
var empty = []string{"/tmp", "/run", "/etc", "/home", "/mnt", "/opt", "/root", "/srv", "/var/lib", "/var/log"}

// plant makes the tree at /tmp and then replaces the machine's by it.
func (t *tree) plant() error {
	const stage = "/tmp"
	// Programs of the node, which have another user, read these files whatever umask weft was
	// started with.
	defer unix.Umask(unix.Umask(0o022))
	if err := tmpfs(stage, "mode=755,size=16m,nr_inodes=16k"); err != nil {
		return err
	}
	for _, dir := range empty {
		if err := os.MkdirAll(stage+dir, 0o755); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"/var/tmp": "../tmp", "/var/run": "../run"} {
		if err := os.Symlink(to, stage+name); err != nil {
			return err
		}
	}
	for _, name := range folders {
		if err := graft(name, stage+name); err != nil {
			return err
		}
	}
	for _, name := range settings {
		if err := graft("/etc/"+name, stage+"/etc/"+name); err != nil {
			return err
		}
	}
	if err := t.names(stage + "/etc/"); err != nil {
		return err
	}
	return turn(stage)
}

// graft makes from visible at to, if it exists: a folder or file as a mount, a symbolic link as a
// link.
func graft(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		where, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(where, to)
	case info.IsDir():
		err = os.MkdirAll(to, 0o755)
	case info.Mode().IsRegular():
		err = create(to, nil, 0o644)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", from, err)
	}
	return nil
}

// names writes the lab's hosts to /etc/hosts, and the programs' user to /etc/passwd and /etc/group.
func (t *tree) names(etc string) error {
	hosts := []byte("127.0.0.1\tlocalhost\n")
	for _, h := range t.hosts {
		hosts = fmt.Appendf(hosts, "%v\t%s\n", h.Addr, h.Name)
	}
	if len(t.hosts) > 0 {
		if err := replace(etc+"hosts", hosts); err != nil {
			return err
		}
	}
	if t.user == 0 {
		return nil
	}
	for name, line := range map[string]string{
		"passwd": fmt.Sprintf("node:x:%d:%d:programs of the node:/tmp:/bin/sh\n", t.user, t.user),
		"group":  fmt.Sprintf("node:x:%d:\n", t.user),
	} {
		text, err := os.ReadFile(etc + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := replace(etc+name, append(text, line...)); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces a file, which may be a mount of the machine's, by a new one.
func replace(name string, text []byte) error {
	if err := unix.Unmount(name, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return create(name, text, 0o644)
}

// turn makes the mount at dir the root, and detaches the old one.
func turn(dir string) error {
	if err := unix.Chdir(dir); err != nil {
		return err
	}
	switch err := unix.PivotRoot(".", "."); {
	case err == nil:
		// The old root is now over the new one: pivot_root(2).
		if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("let go of the machine's files: %w", err)
		}
	// EINVAL: the machine runs from its first file system in memory, which cannot be left. EPERM: a
	// container engine's seccomp profile refuses the call, and the container has nothing else.
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPERM):
		if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("change the root: %w", err)
		}
		if err := unix.Chroot("."); err != nil {
			return fmt.Errorf("change the root: %w", err)
		}
	default:
		return fmt.Errorf("change the root: %w", err)
	}
	return unix.Chdir("/")
}
