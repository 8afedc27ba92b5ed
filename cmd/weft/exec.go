package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weft/internal/terminal"
	"weft/orchestrator/deploy"
)

func (a *app) execCommand() *cobra.Command {
	var name, clock string
	cmd := &cobra.Command{
		Use:   "exec NODE [-- CMD...]",
		Short: "run a program inside a node of a deployed lab",
		Long: `Run a program inside a node: ping, iperf3, tcpdump, or a shell if no program is named. It can resolve
the names of the other nodes, and has full control of the node's network.

With --clock lab the program and its children read lab time instead of the machine's: what they
measure is in the units of the lab. Sleeps and timeouts stay real.

Exit codes: the program's, or 128 plus the number of the signal that ended it; 125 if the node or the
lab ended, before or while the program ran, or if the node is paused; 1 if the program could not be
started.`,
		Example: `  weft exec h0 -- ping -c3 h15
  weft exec --clock lab h0 -- ping -c3 h15
  weft exec h0 -- iperf3 -c h15
  weft exec h0 -- tcpdump -ni eth0
  weft exec h0`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			program := args[1:]
			if len(program) > 0 && program[0] == "--" {
				program = program[1:]
			}
			if len(program) == 0 {
				program = []string{shell()}
			}
			e := deploy.Exec{Node: args[0], Args: program}
			switch clock {
			case "real":
			case "lab":
				e.LabTime = true
			default:
				return usagef("--clock %q: it is real or lab", clock)
			}
			return a.onDeployed(name, func(h *deploy.Handle) error { return a.exec(cmd.Context(), h, e) })
		},
	}
	cmd.Flags().SetInterspersed(false)
	deployedFlag(cmd, &name)
	cmd.Flags().StringVar(&clock, "clock", "real", "the program's clocks: real (the machine's) or lab (lab time)")
	return cmd
}

// shell returns the program to run in a node if none is named.
func shell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}

// exec runs a program in a node, and returns its exit code as an error.
func (a *app) exec(ctx context.Context, h *deploy.Handle, e deploy.Exec) error {
	var exit deploy.Exit
	var err error
	if terminal.Is(os.Stdin) && terminal.Is(os.Stdout) {
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

// onTerminal runs a program on a pseudo-terminal and connects it with this process's terminal. All
// keys go to the program, Ctrl-C included.
func onTerminal(ctx context.Context, h *deploy.Handle, e deploy.Exec) (deploy.Exit, error) {
	ours, theirs, err := terminal.Open()
	if err != nil {
		return deploy.Exit{}, err
	}
	defer ours.Close()
	defer theirs.Close()
	e.TTY = true
	if term := os.Getenv("TERM"); term != "" {
		e.Env = append(e.Env, "TERM="+term)
	}
	terminal.CopySize(ours, os.Stdin)
	restore, err := terminal.Raw(os.Stdin)
	if err != nil {
		return deploy.Exit{}, err
	}
	defer restore()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	go func() {
		for range resized {
			terminal.CopySize(ours, os.Stdin)
		}
	}()
	go io.Copy(ours, os.Stdin) // until the process ends: reading a terminal has no deadline
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		io.Copy(os.Stdout, ours) // until the last program on the terminal ends
	}()
	exit, err := h.Exec(ctx, e, theirs)
	theirs.Close()
	<-shown
	return exit, err
}
