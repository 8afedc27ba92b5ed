package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weft/orchestrator/deploy"
)

func (a *app) execCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "exec NODE [-- CMD...]",
		Short: "run a program inside a node of a deployed lab",
		Long: "Run a program inside a node: ping, iperf3, tcpdump, a shell. It finds the other nodes by their names, and may use the\n" +
			"node's network as it likes. Without a program it is a shell.\n\n" +
			"Exit codes: the program's, or 128 and the number of the signal that ended it; 125 when the node or the lab has ended,\n" +
			"before or while the program ran, or the node is paused; 1 when the program could not be started.",
		Example: "  weft exec h0 -- ping -c3 h15\n  weft exec h0 -- iperf3 -c h15\n  weft exec h0 -- tcpdump -ni eth0\n  weft exec h0",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			program := args[1:]
			if len(program) > 0 && program[0] == "--" {
				program = program[1:]
			}
			if len(program) == 0 {
				program = []string{shell()}
			}
			return a.onDeployed(name, func(h *deploy.Handle) error { return a.exec(cmd.Context(), h, args[0], program) })
		},
	}
	cmd.Flags().SetInterspersed(false)
	deployedFlag(cmd, &name)
	return cmd
}

// shell is what runs in a node when nothing was named.
func shell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}

// exec runs a program in a node, and returns its exit code as an error.
func (a *app) exec(ctx context.Context, h *deploy.Handle, node string, program []string) error {
	e := deploy.Exec{Node: node, Args: program}
	var exit deploy.Exit
	var err error
	if isTerminal(os.Stdin) && isTerminal(os.Stdout) {
		exit, err = onTerminal(ctx, h, e)
	} else {
		exit, err = h.Exec(ctx, e, os.Stdin, os.Stdout, os.Stderr)
	}
	switch {
	case ctx.Err() != nil:
		return exitCode(exitInterrupted) // the program was told to end; the lab stays
	case err != nil:
		return err
	case exit.Ended != "":
		fmt.Fprintf(a.stderr, "weft: lab %s: %s\n", h.Name(), exit.Ended)
		return exitCode(exit.Code)
	case exit.Code != 0:
		return exitCode(exit.Code)
	}
	return nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// onTerminal runs a program on a terminal of its own, which this process's terminal stands in for: what is typed goes
// there as it is, Ctrl-C included.
func onTerminal(ctx context.Context, h *deploy.Handle, e deploy.Exec) (deploy.Exit, error) {
	ours, theirs, err := openTerminal()
	if err != nil {
		return deploy.Exit{}, err
	}
	defer ours.Close()
	defer theirs.Close()
	e.TTY = true
	if term := os.Getenv("TERM"); term != "" {
		e.Env = append(e.Env, "TERM="+term)
	}
	resize := func() {
		if size, err := unix.IoctlGetWinsize(int(os.Stdin.Fd()), unix.TIOCGWINSZ); err == nil {
			_ = unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, size)
		}
	}
	resize()
	restore, err := raw(os.Stdin)
	if err != nil {
		return deploy.Exit{}, err
	}
	defer restore()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	go func() {
		for range resized {
			resize()
		}
	}()
	go io.Copy(ours, os.Stdin) // ends with the process: a terminal cannot be read with a deadline
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		io.Copy(os.Stdout, ours) // to the end of the last program that has the terminal
	}()
	exit, err := h.Exec(ctx, e, theirs)
	theirs.Close()
	<-shown
	return exit, err
}

// openTerminal makes a pair of pseudo-terminals (pty(7)).
func openTerminal() (ours, theirs *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		unix.Close(fd)
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		unix.Close(fd)
		return nil, nil, fmt.Errorf("open a terminal: %w", errno)
	}
	return os.NewFile(uintptr(fd), "terminal"), os.NewFile(peer, "terminal"), nil
}

// raw has a terminal pass everything on as it is (cfmakeraw(3)), and returns what undoes that.
func raw(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	t := *before
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &t); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }, nil
}
