package namespace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/terminal"
	labs "weft/orchestrator/runtime"
)

// enteredVar is set in the environment of a program that Enter started.
const enteredVar = "WEFT_USERNS"

// namespaces are the kinds that every process of a lab has of its own.
const namespaces = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS |
	syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// ErrNeedsUserNS is returned by Launch if NeedsUserNS is true.
var ErrNeedsUserNS = errors.New("this process may not create namespaces, and has not entered a user namespace where " +
	"it may")

// NeedsUserNS reports whether this process may not create namespaces and must Enter a user
// namespace before it can Launch.
func NeedsUserNS() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return os.Geteuid() != 0
	}
	for _, c := range []uint{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_CHROOT} {
		if have[c/32].Effective&(1<<(c%32)) == 0 {
			return true
		}
	}
	return false
}

// Available checks whether this process can Launch, after Enter if it needs to. The error says why
// not.
func Available() error {
	attr := &syscall.SysProcAttr{Cloneflags: namespaces}
	if NeedsUserNS() {
		if os.Getenv(enteredVar) != "" {
			return errNoPrivileges
		}
		attr = userAttr()
		attr.Unshareflags = namespaces // done by the child, with the user namespace's capabilities
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

var errNoPrivileges = errors.New("the user namespace grants no privileges; is " +
	"kernel.apparmor_restrict_unprivileged_userns set?")

// userAttr returns the attributes of a user namespace in which this user is root and no other user
// exists.
func userAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		// A mount namespace that follows the machine's mounts lets nodes see files of programs.
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		GidMappingsEnableSetgroups: false,
	}
}

// Enter runs this program again with other arguments as root of a new user namespace, and returns
// its exit code: 128 plus the signal's number if a signal ended it. Standard output and error, the
// working directory and all files are the same, and the files it creates belong to this user. It
// dies when this process does. Enter passes on signals that ask a program to end, and standard
// input unless it is a terminal; the terminal's signals only reach this process.
//
// Only the user namespace and a mount namespace that belongs to it are new: Launch creates the
// others for each process of a lab.
func Enter(args []string) (code int, err error) {
	if os.Getenv(enteredVar) != "" {
		return 0, errNoPrivileges
	}
	runtime.LockOSThread() // the parent-death signal is this thread's
	defer runtime.UnlockOSThread()
	attr := userAttr()
	attr.Pdeathsig = syscall.SIGKILL
	attr.Setpgid = true
	cmd := exec.Cmd{
		Path:        labs.ThisProgram,
		Args:        append([]string{os.Args[0]}, args...),
		Env:         append(os.Environ(), enteredVar+"=1"),
		Stdout:      os.Stdout,
		Stderr:      os.Stderr,
		SysProcAttr: attr,
	}
	if !terminal.Is(os.Stdin) {
		cmd.Stdin = os.Stdin
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("enter user namespace: %w", err)
	}
	done := make(chan struct{})
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s) // an error means that it has exited
			case <-done:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	<-passed
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, fmt.Errorf("in user namespace: %w", err)
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), nil
	}
	return exit.ExitCode(), nil
}
