package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/internal/clip"
	"weft/internal/nearest"
	"weft/orchestrator/lab"
	"weft/orchestrator/runtime/namespace"
	"weft/orchestrator/series"
)

// Exit codes. Scripts rely on them; the package doc has their meaning.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitMissed      = 3
	exitFidelity    = 4
	exitInterrupted = namespace.Interrupted
)

// errMissed ends a command that missed an expectation. The table has already shown which.
var errMissed = errors.New("an expectation was missed")

// errFidelity ends a run with a fidelity that --strict does not accept.
var errFidelity = errors.New("--strict asks for more")

// usageError is a mistake on the command line. The exit code is 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// continues ends a command that was interrupted and whose work goes on without it.
type continues struct{ error }

func (e continues) Unwrap() error { return e.error }

// app is one invocation of weft.
type app struct {
	stdout, stderr io.Writer
	engine         series.Engine
	args           []string
	// enter executes a command line in a user namespace; nil: never.
	enter func(ctx context.Context, args []string) (code int, err error)
	// boot executes a command line under User Mode Linux, with its standard output to stdout.
	boot     func(ctx context.Context, args []string, stdout io.Writer) (code int, err error)
	demoed   *abilities       // of the machine of weft demo; nil: they are those of this one
	deployed *deployed        // answers completion's questions; nil: from this machine
	now      func() time.Time // nil: time.Now
	running  bool             // the arguments were accepted: later errors are no usage errors
}

// run executes a command line and returns the exit code. Data goes to stdout, words to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr, engine: orchestrated{}, enter: namespace.Enter, boot: bootUML}
	return a.execute(ctx, args)
}

func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError{err} })
	a.args = args
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return a.report(ctx, cmd, err)
}

// report prints err, if there is one, and returns the exit code.
func (a *app) report(ctx context.Context, cmd *cobra.Command, err error) int {
	var problems lab.Problems
	var problem lab.Problem
	var usage usageError
	var code exitCode
	var on continues
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, errMissed): // of runs that all ended, even if a signal arrived meanwhile
		return exitMissed
	case errors.Is(err, errFidelity):
		fmt.Fprintf(a.stderr, "weft: %v\n", err)
		return exitFidelity
	case ctx.Err() != nil && errors.As(err, &on):
		fmt.Fprintf(a.stderr, "weft: %v\n", err)
		return exitInterrupted
	case ctx.Err() != nil:
		fmt.Fprintf(a.stderr, "weft: %v%s\n", context.Cause(ctx), afterSignal(cmd, err))
		return exitInterrupted
	case errors.As(err, &problems), errors.As(err, &problem):
		fmt.Fprintln(a.stderr, err)
		return exitUsage
	case errors.As(err, &usage):
		fmt.Fprintf(a.stderr, "weft: %v\n", err)
		return exitUsage
	case !a.running:
		fmt.Fprintf(a.stderr, "weft: %v\nRun '%s --help' for usage.\n", argumentError(cmd, err), cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(a.stderr, "%s %v\n", style(a.stderr).Bad("weft:"), err)
	return exitFailed
}

// filled returns an error if a flag has an empty text, as from a variable of CI that is not set: it
// would count as left out, and a check that it asks for with it. Weft's calls of itself may have
// any.
func filled(cmd *cobra.Command) (err error) {
	if cmd.Hidden {
		return nil
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		texts := []string{f.Value.String()}
		switch list, is := f.Value.(pflag.SliceValue); {
		case is:
			texts = list.GetSlice()
		case f.Value.Type() != "string":
			return
		}
		if err == nil && (len(texts) == 0 || slices.Contains(texts, "")) {
			err = usagef("--%s is empty; expected a value, or the command without it", f.Name)
		}
	})
	return err
}

// tornDown is what became of a lab after a signal, by the commands that make one. A lab that is
// deployed and that another command asks stays up, as does one that weft deploy finds.
var tornDown = map[string]string{
	"weft run": everything, "weft demo": everything, "weft demo show": everything, "weft bench": everything,
	"weft clock": everything, "weft paper": everything, "weft sweep shard": everything,
	"weft deploy": "what it had made was torn down",
}

const everything = "everything was torn down"

// afterSignal returns what there is to say of a command that a signal ended, behind a semicolon:
// the fate of its lab, or what failed. It may be empty.
func afterSignal(cmd *cobra.Command, err error) string {
	if text := tornDown[cmd.CommandPath()]; text != "" {
		return "; " + text
	}
	if errors.Is(err, context.Canceled) {
		return ""
	}
	return "; " + err.Error()
}

// printable returns an error if a flag names a file or directory with characters that do not print:
// messages have the name.
func printable(cmd *cobra.Command) error {
	for _, name := range []string{"out", "junit", "summary", "html"} {
		if f := cmd.Flags().Lookup(name); f != nil && strings.ContainsFunc(f.Value.String(), clip.Forbidden) {
			return usagef("--%s %q: the name has characters that do not print; choose another", name,
				clip.Line(f.Value.String()))
		}
	}
	return nil
}

// argumentError replaces cobra's errors about numbers. The value of a flag may be the next flag, if
// its number was forgotten.
func argumentError(cmd *cobra.Command, err error) error {
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) {
		switch name := unknown.GetSpecifiedName(); {
		case name == "on":
			return fmt.Errorf("%s is for this machine; expected weft run LAB --on ... or weft deploy",
				cmd.CommandPath())
		case name == "results" && cmd.Flag("out") != nil:
			return fmt.Errorf("--results is a flag of weft sweep; %s has --out", cmd.CommandPath())
		}
		return fmt.Errorf("%w%s", err, flagHint(cmd, unknown))
	}
	var bad *pflag.InvalidValueError
	if number := new(strconv.NumError); errors.As(err, &bad) && errors.As(err, &number) {
		return fmt.Errorf("--%s %q is not a whole number; write --%[1]s 10, for example",
			bad.GetFlag().Name, bad.GetValue())
	}
	flag := new(flagError)
	if !errors.As(err, flag) && cmd.Args != nil && cmd.Args(cmd, cmd.Flags().Args()) != nil {
		return fmt.Errorf("wrong number of arguments; expected %s", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
	return err
}

// flagError is an error in the flags of a command line, whose arguments are then not counted.
type flagError struct{ error }

func (e flagError) Unwrap() error { return e.error }

// flagHint suggests what an unknown flag was meant to be: an argument of a program, a key of the
// lab, or a flag with a similar name. It is empty if nothing is likely.
func flagHint(cmd *cobra.Command, unknown *pflag.NotExistError) string {
	if strings.Contains(cmd.Use, "[-- CMD") && cmd.Flags().NArg() > 1 {
		return fmt.Sprintf("; a program and its arguments follow --, such as %s LAB -- ping h1", cmd.CommandPath())
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	best, distance := "", len(name)/3+1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := nearest.Edits(name, f.Name); d < distance {
			best, distance = "; did you mean --"+f.Name+"?", d
		}
	})
	if keys := labKeys(name); keys != nil && cmd.Flags().Lookup("set") != nil {
		return "; a key of the lab is changed with --set " + strings.Join(keys, "=... or --set ") + "=..."
	}
	return best
}

// labKeys returns the paths of the outermost keys of labs with the name of a flag, at most three.
func labKeys(flag string) (paths []string) {
	name, depth := "."+strings.ReplaceAll(flag, "-", "_"), 0
	keys := lab.Keys()
	for _, k := range keys { // outer ones first
		nested := strings.Count(k.Path, ".")
		if !strings.HasSuffix("."+k.Path, name) || paths != nil && nested > depth || len(paths) == 3 {
			continue
		}
		path := k.Path
		if kind := path + ".kind"; k.Section {
			if !slices.ContainsFunc(keys, func(k lab.Key) bool { return k.Path == kind }) {
				continue
			}
			path = kind
		}
		paths, depth = append(paths, strings.ReplaceAll(path, "*", "0")), nested
	}
	return paths
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "build an AI cluster's network from one YAML file and run collectives over it",
		Long: `Build the network that a lab file describes, run collectives over it with a chosen transport, check
the data, and report in the units of the lab. The same lab runs emulated, with real sockets in
network namespaces or Docker containers, and simulated.`,
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.running = true
			if err := filled(cmd); err != nil {
				return err
			}
			return printable(cmd)
		},
	}
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(
		a.demoCommand(), a.labsCommand(), a.runCommand(), a.benchCommand(), a.clockCommand(),
		a.validateCommand(), a.explainCommand(), a.planCommand(), a.graphCommand(), a.schemaCommand(),
		a.resultsCommand(), a.viewCommand(), a.paperCommand(), a.doctorCommand(), a.versionCommand(), a.deployCommand(),
		a.destroyCommand(), a.cleanCommand(), a.execCommand(), a.inspectCommand(),
		a.linkCommand(), a.nodeCommand(), a.eventsCommand(), a.captureCommand(), a.cniCommand(),
		a.machineCommand(), a.generateCommand(),
		a.newCommand(), a.traceCommand(), a.convertCommand(), a.sweepCommand(), a.imageCommand(),
	)
	root.AddCommand(a.insideCommands()...)
	root.AddCommand(packaging()...)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() { // cobra's own, described as ours are
		switch c.Name() {
		case "help":
			c.Short = "show the help of a command"
		case "completion":
			c.Short = "print the completion script of a shell"
		}
	}
	a.complete(root)
	return root
}
