package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/internal/clip"
	"weft/internal/plural"
	"weft/orchestrator/labfile"
	"weft/orchestrator/series"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/collect"
	"weft/orchestrator/sweep/local"
	"weft/orchestrator/sweep/manage"
	"weft/orchestrator/sweep/shard"
	"weft/orchestrator/sweep/slurm"
	"weft/orchestrator/sweep/swarm"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
	"weft/units"
)

// schedulers are the values of --on.
func schedulers() []shard.Scheduler {
	return []shard.Scheduler{local.Scheduler{}, slurm.Scheduler{}, swarm.Scheduler{}}
}

// schedulerOf returns the scheduler with a name.
func schedulerOf(name string) (shard.Scheduler, error) {
	var names []string
	for _, s := range schedulers() {
		if s.Name() == name {
			return s, nil
		}
		if strings.HasPrefix(name, s.Name()+":") {
			return nil, usagef("--on %s: a sweep takes whatever machines are free; expected --on %s, or weft run "+
				"--on %[1]s, which has parts of one lab on several machines", name, s.Name())
		}
		names = append(names, s.Name())
	}
	return nil, usagef("--on %s: expected %s", name, strings.Join(names, ", "))
}

// sweepFlags are the flags of weft sweep submit and resume.
type sweepFlags struct {
	lab     labFlags
	on      string
	shards  int
	results string
	round   sweep.Round
	memory  string
	quiet   bool
	json    bool
}

func (f *sweepFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.on, "on", "local", "where the shards run: "+strings.Join(schedulerNames(), ", "))
	flags.IntVar(&f.round.Workers, "workers", 1, "processors that each shard of a simulation uses; local shares all")
	flags.StringVar(&f.round.Image, "image", "",
		"swarm: image with this weft, by digest or ID (default made from this program: see weft image save)")
	flags.StringVar(&f.memory, "memory", "", "memory reserved for a shard, and its limit, such as 2GiB (default none)")
	flags.StringVar(&f.round.Collect, "collect", "", "swarm: shards send their runs to this machine over mutual TLS, "+
		"and share no directory; =ADDRESS:PORT chooses where it listens")
	flags.Lookup("collect").NoOptDefVal = collect.Auto
}

// read checks the flags that register added.
func (f *sweepFlags) read() error {
	if f.round.Workers < 1 || f.round.Workers > 4096 {
		return usagef("--workers %d: expected 1 to 4096", f.round.Workers)
	}
	if addr := f.round.Collect; addr != "" && addr != collect.Auto {
		host, port, err := net.SplitHostPort(addr)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
			return usagef("--collect=%s: expected an address of this machine and a port, as in 10.0.0.1:7789", addr)
		}
	}
	if f.memory != "" {
		n, err := units.ParseBytes(f.memory)
		if err != nil {
			return usagef("--memory %s: %w", f.memory, err)
		}
		if n < 16<<20 {
			return usagef("--memory %s: weft alone takes more; expected 16MiB or more", f.memory)
		}
		f.round.Memory = int64(n)
	}
	return nil
}

func schedulerNames() (names []string) {
	for _, s := range schedulers() {
		names = append(names, s.Name())
	}
	return names
}

// resultsFlag adds --results, the directory of all runs that machines share, with the name that it
// has in other commands, --out.
func resultsFlag(f *pflag.FlagSet, results *string) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "out" {
			name = "results"
		}
		return pflag.NormalizedName(name)
	})
	*results = store.DefaultRoot()
	f.Var((*dirFlag)(results), "results", "directory of all runs, the same on every machine (also --out); "+
		store.RootVar+" sets another default")
}

func (a *app) sweepCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "run the points of a sweep on several machines",
		Long: `Run the points of a lab's sweep in shards, on this machine or on many. These share a directory, or
send their runs to this machine. Each point leaves a run directory in its place, as with weft run, and
weft sweep collect prints and draws all points as weft run does.

submit returns at once. Everything about the sweep is in the directory of the results, so any machine
that sees it can ask, cancel, resume or collect. Killed or cut-off machines cost only time: every
point is in the results exactly once. docs/scale-out.md has the details.`,
		Example: `  weft sweep submit labs/pc4/incast-vs.yaml --engine sim
  weft sweep wait sweep-20260101T000000-sim
  weft sweep collect sweep-20260101T000000-sim`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.submitCommand(), a.sweepStatusCommand(), a.sweepWaitCommand(), a.sweepCancelCommand(),
		a.sweepCollectCommand(), a.sweepResumeCommand(), a.manifestCommand(), a.shardCommand(), a.driveCommand(),
		a.collectorCommand())
	return cmd
}

// submitted is the output of submit and resume with --json.
type submitted struct {
	ID     string `json:"id"`
	Dir    string `json:"dir"`
	On     string `json:"on"`
	Round  int    `json:"round"`
	Points int    `json:"points"`
	Shards int    `json:"shards"`
	Handle string `json:"handle"`
}

func (a *app) submitCommand() *cobra.Command {
	var flags sweepFlags
	cmd := &cobra.Command{
		Use: "submit LAB", Short: "start the shards of a sweep, and return",
		Long: `Submit the points of a lab. The first line printed is the ID of the sweep, for the other commands. A
lab that leaves the engine open is simulated, whatever the machines can do: --engine emu emulates.

Points are dealt to shards in turn. By default there are four shards for each processor that the
engine has, and at most one for each point.`,
		Example: `  weft sweep submit labs/pc4/incast-vs.yaml
  weft sweep submit labs/pc4/incast-vs.yaml --shards 8 --set seed=3`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: labFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			on, err := schedulerOf(flags.on)
			if err != nil {
				return err
			}
			if err := flags.read(); err != nil {
				return err
			}
			if flags.shards < 0 || flags.shards > sweep.MaxShards {
				return usagef("--shards %d: expected 1 to %d", flags.shards, sweep.MaxShards)
			}
			src, err := labfile.Open(args[0], false)
			if err != nil {
				return usageError{err}
			}
			q := &manage.Request{Source: src, Options: flags.lab.Options, Results: flags.results, Shards: flags.shards,
				Version: versionText(), Round: flags.round, Now: time.Now()}
			d, err := manage.Submit(cmd.Context(), on, q)
			var refused manage.Refused
			if errors.As(err, &refused) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			return a.showSubmitted(d, flags.json)
		},
	}
	f := cmd.Flags()
	flags.lab.register(cmd)
	runtimeFlag(f, &flags.lab.Engine)
	dilationFlag(f, &flags.lab.Engine)
	flags.register(f)
	f.IntVar(&flags.shards, "shards", 0, "number of shards (default four for each processor)")
	resultsFlag(f, &flags.results)
	f.BoolVar(&flags.json, "json", false, "print JSON")
	return cmd
}

// showSubmitted prints the ID of a sweep whose shards were started, and what runs.
func (a *app) showSubmitted(d *shard.Dir, asJSON bool) error {
	r, _, err := d.Round()
	if err != nil {
		return err
	}
	out := submitted{ID: d.Sub.ID, Dir: d.Path, On: r.On, Round: r.Number, Points: len(d.Sub.Points),
		Shards: d.Sub.Shards, Handle: r.Handle}
	if asJSON {
		return writeJSON(a.stdout, out)
	}
	fmt.Fprintln(a.stdout, out.ID)
	fmt.Fprintf(a.stderr, "engine %s: %s in %s on %s; weft sweep wait %s waits for them\n", d.Sub.Kind,
		plural.Count(out.Points-r.Done, "point"), plural.Count(out.Shards, "shard"), out.On, clip.Line(d.Name()))
	return nil
}

// sweepVerb returns a command about the sweep with an ID.
func (a *app) sweepVerb(use, short, long string, f *sweepFlags,
	do func(ctx context.Context, d *shard.Dir) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " ID", Short: short, Long: long, Args: cobra.ExactArgs(1),
		Example: "  weft sweep " + use + " sweep-20260101T000000-sim\n  weft sweep " + use +
			" sweep-20260101T000000-sim --results /shared/runs",
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := shard.Find(f.results, args[0])
			if err != nil {
				return usageError{err}
			}
			return do(cmd.Context(), d)
		},
	}
	resultsFlag(cmd.Flags(), &f.results)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (a *app) sweepStatusCommand() *cobra.Command {
	var f sweepFlags
	cmd := a.sweepVerb("status", "show the progress of a sweep, or of all", `Show how many points have a result, which shard runs where, and how
long the rest will take. Without an ID: a line for each sweep in the directory of runs.`, &f,
		func(ctx context.Context, d *shard.Dir) error {
			st, err := manage.Status(ctx, schedulerOf, d, time.Now())
			if err != nil {
				return err
			}
			return a.showStatus(&st, f.json)
		})
	one := cmd.RunE
	cmd.Use, cmd.Args = "status [ID]", cobra.MaximumNArgs(1)
	cmd.Example = "  weft sweep status\n" + cmd.Example
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return one(cmd, args)
		}
		return a.listSweeps(cmd.Context(), f.results, f.json)
	}
	return cmd
}

// listSweeps prints the status of each sweep below root in a line.
func (a *app) listSweeps(ctx context.Context, root string, asJSON bool) error {
	if err := checkRoot(root); err != nil {
		return err
	}
	all := shard.List(root)
	if len(all) == 0 {
		fmt.Fprintf(a.stderr, "no submitted sweeps in %s; --results names another directory of runs\n", root)
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(w, "sweep\tlab\ton\tpoints\tstate")
	}
	for _, d := range all {
		st, err := manage.Status(ctx, schedulerOf, d, time.Now())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name(), err)
		}
		if asJSON {
			if err := writeLine(a.stdout, st); err != nil {
				return err
			}
			continue
		}
		state := st.State
		if st.Collected {
			state += ", collected"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d\t%s\n", st.ID, clip.Text(st.Lab), st.On, st.Done, st.Points, state)
	}
	return w.Flush()
}

// showStatus prints the status of a sweep.
func (a *app) showStatus(st *sweep.Status, asJSON bool) error {
	if asJSON {
		return writeJSON(a.stdout, st)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	line := fmt.Sprintf("%s  %s on %s, %d of %s", st.ID, st.State, st.On, st.Done, plural.Count(st.Points, "point"))
	if st.EtaS > 0 {
		line += ", about " + (time.Duration(st.EtaS) * time.Second).String() + " left"
	}
	fmt.Fprintln(w, line)
	if len(st.Shards) > 0 {
		fmt.Fprintln(w, "shard\tstate\tpoints\thost")
	}
	for _, s := range st.Shards {
		row := fmt.Sprintf("%d\t%s\t%d of %d\t%s\t%s", s.Shard, s.State, s.Done, s.Points, clip.Text(s.Host),
			clip.Line(s.Error))
		fmt.Fprintln(w, strings.TrimRight(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range st.Problems {
		fmt.Fprintf(a.stdout, "%s: %s\n", clip.Line(p.Name), clip.Line(p.Error))
	}
	if st.Say != "" {
		fmt.Fprintln(a.stderr, clip.Line(st.Say))
	}
	return nil
}

// Times of weft sweep wait: how often it looks, and how often it says why shards do not run. Our
// own choice.
const (
	waitTime = 500 * time.Millisecond
	sayTime  = 30 * time.Second
)

func (a *app) sweepWaitCommand() *cobra.Command {
	var f sweepFlags
	var limit time.Duration
	cmd := a.sweepVerb("wait", "wait until a sweep is over", `Wait until every point has a result, or no shard is left to run the
others. Exit codes: 0 every point has a result; 1 points are missing, were given up after three tries,
or have a damaged result. A point that failed is a result; weft sweep collect judges it.`, &f,
		func(ctx context.Context, d *shard.Dir) error {
			if limit < 0 {
				return usagef("--timeout %v: expected a positive time, such as 10m", limit)
			}
			if limit > 0 {
				var end context.CancelFunc
				ctx, end = context.WithTimeoutCause(ctx, limit, fmt.Errorf("not over after %v", limit))
				defer end()
			}
			st, err := a.awaitSweep(ctx, d, f.quiet)
			if ctx.Err() != nil {
				return continues{fmt.Errorf("%w; the sweep continues, with %d of %s done: weft sweep wait %s waits "+
					"again, and weft sweep cancel ends it", context.Cause(ctx), d.Settled(),
					plural.Count(len(d.Sub.Points), "point"), clip.Line(d.Name()))}
			}
			if err != nil {
				return err
			}
			if st.State == sweep.Done && !f.json {
				st.Shards = nil // all are done
			}
			if err := a.showStatus(&st, f.json); err != nil {
				return err
			}
			for _, line := range manage.DamagedFiles(d) {
				fmt.Fprintf(a.stderr, "warning: %s\n", clip.Line(line))
			}
			if st.State != sweep.Done {
				return fmt.Errorf("%s: %s", d.Sub.ID, st.State)
			}
			return nil
		})
	quietFlag(cmd, &f.quiet)
	cmd.Flags().DurationVar(&limit, "timeout", 0, "give up waiting after this time (10m); the sweep continues")
	return cmd
}

// awaitSweep waits until a sweep is over.
func (a *app) awaitSweep(ctx context.Context, d *shard.Dir, quiet bool) (sweep.Status, error) {
	pace := a.newPace(quiet)
	defer pace.Clear()
	said, at := "", time.Time{}
	for {
		st, err := manage.Status(ctx, schedulerOf, d, time.Now())
		if err != nil || st.Over() {
			return st, err
		}
		if st.Away {
			if err := manage.Collector(ctx, d); err != nil {
				return st, err
			}
		}
		if st.Say != "" && st.Say != said && time.Since(at) > sayTime {
			pace.Clear()
			fmt.Fprintln(a.stderr, clip.Line(st.Say))
			said, at = st.Say, time.Now()
		}
		pace.Set("points", fmt.Sprintf("%d of %s done on %s", st.Done, plural.Count(st.Points, "point"), st.On),
			int64(st.Done), int64(st.Points))
		select {
		case <-ctx.Done():
			return st, context.Cause(ctx)
		case <-time.After(waitTime):
		}
	}
}

func (a *app) sweepCancelCommand() *cobra.Command {
	var f sweepFlags
	return a.sweepVerb("cancel", "end the shards of a sweep; finished points stay", `End the shards of a sweep and remove what the engine keeps of them.
Points with a result keep it, and weft sweep resume runs the others. It succeeds twice.`, &f,
		func(ctx context.Context, d *shard.Dir) error {
			if err := manage.Cancel(ctx, schedulerOf, d); err != nil {
				return err
			}
			st, err := manage.Status(ctx, schedulerOf, d, time.Now())
			if err != nil {
				return err
			}
			return a.showStatus(&st, f.json)
		})
}

const resumeHelp = `Start the shards again, here or on another engine, for points without a result and
for those that were given up. Shards that still run are ended first.`

func (a *app) sweepResumeCommand() *cobra.Command {
	var f sweepFlags
	cmd := a.sweepVerb("resume", "run the points of a sweep that have no result", resumeHelp, &f,
		func(ctx context.Context, d *shard.Dir) error {
			if err := f.read(); err != nil {
				return err
			}
			f.round.On = f.on
			started, note, err := manage.Resume(ctx, schedulerOf, d, f.round, time.Now())
			if note != "" {
				fmt.Fprintln(a.stderr, clip.Line(note))
			}
			if err != nil || !started {
				return err
			}
			return a.showSubmitted(d, f.json)
		})
	f.register(cmd.Flags())
	f.on = ""
	cmd.Flags().Lookup("on").DefValue = ""
	cmd.Flags().Lookup("on").Usage += " (default: as before)"
	return cmd
}

const collectHelp = `Print the table of all points, judge the expectations across them, and write the
page of the sweep, as weft run does at the end of a local sweep. What the shards left beside their
results is removed. The last line says how many runs were made at a time, and by which machines. Exit
codes are those of weft run.`

func (a *app) sweepCollectCommand() *cobra.Command {
	var f sweepFlags
	return a.sweepVerb("collect", "print and draw all points of a sweep", collectHelp, &f,
		func(ctx context.Context, d *shard.Dir) error {
			jobs, runs, cleanup, err := manage.Collect(ctx, schedulerOf, d)
			if err != nil {
				return err
			}
			if text := manage.Took(runs); text != "" && !f.json {
				defer fmt.Fprintln(a.stderr, text)
			}
			return errors.Join(cleanup, a.collected(ctx, jobs, runs, f.json))
		})
}

// collected prints and draws the points of a sweep as run does those of a local one.
func (a *app) collected(ctx context.Context, jobs []series.Job, runs []*record.Summary, asJSON bool) error {
	var failed error
	for i := 0; asJSON && i < len(runs); i++ {
		failed = errors.Join(failed, writeLine(a.stdout, runs[i]))
	}
	judged, err := a.acrossPoints(jobs, runs)
	all := append(runs[:len(runs):len(runs)], judged...)
	if asJSON {
		err = errors.Join(table.Across(a.stderr, table.MissedAmong(judged), style(a.stderr)), err)
	} else {
		err = errors.Join(a.show(jobs, runs), table.Across(a.stdout, judged, style(a.stdout)), err)
	}
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return verdict(ctx, all, nil, "")
}
