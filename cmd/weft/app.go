package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/orchestrator/lab"
	"weft/orchestrator/runtime/namespace"
)

// Exit codes. Scripts rely on them.
const (
	exitOK          = 0
	exitFailed      = 1   // the run failed
	exitUsage       = 2   // the command line or the lab file is wrong
	exitMissed      = 3   // it ran, but an expectation was missed, or a comparison found something worse
	exitFidelity    = 4   // it ran, but the fidelity is not what --strict asks for
	exitInterrupted = 130 // interrupted; everything was torn down, partial results are kept
)

// errMissed ends a run that missed something. The table has already said what.
var errMissed = errors.New("an expectation was missed")

// errFidelity ends a run that is not as faithful as --strict asks for.
var errFidelity = errors.New("--strict asks for more")

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// app is one invocation of weft.
type app struct {
	stdout, stderr io.Writer
	engine         engine
	enter          func(args []string) (code int, err error)                      // executes a command line in a user namespace; nil: never
	boot           func(ctx context.Context, args []string) (code int, err error) // executes a command line under User Mode Linux
	args           []string
	live           *live            // what completion asks about deployed labs; nil: the machine
	now            func() time.Time // nil: time.Now
	running        bool             // the command line was understood: errors from here on are of the work
}

// run executes the command line and returns the exit code. Data goes to stdout, words to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr, engine: orchestrated{}, enter: namespace.Enter, boot: bootUML}
	return a.execute(ctx, args)
}

func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	a.args = args
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return a.report(ctx, cmd, err)
}

// report says what went wrong, if anything did, and turns it into an exit code.
func (a *app) report(ctx context.Context, cmd *cobra.Command, err error) int {
	var problems lab.Problems
	var problem lab.Problem
	var usage usageError
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil:
		fmt.Fprintf(a.stderr, "weft: %v; everything was torn down\n", context.Cause(ctx))
		return exitInterrupted
	case errors.Is(err, errMissed):
		return exitMissed
	case errors.Is(err, errFidelity):
		fmt.Fprintf(a.stderr, "weft: %v\n", err)
		return exitFidelity
	case errors.As(err, &problems), errors.As(err, &problem):
		fmt.Fprintln(a.stderr, err)
		return exitUsage
	case errors.As(err, &usage):
		fmt.Fprintf(a.stderr, "weft: %v\n", err)
		return exitUsage
	case !a.running:
		fmt.Fprintf(a.stderr, "weft: %v\nRun '%s --help' for usage.\n", plainly(err), cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(a.stderr, "%s %v\n", style(a.stderr).Bad("weft:"), err)
	return exitFailed
}

// plainly says of a flag that takes a number what is wrong with its value, which may be the flag behind it.
func plainly(err error) error {
	var bad *pflag.InvalidValueError
	if number := new(strconv.NumError); errors.As(err, &bad) && errors.As(err, &number) {
		return fmt.Errorf("--%s %s; expected a whole number, as in --%[1]s 10", bad.GetFlag().Name, bad.GetValue())
	}
	return err
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "weave AI-cluster networks out of one YAML file",
		Long: "Weft builds the network that a lab file describes, runs collectives over it with a chosen transport,\n" +
			"checks the data, and reports in the units of the lab. The same lab runs emulated, with real sockets in\n" +
			"network namespaces or Docker containers, and simulated.",
		Version:           versionText(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { a.running = true },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(
		a.demoCommand(), a.labsCommand(), a.runCommand(), a.benchCommand(), a.clockCommand(), a.validateCommand(), a.explainCommand(), a.planCommand(), a.graphCommand(),
		a.schemaCommand(), a.resultsCommand(), a.paperCommand(), a.doctorCommand(), a.versionCommand(),
	)
	root.AddCommand(
		a.deployCommand(), a.destroyCommand(), a.cleanCommand(), a.execCommand(), a.inspectCommand(),
		a.linkCommand(), a.nodeCommand(), a.eventsCommand(), a.captureCommand(), a.generateCommand(),
	)
	root.AddCommand(a.insideCommands()...)
	root.AddCommand(packaging()...)
	a.complete(root)
	return root
}
