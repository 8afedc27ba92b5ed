package namespace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/privilege"
	"weft/internal/terminal"
	labs "weft/orchestrator/runtime"
)

// ErrNeedsUserNS is returned by Launch if privilege.NeedsUserNS is true.
var ErrNeedsUserNS = errors.New("this process may not create namespaces, and has not entered a user namespace where " +
	"it may")

// Interrupted is weft's exit code after a signal that asks it to end.
const Interrupted = 130

// Enter runs this program again with other arguments as root of a new user namespace, and returns
// its exit code. Standard output and error, the working directory and all files are the same, and
// the files it creates belong to this user. It dies when this process does. Enter passes on signals
// that ask a program to end, and standard input unless it is a terminal; the terminal's signals
// only reach this process. A signal that came before Enter is one that ended ctx.
//
// SIGINT, SIGTERM and SIGHUP kill a child that does not handle signals yet. It has done nothing by
// then, so that this is an orderly end, and the exit code is Interrupted. Any other signal that
// kills it makes that 128 plus the signal's number.
//
// Only the user namespace and a mount namespace that belongs to it are new: Launch creates the
// others for each process of a lab.
func Enter(ctx context.Context, args []string) (code int, err error) {
	if os.Getenv(privilege.EnteredVar) != "" {
		return 0, privilege.ErrNone
	}
	runtime.LockOSThread() // the parent-death signal is this thread's
	defer runtime.UnlockOSThread()
	attr := privilege.UserNS()
	attr.Pdeathsig = syscall.SIGKILL
	attr.Setpgid = true
	cmd := exec.Cmd{
		Path:        labs.ThisProgram,
		Args:        append([]string{os.Args[0]}, args...),
		Env:         append(os.Environ(), privilege.EnteredVar+"=1"),
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
	if ctx.Err() != nil && len(signals) == 0 {
		signals <- unix.SIGINT
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
	w, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !w.Signaled() {
		return exit.ExitCode(), nil
	}
	switch w.Signal() {
	case unix.SIGINT, unix.SIGTERM, unix.SIGHUP:
		return Interrupted, nil
	}
	return 128 + int(w.Signal()), nil
}
