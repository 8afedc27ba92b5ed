package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/orchestrator/labfile"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/collect"
	"weft/orchestrator/sweep/local"
	"weft/orchestrator/sweep/manage"
	"weft/orchestrator/sweep/shard"
	"weft/orchestrator/sweep/swarm"
)

// manifestCommand returns weft sweep manifest, which renders a sweep for engines that weft does not
// speak with.
func (a *app) manifestCommand() *cobra.Command {
	var flags sweepFlags
	var k sweep.Kubernetes
	var kind string
	cmd := &cobra.Command{
		Use: "manifest LAB", Short: "print a sweep as a manifest for Kubernetes",
		Long: `Print a manifest with the submission and an indexed job that has an index for each shard. Nothing is
started. The image must be of this very build of weft, as make image makes it, and the volume claim
must be one that all nodes can mount and write to at once. When the job is done, mount the volume, and
weft sweep collect ID --results DIR prints the results.`,
		Example: `  weft sweep manifest labs/pc4/incast-vs.yaml --for k8s --image registry.example/weft:1
  weft sweep manifest labs/pc4/incast-vs.yaml --for k8s --image weft:1 --claim runs --shards 8 --memory 2GiB`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: labFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := flags.read(); err != nil {
				return err
			}
			switch {
			case kind != "k8s":
				return usagef("--for %q: expected k8s", kind)
			case flags.round.Image == "":
				return usagef("--image: name the image that the cluster's nodes pull, made by make image")
			case k.Parallel < 1:
				return usagef("--parallel %d: expected a positive number", k.Parallel)
			}
			src, err := labfile.Open(args[0], false)
			if err != nil {
				return usageError{err}
			}
			k.Image, k.Workers, k.Memory = flags.round.Image, flags.round.Workers, flags.round.Memory
			text, err := manage.Manifest(&manage.Request{Source: src, Options: flags.lab.Options, Results: "runs",
				Shards: flags.shards, Version: versionText(), Now: time.Now()}, &k)
			var refused manage.Refused
			if errors.As(err, &refused) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.stdout, text)
			return err
		},
	}
	f := cmd.Flags()
	flags.lab.register(cmd)
	f.StringVar(&kind, "for", "k8s", "k8s: what the manifest is for")
	f.StringVar(&k.Claim, "claim", "weft-runs", "name of the volume claim for the results")
	f.IntVar(&k.Parallel, "parallel", 16, "shards that run at a time")
	f.IntVar(&flags.shards, "shards", 0, "number of shards (default four for each that runs at a time)")
	f.IntVar(&flags.round.Workers, "workers", 1, "processors that each shard uses")
	f.StringVar(&flags.round.Image, "image", "", "image with this weft")
	f.StringVar(&flags.memory, "memory", "", "memory reserved for a shard, and its limit, such as 2GiB (default none)")
	return cmd
}

// shardVars are the environment variables that give a task its shard: of an array of Slurm, and of
// an indexed job of Kubernetes. slotVar is the same from 1 on, as a swarm numbers the slots of a
// service.
var shardVars = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", slotVar}

const slotVar = swarm.SlotVar

// shardCommand returns the hidden command of a task, which keeps the process of its shard.
func (a *app) shardCommand() *cobra.Command {
	var number, round, workers int
	var points bool
	var f shardFlags
	cmd := &cobra.Command{
		Use: "shard [DIR]", Short: "run the points of a shard", Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := shardNumber(number)
			if err != nil {
				return err
			}
			b, leave, err := a.openShard(cmd.Context(), args, &f)
			if err != nil {
				return err
			}
			defer leave()
			sub := b.Submission()
			if number >= sub.Shards {
				return usagef("shard %d: the sweep has %d", number, sub.Shards)
			}
			if !points {
				return a.keepShard(cmd.Context(), b, shard.KeepOptions{Shard: number, Round: round, Workers: workers,
					Stderr: a.stderr})
			}
			if sub.Kind != "sim" {
				if err := a.elevate(cmd.Context(), sub.Engine.Runtime); err != nil {
					return err
				}
			} else {
				steadyGC()
			}
			host, _ := os.Hostname() // for messages
			host = cmp.Or(os.Getenv("SLURMD_NODENAME"), host)
			err = shard.Run(cmd.Context(), b, shard.Options{Shard: number, Round: round, Host: host, Workers: workers,
				Run: a.engine.Run, Say: func(line string) { fmt.Fprintln(a.stderr, line) }})
			var machine shard.MachineError
			switch {
			case errors.Is(err, shard.ErrOver):
				return nil
			case errors.As(err, &machine):
				fmt.Fprintf(a.stderr, "weft: %v\n", err)
				return exitCode(shard.ExitMachine)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&number, "shard", -1, "the shard")
	flags.IntVar(&round, "round", 1, "the round")
	flags.IntVar(&workers, "workers", 1, "processors of a simulation")
	flags.StringVar(&f.submission, "submission", "", "file with the submission, instead of DIR")
	flags.StringVar(&f.results, "results", "", "directory of all runs, with --submission")
	flags.StringVar(&f.collector, "collector", "", "address of the collector, instead of DIR")
	flags.StringVar(&f.keys, "keys", "", "file with the keys for the collector")
	flags.BoolVar(&points, "points", false, "run the points in this process")
	return cmd
}

// shardFlags say where the sweep of a task is.
type shardFlags struct{ results, submission, collector, keys string }

// openShard returns the sweep of a task: in a directory, below results as a file says, or at a
// collector. leave removes what is no longer needed.
func (a *app) openShard(ctx context.Context, args []string, f *shardFlags) (b shard.Backend, leave func(),
	err error) {
	leave = func() {}
	switch {
	case len(args) == 1 && *f == shardFlags{}:
		b, err = shard.Open(args[0])
	case len(args) == 0 && f.submission != "" && f.results != "" && f.collector == "":
		b, err = shard.Adopt(f.results, f.submission, sweep.ByManifest)
	case len(args) == 0 && f.collector != "" && f.keys != "" && f.submission == "":
		// A process that was killed left its runs where its successor makes its own.
		work := filepath.Join(os.TempDir(), fmt.Sprintf("weft-shard-%d", os.Getppid()))
		var r *collect.Remote
		r, err = collect.Dial(ctx, f.collector, f.keys, work, func(line string) { fmt.Fprintln(a.stderr, line) })
		b, leave = r, func() { _ = r.Close() } // nothing of it is needed
	default:
		err = usagef("weft sweep shard is started by an engine, with a directory, with --submission and --results, " +
			"or with --collector and --keys")
	}
	return b, leave, err
}

// keepShard keeps the process of a shard.
func (a *app) keepShard(ctx context.Context, b shard.Backend, o shard.KeepOptions) (err error) {
	if o.Self, err = os.Executable(); err != nil {
		return err
	}
	err = shard.Keep(ctx, b, o)
	if err == nil || errors.Is(err, shard.ErrOver) {
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "weft: %v\n", err)
	return exitCode(shard.ExitMachine) // the engine may start the task on another machine
}

// shardNumber returns the shard of this task.
func shardNumber(flag int) (int, error) {
	if flag >= 0 {
		return flag, nil
	}
	for _, name := range shardVars {
		if text := os.Getenv(name); text != "" {
			var n int
			if _, err := fmt.Sscanf(text, "%d", &n); err != nil || n < 0 || n == 0 && name == slotVar {
				return 0, usagef("%s=%q is not the number of a shard", name, text)
			}
			if name == slotVar {
				n--
			}
			return n, nil
		}
	}
	return 0, usagef("weft sweep shard is started by an engine, which sets %s", strings.Join(shardVars, " or "))
}

// collectorCommand returns the hidden command of the process that receives the runs of a sweep.
func (a *app) collectorCommand() *cobra.Command {
	return roundCommand("collector", "receive the runs of a sweep", collect.Serve)
}

// driveCommand returns the hidden command of the process that keeps the shards of --on local.
func (a *app) driveCommand() *cobra.Command {
	return roundCommand("drive", "keep the shards of a local sweep", local.Scheduler{}.Drive)
}

// roundCommand returns the hidden command of a process that works on a round of a sweep.
func roundCommand(name, short string, work func(context.Context, *shard.Dir, int) error) *cobra.Command {
	var round int
	cmd := &cobra.Command{
		Use: name + " DIR", Short: short, Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := shard.Open(args[0])
			if err != nil {
				return err
			}
			return work(cmd.Context(), d, round)
		},
	}
	cmd.Flags().IntVar(&round, "round", 1, "the round")
	return cmd
}
