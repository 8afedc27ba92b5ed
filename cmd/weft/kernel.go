package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weft/orchestrator/labfile"
	"weft/orchestrator/uml"
	"weft/results/store"
)

// kernelFlag adds --kernel: which kernel emulation runs on.
func kernelFlag(cmd *cobra.Command, kernel *string) {
	cmd.Flags().StringVar(kernel, "kernel", "host", "host or uml: the kernel that emulation runs on, this machine's or User Mode Linux")
}

// on sees to it that a command goes on under the kernel that --kernel names: it returns nil under that kernel, and
// otherwise has the whole command line executed under it, and returns how that came out. The paths are what the command
// writes, empty where it does not.
func (a *app) on(ctx context.Context, kernel string, jobs []job, paths ...string) error {
	switch kernel {
	case "", "host":
		return nil
	case "uml":
	default:
		return usagef("--kernel %q; expected host or uml", kernel)
	}
	switch {
	case slices.ContainsFunc(jobs, func(j job) bool { return j.lab.Engine.Runtime == "docker" }):
		return usagef("--kernel uml: User Mode Linux has no Docker Engine; --runtime namespace runs there")
	case !emulates(jobs):
		return usagef("--kernel uml: --engine sim runs on no kernel but its own model of a network; leave --kernel away, or choose --engine emu")
	case uml.Inside() != "":
		return nil
	}
	for _, j := range jobs {
		switch _, err := os.Stat(j.lab.File); {
		case j.lab.File == labfile.StdinName:
			return usagef("--kernel uml: that kernel has no standard input to read the lab from; write it to a file")
		case err == nil: // otherwise it is inside the program
			paths = append(paths, j.lab.File)
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
	code, err := a.boot(ctx, a.args)
	if err != nil {
		return err
	}
	return exitCode(code)
}

// hostKernel refuses every kernel but this machine's, for labs that stay.
func hostKernel(kernel string) error {
	switch kernel {
	case "host":
		return nil
	case "uml":
		return usagef("--kernel uml: User Mode Linux ends with the command that boots it, and a deployed lab stays; weft run --kernel uml runs a lab there, with its workload and with the programs that the lab names")
	}
	return usagef("--kernel %q; expected host", kernel)
}

// terminalsVar tells weft under User Mode Linux which of its outputs end up at a terminal: it sees pipes.
const terminalsVar = "WEFT_TERMINALS"

// bootUML executes a command line of weft under User Mode Linux.
func bootUML(ctx context.Context, args []string) (code int, err error) {
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
		if terminal(f) {
			terminals = append(terminals, f.Name())
		}
	}
	env := append(os.Environ(), terminalsVar+"="+strings.Join(terminals, " "))
	if own := store.Outer(); own != "" {
		env = append(env, own)
	}
	words := &heard{to: os.Stderr}
	code, err = uml.Run(ctx, uml.Command{
		Kernel: k, Path: self, Args: append([]string{os.Args[0]}, args...),
		Env:    env,
		Stdout: os.Stdout, Stderr: words,
	})
	if err == nil {
		err = words.unsaid(ctx, code)
	}
	return code, err
}

// heard passes on what is written, and knows whether anything was.
type heard struct {
	to  io.Writer
	any bool
}

func (h *heard) Write(p []byte) (int, error) {
	h.any = h.any || len(p) > 0
	return h.to.Write(p)
}

// unsaid is why a program that said nothing ended with code, if that is an interruption: it came before the program saw to signals.
func (h *heard) unsaid(ctx context.Context, code int) error {
	if code != exitInterrupted || h.any {
		return nil
	}
	return context.Cause(ctx)
}

// reachesTerminal reports whether a file is a terminal, or ends up at one outside of User Mode Linux.
func reachesTerminal(f *os.File) bool {
	if names := os.Getenv(terminalsVar); names != "" && uml.Inside() != "" && (f == os.Stdout || f == os.Stderr) {
		return slices.Contains(strings.Fields(names), f.Name())
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
