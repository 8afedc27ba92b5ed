package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weft/internal/clip"
	"weft/internal/terminal"
	"weft/nodeimg/boot"
	"weft/orchestrator/deploy"
	"weft/orchestrator/launcher"
	"weft/orchestrator/together"
)

// execFlags are the flags of weft exec.
type execFlags struct {
	lab, clock, launch string
	env                []string
	timeout            time.Duration
}

func (a *app) execCommand() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec NODE[,NODE...] [-- CMD...]",
		Short: "run a program in one or more nodes of a deployed lab",
		Long: `Run a program inside a node: ping, iperf3, tcpdump, or a shell if no program is named. It can resolve
the names of the other nodes, and has full control of the node's network.

With --clock lab the program and its children read lab time instead of the machine's: what they
measure is in the units of the lab. Sleeps and timeouts stay real (docs/applications.md).

A program sees /usr, its own /tmp, where it starts, and the folder that it lies in. So run your own
script as ./script.py, not as python3 script.py (docs/security.md).

On several nodes (h0,h1,h2, or all: every host) a program starts on each at the same time. Each line
of output begins with its node. When one program fails, the others are ended. --launch torchrun sets
the environment variables of torchrun, by which programs know their rank and find each other.

Exit codes: the program's, or 128 plus the number of the signal that ended it; of several, that of
the first to fail. 124 if --timeout ended it; 125 if the node, the lab, its network or the keeper of
lab time ended, before or while the program ran, or if the node is paused; 1 if it could not be
started. A warning says that the network stood or ran late for more than 5 % of the time. The kernel
datapath does not know how late it is: weft only looks at its links before and after the program.`,
		Example: `  weft exec h0 -- ping -c3 h15
  weft exec --clock lab h0 -- ping -c3 -l3 h15
  weft exec --clock lab --launch torchrun h0,h1,h2,h3 -- labs/apps/allreduce.py
  weft exec h0 -- ./mine.py h15
  weft exec --clock lab h1 -- iperf3 -s -1 -D
  weft exec --clock lab h0 -- iperf3 -c h1 -n 100M
  weft exec h0 -- tcpdump -ni eth0
  weft exec h0`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runExec(cmd.Context(), &f, args) },
	}
	cmd.Flags().SetInterspersed(false)
	deployedFlag(cmd, &f.lab)
	cmd.Flags().StringVar(&f.clock, "clock", "real", "the program's clocks: real (the machine's) or lab (lab time)")
	cmd.Flags().StringArrayVarP(&f.env, "env", "e", nil, "environment variable `NAME=VALUE` of the program "+
		"(repeatable)")
	cmd.Flags().StringVar(&f.launch, "launch", launcher.Default(),
		"how programs on several nodes learn of each other: "+strings.Join(launcher.Names(), ", "))
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "end the program after this real time, such as 60s; 0: never")
	return cmd
}

// runExec checks the command line and runs the program.
func (a *app) runExec(ctx context.Context, f *execFlags, args []string) error {
	program := args[1:]
	if len(program) > 0 && program[0] == "--" {
		program = program[1:]
	}
	j := together.Job{Hosts: strings.Split(args[0], ","), Args: program, Env: f.env, Launch: launcher.Of(f.launch),
		Timeout: f.timeout}
	alone := len(j.Hosts) == 1 && args[0] != everyHost && f.launch == launcher.Default() && f.timeout == 0
	switch {
	case f.clock != "real" && f.clock != "lab":
		return usagef("--clock %q: it is real or lab", f.clock)
	case j.Launch == nil:
		return usagef("--launch %q: it is one of %s", f.launch, strings.Join(launcher.Names(), ", "))
	case f.timeout < 0:
		return usagef("--timeout %v: it is a time from now on, such as 60s", f.timeout)
	case len(program) == 0 && !alone:
		return usagef("a shell runs on one node; name the program to run on several: weft exec %s -- CMD", args[0])
	}
	for _, e := range f.env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return usagef("--env %q: it is NAME=VALUE", e)
		}
	}
	for i, node := range j.Hosts {
		if node == "" || slices.Contains(j.Hosts[:i], node) {
			return usagef("%q names no node, or one twice: it is h0,h1,h2, or all", args[0])
		}
	}
	if len(program) == 0 {
		j.Args = []string{defaultShell()}
	} else {
		path, err := programPath(program[0])
		if err != nil {
			return err
		}
		j.Args = append([]string{path}, program[1:]...)
	}
	err := a.onDeployed(f.lab, func(h *deploy.Handle) error {
		if alone {
			return a.exec(ctx, h, deploy.Exec{Node: args[0], Args: j.Args, Env: j.Env, LabTime: f.clock == "lab"})
		}
		return a.execAll(ctx, h, &j, f.clock == "lab")
	})
	if code := exitCode(0); errors.As(err, &code) && code != exitInterrupted {
		if a.explainLauncher("weft exec", j.Args[0]) {
			return err
		}
		a.explainUnseen(j.Args, func(file string) string {
			if !filepath.IsAbs(file) {
				file = "./" + filepath.Clean(file)
			}
			return fmt.Sprintf("if it is a script, run it as the program, in the same way: ... -- %s, "+
				"with #!/usr/bin/env python3 or the like in its first line", file)
		})
	}
	return err
}

// explainUnseen tells after a program failed that one of its arguments names a file of this machine
// that a node does not have under that name. remedy says what to do about one in a folder that
// nodes do not see.
func (a *app) explainUnseen(args []string, remedy func(file string) string) {
	for _, arg := range args[min(1, len(args)):] {
		path, err := filepath.Abs(arg)
		if info, statErr := os.Stat(path); err != nil || statErr != nil || !info.Mode().IsRegular() {
			continue
		}
		beside, err := filepath.Rel(filepath.Dir(args[0]), path)
		seen := boot.Common(path) || filepath.IsAbs(args[0]) && err == nil && filepath.IsLocal(beside)
		switch {
		case seen && filepath.IsAbs(arg):
			continue
		case seen:
			fmt.Fprintf(a.stderr, "weft: programs start in /tmp of their node, where %s is not; name it %s\n",
				clip.Line(arg), clip.Line(path))
		default:
			fmt.Fprintf(a.stderr, "weft: programs see /usr and the folder that they lie in, so not %s; %s\n",
				clip.Line(arg), clip.Line(remedy(arg)))
		}
		return
	}
}

// everyHost stands for all hosts of a lab.
const everyHost = "all"

// exitTimeout is the exit code of a program that --timeout ended, as that of timeout(1).
const exitTimeout = 124

// execAll runs a program on several nodes and says how those ended that failed.
func (a *app) execAll(ctx context.Context, h *deploy.Handle, j *together.Job, labTime bool) error {
	if slices.Equal(j.Hosts, []string{everyHost}) {
		hosts, err := h.Hosts()
		if err != nil {
			return err
		}
		j.Hosts = hosts
	}
	j.Line = func(rank int, errors bool, line []byte) {
		to := a.stdout
		if errors {
			to = a.stderr
		}
		fmt.Fprintf(to, "%s: %s\n", j.Hosts[rank], line) // nobody may read it any more
	}
	endings, first := h.ExecAll(ctx, j, labTime)
	i := slices.IndexFunc(endings, func(e together.Ending) bool { return e.Exit.Stood != "" })
	if i >= 0 {
		a.warnStood(endings[i].Exit.Stood)
	}
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	if first < 0 {
		return nil
	}
	for _, e := range endings {
		if e.Failed() {
			fmt.Fprintf(a.stderr, "weft: %s: %s\n", e.Host, e.How())
		}
	}
	if hint := j.Hint(endings); hint != "" {
		fmt.Fprintf(a.stderr, "weft: %s\n", hint)
	}
	switch e := endings[first]; {
	case e.Err != nil:
		return exitCode(exitFailed)
	case e.Cut != "":
		return exitCode(exitTimeout)
	default:
		return exitCode(e.Exit.Code)
	}
}

// warnStood warns of a network that stood or ran late while a program ran; "": it did not.
func (a *app) warnStood(why string) {
	if why != "" {
		fmt.Fprintf(a.stderr, "weft: warning: %s\n", why)
	}
}

// defaultShell returns the program to run in a node if none is named.
func defaultShell() string {
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
	a.warnStood(exit.Stood)
	switch {
	case ctx.Err() != nil:
		return exitCode(exitInterrupted) // the program was told to end; the lab stays
	case err != nil:
		return err
	case exit.Ended != "":
		fmt.Fprintf(a.stderr, "weft: lab %s: %s\n", h.Name(), exit.Ended)
		return exitCode(exit.Code)
	case exit.Code != 0:
		if strings.HasPrefix(exit.Text, "signal: ") || strings.HasSuffix(exit.Text, ")") { // as a shell would
			fmt.Fprintf(a.stderr, "weft: %s: %s\n", e.Node, exit.Text)
		}
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
