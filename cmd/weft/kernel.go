package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/terminal"
	"weft/orchestrator/labfile"
	"weft/orchestrator/series"
	"weft/orchestrator/uml"
	"weft/results/store"
)

// kernelFlag adds --kernel, the kernel of emulation.
func kernelFlag(cmd *cobra.Command, kernel *string) {
	cmd.Flags().StringVar(kernel, "kernel", "host",
		"kernel of emulation: host (this machine's) or uml (User Mode Linux)")
}

// useKernel makes a command run under the kernel of --kernel. It returns nil if this process does.
// Otherwise it executes the whole command line there and returns the outcome as an exitCode. paths
// are the files and directories that the command writes; empty ones are skipped.
func (a *app) useKernel(ctx context.Context, kernel string, jobs []series.Job, paths ...string) error {
	switch kernel {
	case "", "host":
		return nil
	case "uml":
	default:
		return usagef("--kernel %q: expected host or uml", kernel)
	}
	switch {
	case slices.ContainsFunc(jobs, func(j series.Job) bool { return j.Lab.Engine.Runtime == "docker" }):
		return usagef("--kernel uml: User Mode Linux has no Docker Engine; use --runtime namespace")
	case !series.Emulates(jobs):
		return usagef("--kernel uml is for emulation; remove --kernel, or use --engine emu")
	case uml.Inside() != "":
		return nil
	}
	for _, j := range jobs {
		switch _, err := os.Stat(j.Lab.File); {
		case j.Lab.File == labfile.StdinName:
			return usagef("--kernel uml: User Mode Linux cannot read standard input; write the lab to a file")
		case err == nil: // otherwise it is a lab inside the program
			paths = append(paths, j.Lab.File)
		}
	}
	for _, p := range paths {
		if p == "" {
			continue
		}
		if err := uml.Shared(p); err != nil {
			return usagef("--kernel uml: %w", err)
		}
	}
	defer context.AfterFunc(ctx, func() { toldInterruption.Store(true) })() // by the weft in there
	code, err := a.boot(ctx, a.args, a.stdout)
	if err != nil {
		return err
	}
	return exitCode(code)
}

// hostKernel returns an error for every kernel but this machine's. A deployed lab needs that one.
func hostKernel(kernel string) error {
	switch kernel {
	case "host":
		return nil
	case "uml":
		return usagef("--kernel uml: User Mode Linux ends with its command, and a deployed lab would end with it; " +
			"use weft run --kernel uml, which runs the workload of the lab")
	}
	return usagef("--kernel %q: expected host", kernel)
}

// terminalsVar tells weft under User Mode Linux which of its outputs are terminals outside. Inside
// they are pipes.
const terminalsVar = "WEFT_TERMINALS"

// bootUML executes a command line of weft under User Mode Linux, and passes its standard output on.
func bootUML(ctx context.Context, args []string, stdout io.Writer) (code int, err error) {
	k, err := uml.Find(ctx)
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var terminals []string
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if isTerminal(f) {
			terminals = append(terminals, f.Name())
		}
	}
	env := append(os.Environ(), terminalsVar+"="+strings.Join(terminals, " "))
	if own := store.Outer(); own != "" {
		env = append(env, own)
	}
	words := &trackedWriter{to: os.Stderr}
	code, err = uml.Run(ctx, uml.Command{
		Kernel: k, Path: self, Args: append([]string{os.Args[0]}, args...),
		Env: env, Stdout: stdout, Stderr: words,
	})
	if err == nil {
		err = words.interruption(ctx, code)
	}
	return code, err
}

// trackedWriter passes on all bytes and remembers whether there were any.
type trackedWriter struct {
	to    io.Writer
	wrote bool
}

func (w *trackedWriter) Write(p []byte) (int, error) {
	w.wrote = w.wrote || len(p) > 0
	return w.to.Write(p)
}

// interruption returns the cause of an interruption that the program, which ended with code, did
// not report: it came before the program handled signals.
func (w *trackedWriter) interruption(ctx context.Context, code int) error {
	if code != exitInterrupted || w.wrote {
		return nil
	}
	return context.Cause(ctx)
}

// reachesTerminal reports whether f is a terminal, or leads to one outside of User Mode Linux.
func reachesTerminal(f *os.File) bool {
	if names := os.Getenv(terminalsVar); names != "" && uml.Inside() != "" && (f == os.Stdout || f == os.Stderr) {
		return slices.Contains(strings.Fields(names), f.Name())
	}
	return terminal.Is(f)
}
