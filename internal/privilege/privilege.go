// Package privilege finds out what this process may do on this machine: whether it may create the
// namespaces of a lab, or could after it has entered a user namespace.
package privilege

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// EnteredVar is set in the environment of a program that runs as root of a user namespace.
const EnteredVar = "WEFT_USERNS"

// Namespaces are the kinds that every process of a lab has of its own.
const Namespaces = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS |
	syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// NeedsUserNS reports whether this process may not create namespaces and must enter a user
// namespace first: see UserNS.
func NeedsUserNS() bool {
	return !Has(unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_CHROOT)
}

// Has reports whether this process has all of these capabilities.
func Has(capabilities ...uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return os.Geteuid() == 0
	}
	for _, c := range capabilities {
		if have[c/32].Effective&(1<<(c%32)) == 0 {
			return false
		}
	}
	return true
}

// CheckNamespaces checks whether this process can create Namespaces, after it has entered a user
// namespace if it needs one. The error says why not.
func CheckNamespaces() error {
	attr := &syscall.SysProcAttr{Cloneflags: Namespaces}
	if NeedsUserNS() {
		if os.Getenv(EnteredVar) != "" {
			return ErrNone
		}
		attr = UserNS()
		attr.Unshareflags = Namespaces // done by the child, with the user namespace's capabilities
	}
	// The child gets as far as its exec, which fails since the program does not exist.
	_, err := os.StartProcess("/proc/self/absent", []string{"weft"}, &os.ProcAttr{Sys: attr})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err == nil:
		return errors.New("a program that does not exist was started")
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("namespaces are used up, or forbidden by /proc/sys/user/max_*_namespaces: %w",
			errors.Unwrap(err))
	case NeedsUserNS():
		return fmt.Errorf("user namespaces: %w (run as root, or see kernel.unprivileged_userns_clone and "+
			"kernel.apparmor_restrict_unprivileged_userns)", errors.Unwrap(err))
	}
	return fmt.Errorf("namespaces: %w", errors.Unwrap(err))
}

// ErrNone is returned in a user namespace whose root has no privileges.
var ErrNone = errors.New("the user namespace grants no privileges; is " +
	"kernel.apparmor_restrict_unprivileged_userns set?")

// UserNS returns the attributes of a user namespace in which this user is root and no other user
// exists.
func UserNS() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		// A mount namespace that follows the machine's mounts lets nodes see files of programs.
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		GidMappingsEnableSetgroups: false,
	}
}

// SeesPeer reports whether this process sees the one that listens at the other end of conn. It does
// not if that is in a PID namespace beside or above its own.
func SeesPeer(conn *net.UnixConn) (bool, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false, err
	}
	var peer *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil || err != nil {
		return false, errors.Join(cerr, err)
	}
	return peer.Pid != 0, nil
}

// InitialUserNS reports whether this process is in the machine's first user namespace. If it is
// not, outside is the user who is root in its namespace.
func InitialUserNS() (initial bool, outside string) {
	text, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(text))
	// The first one maps every user to itself: user_namespaces(7).
	if err != nil || len(f) != 3 || f[0] == "0" && f[1] == "0" && f[2] == "4294967295" {
		return true, ""
	}
	return false, f[1]
}
