package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/collectives/bench"
	"weft/collectives/schedule"
	"weft/internal/plural"
	"weft/internal/regular"
	"weft/orchestrator/benchmark"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/series"
	"weft/results/store"
)

// benchFlags are the flags of weft bench. Texts are parsed by read.
type benchFlags struct {
	request     benchmark.Request
	begin, end  string
	step        string
	factor      int64
	kind, op    string
	chunk       string
	transports  []string
	topology    string
	labFile     string
	set         []string
	engine      lab.EngineOptions
	out, figure string
	kernel      string
	quiet       bool
	json        bool
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure collectives over sizes, in the table of nccl-tests",
		Long: `Measure collectives over sizes, as nccl-tests does: after a warm-up the ranks repeat each size back
to back over the same connections, and its time is the mean over ranks. Times and bandwidths are the
lab's, GB/s is 1e9 bytes per second, and busbw has the factors of nccl-tests (doc/PERFORMANCE.md).
All sizes of one collective, algorithm and transport are one run with a directory under runs/, beside
a plot of bus bandwidth against size. Ctrl-C stops the benchmark and shows the sizes measured so far.

--engine auto simulates, and says so, if a forecast says that emulating all runs takes longer than half
a minute and simulating them seconds, or longer than a minute. --engine emu emulates however long it
takes; --dilation and --runtime also request emulation.

Without --iters, sizes up to 1 MiB are measured 20 times; larger ones as often as 20 MiB allow, at
least twice. With --topology, networks for roce and hpcc are lossless (queues.pfc: on), and those for
uec trim packets (queues.trim: on).

Exit codes: 0 all done and correct; 1 a run failed, or elements were wrong; 2 the command line or the
lab file is wrong; 130 interrupted. Expectations of a lab are listed, not judged.`,
		Example: `  weft bench --collective all-reduce --transport pc4,strack,roce,uec --engine sim
  weft bench --collective all-reduce --algorithm all --ranks 16 -b 1M -e 64M -f 4
  weft bench --collective all-to-all --engine emu -b 64K -e 1M -n 5
  weft bench --lab labs/quickstart.yaml --transport strack --set topology.link.rate=400Gbps --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("iters") && f.request.Iterations == 0 {
				return usagef("-n 0: expected at least 1; leave out -n for a number that depends on the size")
			}
			return a.bench(cmd.Context(), &f)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.request.Collectives, "collective", []string{schedule.AllReduce},
		strings.Join(schedule.Collectives(), ", "))
	fl.StringSliceVar(&f.request.Algorithms, "algorithm", []string{"auto"},
		"auto, all, or names of algorithms; a collective skips those that it does not have")
	fl.StringSliceVar(&f.transports, "transport", nil,
		"transports to compare (default the lab's, else "+lab.Default("transport.kind")+")")
	fl.IntVar(&f.request.Ranks, "ranks", 0, "number of ranks, on the first hosts (default all hosts of --lab, else 8)")
	fl.StringVarP(&f.begin, "minbytes", "b", "32M", "first size; K, M and G are powers of 1024, KB is 1000")
	fl.StringVarP(&f.end, "maxbytes", "e", "", "last size (default the first)")
	fl.StringVarP(&f.step, "stepbytes", "i", "1M", "bytes between sizes, without -f")
	fl.Int64VarP(&f.factor, "stepfactor", "f", 1, "factor between sizes, if above 1")
	fl.IntVarP(&f.request.Iterations, "iters", "n", 0, "measured iterations of each size (default depends on the size)")
	fl.IntVarP(&f.request.Warmup, "warmup_iters", "w", 1, "warm-up iterations of each size")
	fl.StringVarP(&f.kind, "type", "d", string(schedule.Float32),
		"element type: "+strings.Join(schedule.Names(schedule.Types()), ", ")+"; float is float32")
	fl.StringVarP(&f.op, "op", "o", string(schedule.Sum),
		"reduction: "+strings.Join(schedule.Names(schedule.Reductions()), ", "))
	fl.IntVarP(&f.request.Root, "root", "r", 0, "root rank, for collectives that have one")
	fl.StringVar(&f.chunk, "chunk", "", "size of the pieces of a message (default depends on the algorithm)")
	fl.IntVar(&f.request.Parallel, "parallel", 0, "all-to-all: number of peers at once")
	fl.IntVar(&f.request.Group, "group", 0, "hierarchical: ranks per local group")
	fl.StringVar(&f.topology, "topology", "star",
		"network with just enough hosts: "+strings.Join(benchmark.Topologies(), ", "))
	fl.StringVar(&f.labFile, "lab", "", "use the network, queues and parameters of this lab instead of --topology")
	setFlag(fl, &f.set)
	fl.StringVar(&f.engine.Kind, "engine", "", "auto, sim or emu (default auto)")
	runtimeFlag(fl, &f.engine)
	datapathFlag(fl, &f.engine, "fabric (the default) or kernel: what carries emulated packets")
	dilationFlag(fl, &f.engine)
	kernelFlag(cmd, &f.kernel)
	outFlag(fl, &f.out)
	fl.StringVar(&f.figure, "plot", "",
		"file for the plot of bus bandwidth against size, .svg or .png (default in bench/ below --out)")
	quietFlag(cmd, &f.quiet)
	fl.BoolVar(&f.json, "json", false, "print one JSON object per run instead of tables")
	return cmd
}

// bench runs the benchmark that the flags describe.
func (a *app) bench(ctx context.Context, f *benchFlags) error {
	if err := f.read(); err != nil {
		return err
	}
	cases, err := f.cases(time.Now())
	if err != nil {
		return err
	}
	err = store.CheckRoot(f.out, cases[0].job.Lab.Name)
	if f.figure != "" {
		if bad := regular.Writable(f.figure); bad != nil {
			err = errors.Join(err, fmt.Errorf("--plot %s: %w", f.figure, bad))
		}
	}
	if err != nil {
		return usageError{err}
	}
	if err := a.useKernel(ctx, f.kernel, []series.Job{cases[0].job}, f.out, f.figure); err != nil {
		return err
	}
	if cases[0].job.Engine != "sim" {
		if err := a.elevate(ctx, cases[0].job.Lab.Engine.Runtime); err != nil {
			return err
		}
	}
	a.simulateLong(ctx, cases, f)
	runErr := a.benchAll(ctx, cases, f)
	var done []benchmark.Curve
	for i := range cases {
		if c := &cases[i]; len(c.Rows) > 0 {
			done = append(done, benchmark.Curve{Name: c.name(cases), Rows: c.Rows})
		}
	}
	if err := a.draw(f, cases, done); err != nil && runErr == nil {
		runErr = err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return runErr
}

// cases returns the runs of a benchmark: one for each collective, algorithm and transport.
func (f *benchFlags) cases(began time.Time) ([]benchCase, error) {
	text, network, err := f.network()
	if err != nil {
		return nil, err
	}
	measured, err := f.request.Measure()
	if err != nil {
		return nil, usageError{err}
	}
	var cases []benchCase
	for i := range measured {
		for _, transport := range f.transports {
			c := benchCase{Result: benchmark.Result{Of: &measured[i], Transport: transport, Network: network}}
			var madeFor []string
			if f.labFile == "" {
				madeFor = benchmark.MadeFor(transport)
			}
			o := lab.Options{Set: slices.Concat(madeFor, f.set), Transports: f.transports, Engine: f.engine}
			labs, err := c.Of.Labs(network, text, o, transport, f.request.Ranks)
			switch {
			case err != nil:
				return nil, err
			case len(labs) > 1:
				return nil, usagef("%s sweeps over %s; choose one with --set", network, plural.Count(len(labs), "run"))
			case labs[0].Engine.Both():
				return nil, usagef("%s asks for both engines; choose one with --engine", network)
			}
			c.Link, c.Notes = labs[0].Topology.Link.Rate, benchmark.Notes(labs[0], madeFor)
			c.Skipped = benchmark.Skipped(labs[0])
			c.job = series.Job{Lab: labs[0], Text: text, Engine: labs[0].Engine.Kind}
			cases = append(cases, c)
		}
	}
	jobs := make([]series.Job, len(cases))
	for i := range cases {
		jobs[i] = cases[i].job
	}
	series.Number(jobs, began)
	for i := range cases {
		cases[i].job = jobs[i]
	}
	return cases, nil
}

// network returns the text of the lab with the network, and its name. It sets ranks and transports
// that the flags leave open.
func (f *benchFlags) network() (text []byte, name string, err error) {
	if f.labFile == "" {
		if f.request.Ranks == 0 {
			f.request.Ranks = 8
		}
		if len(f.transports) == 0 {
			f.transports = []string{lab.Default("transport.kind")}
		}
		made, err := benchmark.Network(f.topology, max(2, f.request.Ranks))
		if err != nil {
			return nil, "", usageError{err}
		}
		return []byte(made), f.topology, nil
	}
	src, err := labfile.Open(f.labFile, false)
	if err != nil {
		return nil, "", usageError{err}
	}
	labs, err := lab.Parse(src.Name, src.Text, lab.Options{
		Set: f.set, Transports: f.transports, Engine: f.engine, Read: src.Read,
	})
	if err != nil {
		return nil, "", err
	}
	if f.request.Ranks == 0 {
		f.request.Ranks = labs[0].Topology.HostCount()
	}
	if len(f.transports) == 0 {
		f.transports = []string{labs[0].Transport.Kind}
	}
	return src.Text, src.Name, nil
}

// draw writes the plot of all tables.
func (a *app) draw(f *benchFlags, cases []benchCase, curves []benchmark.Curve) error {
	c := &cases[0]
	title, by := "Bus bandwidth", map[string]bool{}
	for i := range cases {
		by[cases[i].Of.Title()] = true
	}
	if len(by) == 1 {
		title += " of " + c.Of.Title()
	}
	engine := c.job.Engine
	if c.Summary != nil {
		engine = c.Summary.Engine
	}
	caption := fmt.Sprintf("%d ranks, %s, links of %s, engine %s; weft bench %s",
		f.request.Ranks, c.Network, c.Link, engine, versionText())
	if doubts := benchDoubts(cases); len(doubts) > 0 {
		caption += "; " + strings.Join(doubts, "; ")
	}
	chart, ok := benchmark.Chart(title, caption, bench.GBps(c.Link), curves)
	if !ok {
		return nil
	}
	render := chart.SVG
	if filepath.Ext(f.figure) == ".png" {
		render = chart.PNG
	}
	name := f.figure
	image, err := render()
	switch {
	case err != nil:
	case name != "":
		err = regular.WriteOutput(name, image)
	default:
		name, err = store.Claim(f.out, c.job.Lab.Name, c.job.Series.Stamp()+"-busbw", ".svg", store.NewFile(image))
	}
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	fmt.Fprintf(a.stderr, "plot: %s\n", name)
	return nil
}
