package boot

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/internal/poller"
)

// unprivileged is the user and group to which a process drops: nobody on every distribution, and
// the kernel's own overflow ID. It owns nothing.
const unprivileged = 65534

// A dropper takes privileges from the calling thread, which is about to exec. It keeps the given
// capabilities, if the process has them.
type dropper struct {
	keep []uintptr
	// by a container engine, which gave the process no privileges in the first place
	contained bool
	notes     []string
}

func (d *dropper) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// drop must run on a locked thread. The order matters: each step needs privileges that a later one
// drops.
func (d *dropper) drop() error {
	if err := limits(); err != nil {
		return err
	}
	if err := ownKeys(); err != nil {
		return err
	}
	// in nanoseconds; survives exec and is inherited
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		d.note("timer slack: %v: timers fire up to 50 us late", err)
	}
	if err := d.boundingSet(); err != nil {
		return err
	}
	if err := d.user(); err != nil {
		return err
	}
	if err := d.capabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	return filterCalls()
}

// limits bounds the resources of the process.
func limits() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("no core dumps: %w", err)
	}
	return poller.LimitRealTime() // it may get real-time scheduling
}

// boundingSet makes every other capability unreachable, even for a program run as root.
func (d *dropper) boundingSet() error {
	for c := uintptr(0); ; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // beyond the last one of this kernel
		}
		if err != nil {
			return fmt.Errorf("bounding set: %w", err)
		}
		if has == 0 || d.keeps(c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
}

func (d *dropper) keeps(c uintptr) bool {
	for _, k := range d.keep {
		if k == c {
			return true
		}
	}
	return false
}

// user changes to user nobody. As root the process would still own the host's files, even without
// capabilities. A user namespace with a single user has no other: it is the person who started the
// lab.
func (d *dropper) user() error {
	exe, err := os.Stat("/proc/self/exe")
	if err != nil {
		return err
	}
	if exe.Mode()&1 == 0 {
		d.note("the program file may be run by its owner only (mode %#o): nodes stay user %d", exe.Mode().Perm(),
			os.Geteuid())
		return nil
	}
	if err := d.change(unprivileged); err != nil {
		return err
	}
	if d.contained {
		return nil
	}
	// A change of user resets the signal on the parent's death.
	return dieWithParent()
}

// change gives the calling thread another user, in that user's group only, and keeps its
// capabilities. It leaves the user if there is no other.
func (d *dropper) change(id int) error {
	if err := d.become(id, id, nil); err != nil {
		return d.stays(err)
	}
	return nil
}

// become gives the calling thread another user and groups, and keeps its capabilities.
func (d *dropper) become(user, group int, others []int) error {
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	groups := make([]uint32, len(others), len(others)+1) // room for an address
	for i, g := range others {
		groups[i] = uint32(g)
	}
	// The wrappers would change every thread, some through the C library; only this one survives.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)),
		uintptr(unsafe.Pointer(unsafe.SliceData(groups))), 0); errno != 0 && (errno != unix.EPERM || len(groups) > 0) {
		return fmt.Errorf("change groups: %w", errno)
	}
	to := uintptr(group)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, to, to, to); errno != 0 {
		return errno
	}
	to = uintptr(user)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, to, to, to); errno != 0 {
		return errno
	}
	return nil
}

// stays handles a user that cannot be changed: EINVAL if the user namespace has no other, EPERM if
// the machine denies it.
func (d *dropper) stays(err error) error {
	switch err {
	case unix.EINVAL:
		return nil
	case unix.EPERM:
		d.note("change user: %v: nodes run as user %d, without capabilities", err, os.Geteuid())
		return nil
	}
	return fmt.Errorf("change user: %w", err)
}

// capabilities drops all capabilities but the kept ones, across exec.
func (d *dropper) capabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, want [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	for _, c := range d.keep {
		if bit := uint32(1) << (c % 32); have[c/32].Permitted&bit != 0 {
			want[c/32].Permitted |= bit
			want[c/32].Effective |= bit
			want[c/32].Inheritable |= bit
		}
	}
	if err := unix.Capset(&header, &want[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	for _, c := range d.keep {
		if want[c/32].Permitted&(1<<(c%32)) == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0); err != nil {
			return fmt.Errorf("keep capability %d: %w", c, err)
		}
	}
	return nil
}

// dieWithParent makes the kernel end this process when the thread that started it ends.
func dieWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("parent death signal: %w", err)
	}
	return nil
}

// become replaces the program by itself. It keeps only the standard descriptors and those in keep.
func become(env []string, keep []int) error {
	runtime.LockOSThread()
	if err := control.KeepDescriptors(); err != nil {
		return err
	}
	for _, fd := range keep {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep descriptor %d: %w", fd, err)
		}
	}
	// /proc finds the program even if its file was renamed, replaced, deleted or covered.
	if err := unix.Exec("/proc/self/exe", os.Args, env); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return nil
}
