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
	"weft/internal/regular"
	"weft/orchestrator/benchmark"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/results/store"
)

// benchFlags are the flags of weft bench.
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
		Long: "Measure collectives over sizes, as nccl-tests does: ranks run each size back to back, after a warm-up, over the\n" +
			"same connections, and its time is the mean over ranks. Times and bandwidths are of the lab, GB/s is 1e9 bytes\n" +
			"per second, and busbw has the factors of nccl-tests (doc/PERFORMANCE.md). All sizes of a collective, an algorithm and\n" +
			"a transport are one run, which leaves a directory under runs/; bus bandwidth against size is drawn beside them.\n" +
			"Ctrl-C ends it: the sizes that were measured are shown.\n\n" +
			"--engine auto simulates if emulating all of it would take longer than a minute, by a forecast, and says so; --engine emu\n" +
			"emulates however long it takes, and --dilation or --runtime ask for emulation as well.\n\n" +
			"Without --iters, sizes up to 1 MiB are measured 20 times and larger ones as often as takes 20 MiB, at least twice.\n" +
			"Of --topology, networks for roce and hpcc lose nothing (queues.pfc: on). On a star, whose round trip is 5 us, a lone\n" +
			"flow of strack gets 73 % of its link, as it is acknowledged every 16 KiB of a window of 58 KB; with --set\n" +
			"transport.strack.ack_every=4KiB 91 %. On longer paths it fills the link (docs/collectives.md).\n\n" +
			"Exit codes: 0 all done and right; 1 a run failed, or elements were wrong; 2 the command line or the lab file is wrong;\n" +
			"130 interrupted.",
		Example: "  weft bench --collective all-reduce --transport pc4,strack,roce --engine sim\n" +
			"  weft bench --collective all-reduce --algorithm all --ranks 16 -b 1M -e 64M -f 4\n" +
			"  weft bench --collective all-to-all --engine emu -b 64K -e 1M -n 5\n" +
			"  weft bench --lab labs/quickstart.yaml --transport strack --set topology.link.rate=400Gbps --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("iters") && f.request.Iterations == 0 {
				return usagef("-n 0; expected at least 1, or no -n: then the size decides")
			}
			return a.bench(cmd.Context(), &f)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.request.Collectives, "collective", []string{schedule.AllReduce}, strings.Join(schedule.Collectives(), ", "))
	fl.StringSliceVar(&f.request.Algorithms, "algorithm", []string{"auto"}, "auto, all, or names of algorithms; those that a collective has are measured")
	fl.StringSliceVar(&f.transports, "transport", nil, "transports to compare (default the lab's, else pc4)")
	fl.IntVar(&f.request.Ranks, "ranks", 0, "how many ranks: the first hosts (default all of the lab, else 8)")
	fl.StringVarP(&f.begin, "minbytes", "b", "32M", "first size; K, M and G are powers of 1024, units such as KB are written out")
	fl.StringVarP(&f.end, "maxbytes", "e", "", "last size (default the first)")
	fl.StringVarP(&f.step, "stepbytes", "i", "1M", "from size to size, unless -f")
	fl.Int64VarP(&f.factor, "stepfactor", "f", 1, "from size to size, if above 1")
	fl.IntVarP(&f.request.Iterations, "iters", "n", 0, "measured collectives of each size (default by the size)")
	fl.IntVarP(&f.request.Warmup, "warmup_iters", "w", 1, "collectives of each size before those")
	fl.StringVarP(&f.kind, "type", "d", string(schedule.Float32), "elements: "+words(schedule.Types())+"; float is float32")
	fl.StringVarP(&f.op, "op", "o", string(schedule.Sum), "reduction: "+words(schedule.Reductions()))
	fl.IntVarP(&f.request.Root, "root", "r", 0, "rank that is the root, of collectives that have one")
	fl.StringVar(&f.chunk, "chunk", "", "what messages are cut into (default what suits the algorithm)")
	fl.IntVar(&f.request.Parallel, "parallel", 0, "all-to-all: peers at once")
	fl.IntVar(&f.request.Group, "group", 0, "hierarchical: ranks per local group")
	fl.StringVar(&f.topology, "topology", "star", "network of just enough hosts: "+strings.Join(benchmark.Topologies(), ", "))
	fl.StringVar(&f.labFile, "lab", "", "the network, queues and parameters of this lab, in place of --topology")
	fl.StringArrayVar(&f.set, "set", nil, "replace a value of the lab, as in --set topology.link.rate=400Gbps (repeatable)")
	fl.StringVar(&f.engine.Kind, "engine", "", "auto, sim or emu (default auto)")
	fl.StringVar(&f.engine.Runtime, "runtime", "", "auto, namespace or docker: where emulated nodes live")
	fl.StringVar(&f.engine.Dilation, "dilation", "", "auto or a number from 1: how much slower than the lab emulation runs")
	kernelFlag(cmd, &f.kernel)
	outFlag(fl, &f.out)
	fl.StringVar(&f.figure, "plot", "", "where bus bandwidth against size is drawn, as .svg or .png (default bench/ of --out)")
	quietFlag(cmd, &f.quiet)
	fl.BoolVar(&f.json, "json", false, "print one JSON object per table instead")
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
	err = store.CheckRoot(f.out, cases[0].job.lab.Name)
	if f.figure != "" {
		if bad := regular.Writable(f.figure); bad != nil {
			err = errors.Join(err, fmt.Errorf("--plot %s: %w", f.figure, bad))
		}
	}
	if err != nil {
		return usageError{err}
	}
	if err := a.on(ctx, f.kernel, []job{cases[0].job}, f.out, f.figure); err != nil {
		return err
	}
	if cases[0].job.engine != "sim" {
		if err := a.elevate(cases[0].job.lab.Engine.Runtime); err != nil {
			return err
		}
	}
	a.chooseEngine(ctx, cases, f)
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
			var lossless []string
			if f.labFile == "" {
				lossless = benchmark.Lossless(transport)
			}
			labs, err := c.Of.Labs(network, text, lab.Options{Set: slices.Concat(lossless, f.set), Engine: f.engine}, transport, f.request.Ranks)
			switch {
			case err != nil:
				return nil, err
			case len(labs) > 1:
				return nil, usagef("%s sweeps over %s; choose one with --set", network, plural(len(labs), "run"))
			case labs[0].Engine.Kind == "both":
				return nil, usagef("%s is for both engines; choose with --engine", network)
			}
			c.Link, c.Notes = labs[0].Topology.Link.Rate, benchmark.Notes(labs[0], lossless)
			c.job = job{lab: labs[0], text: text, engine: labs[0].Engine.Kind}
			cases = append(cases, c)
		}
	}
	jobs := make([]job, len(cases))
	for i := range cases {
		jobs[i] = cases[i].job
	}
	number(jobs, began)
	for i := range cases {
		cases[i].job = jobs[i]
	}
	return cases, nil
}

// network returns the lab file that describes the network, and its name. It fills in ranks and
// transports that the flags leave open.
func (f *benchFlags) network() (text []byte, name string, err error) {
	if f.labFile == "" {
		if f.request.Ranks == 0 {
			f.request.Ranks = 8
		}
		if len(f.transports) == 0 {
			f.transports = []string{"pc4"}
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
	labs, err := lab.Parse(src.Name, src.Text, lab.Options{Set: f.set, Engine: f.engine, Read: src.Read})
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

// draw writes the chart of all tables.
func (a *app) draw(f *benchFlags, cases []benchCase, curves []benchmark.Curve) error {
	c := &cases[0]
	title, by := "Bus bandwidth", map[string]bool{}
	for i := range cases {
		by[cases[i].Of.Title()] = true
	}
	if len(by) == 1 {
		title += " of " + c.Of.Title()
	}
	engine := c.job.engine
	if c.Summary != nil {
		engine = c.Summary.Engine
	}
	caption := fmt.Sprintf("%d ranks, %s, links of %s, engine %s; weft bench %s", f.request.Ranks, c.Network, c.Link, engine, versionText())
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
		name, err = store.Claim(f.out, c.job.lab.Name, c.job.series.Stamp()+"-busbw", ".svg", store.NewFile(image))
	}
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	fmt.Fprintf(a.stderr, "picture: %s\n", name)
	return nil
}
