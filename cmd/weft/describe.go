package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"weft/orchestrator/deploy"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/plan"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/topology"
	"weft/orchestrator/topology/render"
	"weft/results/record"
	"weft/results/table"
)

// describe makes a command that shows one aspect of one lab. Of a sweep it shows the first point.
func (a *app) describe(cmd *cobra.Command, flags *labFlags, show func(*lab.Lab, int) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = labFiles
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		files, err := flags.load(args)
		if err != nil {
			return err
		}
		labs := files[0].Labs
		if len(labs) > 1 {
			fmt.Fprintf(a.stderr, "%s sweeps over %s; this is the first: %s. Choose another with --set.\n",
				args[0], plural(len(labs), "run"), table.Point(labs[0].Point))
		}
		return show(labs[0], len(labs))
	}
	flags.register(cmd)
	return cmd
}

func (a *app) explainCommand() *cobra.Command {
	var flags labFlags
	var asJSON bool
	cmd := a.describe(&cobra.Command{
		Use:     "explain LAB",
		Short:   "show the lab with every default filled in, what it comes to, and where each value came from",
		Example: "  weft explain labs/quickstart.yaml\n  weft explain labs/quickstart.yaml --set transport.pc4.target_qtime=1us --json",
	}, &flags, func(l *lab.Lab, runs int) error {
		effective, err := experiment.Effective(l)
		if err != nil {
			return err
		}
		if asJSON {
			out := explained{Effective: effective, Lab: l.Name, Runs: runs, Point: l.Point, Settings: []record.Setting{}}
			for _, s := range l.Sources {
				out.Settings = append(out.Settings, record.Setting{Path: s.Path, Value: s.Value, From: s.From})
			}
			return writeJSON(a.stdout, out)
		}
		if _, err = fmt.Fprint(a.stdout, explain(l)); err == nil {
			_, err = fmt.Fprintf(a.stdout, "\nWhat this comes to:\n\n%s", settingRows(effective))
		}
		return err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explained is what `weft explain --json` prints.
type explained struct {
	Lab      string           `json:"lab"`
	Runs     int              `json:"runs"` // points of the sweep
	Point    map[string]any   `json:"point,omitempty"`
	Settings []record.Setting `json:"settings"`

	Effective []record.Setting `json:"effective"` // what the settings come to
}

// explain lists path, value and origin in columns. Values that are sentences push their origin to the right
// instead of everybody's.
func explain(l *lab.Lab) string {
	settings := make([]record.Setting, len(l.Sources))
	for i, s := range l.Sources {
		settings[i] = record.Setting{Path: s.Path, Value: s.Value, From: s.From}
	}
	return settingRows(settings)
}

func settingRows(settings []record.Setting) string {
	const long = 40
	paths, values := 0, 0
	for _, s := range settings {
		paths = max(paths, len(s.Path))
		if n := utf8.RuneCountInString(s.Value); n <= long {
			values = max(values, n)
		}
	}
	var b strings.Builder
	for _, s := range settings {
		value := strings.Join(strings.Fields(s.Value), " ")
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", paths, s.Path, values, value, s.From)
	}
	return b.String()
}

func (a *app) planCommand() *cobra.Command {
	var flags labFlags
	var run, asJSON bool
	cmd := &cobra.Command{
		Use:   "plan LAB",
		Short: "show what deploying the lab would create, without creating it",
		Long: "Show what weft deploy would create: processes, interfaces, addresses, neighbours, routes and queueing disciplines, in the order\n" +
			"in which they are made. With --json each operation has what is there afterwards, property by property (makes). The subnet is\n" +
			"the one that the lab would be given now. On the kernel's datapath rates and delays depend on the dilation: they are\n" +
			"shown where the lab says one, or --set engine.dilation=N does.",
		Example: "  weft plan labs/quickstart.yaml\n  weft plan labs/quickstart.yaml --run\n  weft plan labs/smoke/star.yaml --json",
	}
	a.describe(cmd, &flags, func(l *lab.Lab, _ int) error {
		p, err := planOf(cmd.Context(), l, run)
		if err != nil {
			return err
		}
		if !asJSON {
			_, err = fmt.Fprint(a.stdout, p.Text())
			return err
		}
		b, err := p.JSON()
		if err == nil {
			_, err = a.stdout.Write(b)
		}
		return err
	})
	cmd.Flags().BoolVar(&run, "run", false, "show what weft run --engine emu would create instead")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// planOf is the plan of running a lab or, without run, of deploying it.
func planOf(ctx context.Context, l *lab.Lab, run bool) (plan.Plan, error) {
	if run {
		return orchestrate.PlanRun(ctx, l)
	}
	subnet, up, err := deploy.SubnetOf(stateDir(), l)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := orchestrate.PlanDeployment(ctx, l, subnet)
	if up {
		p.Note = "the same network is up: weft deploy leaves it as it is"
	}
	return p, err
}

func (a *app) graphCommand() *cobra.Command {
	var flags labFlags
	var format string
	var asJSON bool
	cmd := a.describe(&cobra.Command{
		Use:     "graph LAB",
		Short:   "draw the topology",
		Example: "  weft graph labs/smoke/star.yaml\n  weft graph labs/quickstart.yaml --format svg",
	}, &flags, func(l *lab.Lab, _ int) error {
		g, err := topology.Build(l.Topology)
		if err != nil {
			return usageError{err}
		}
		if asJSON {
			return writeJSON(a.stdout, drawn(l, g))
		}
		picture, err := render.Graph(format, l.Name, g)
		if err != nil {
			return usageError{err}
		}
		_, err = fmt.Fprint(a.stdout, picture)
		return err
	})
	cmd.Flags().StringVar(&format, "format", "text", strings.Join(render.Formats(), ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print nodes and links as JSON")
	return cmd
}

// graph is what `weft graph --json` prints.
type graph struct {
	Lab   string `json:"lab"`
	Title string `json:"topology"`
	Nodes []node `json:"nodes"`
	Links []link `json:"links"`
}

type node struct {
	Name string `json:"name"`
	Tier string `json:"tier"`
	Addr string `json:"address,omitempty"`
}

type link struct {
	Name    string  `json:"name"`
	A       string  `json:"a"`
	B       string  `json:"b"`
	RateBPS int64   `json:"rate_bps"`
	DelayUS float64 `json:"delay_us"`
	Down    bool    `json:"down,omitempty"`
}

func drawn(l *lab.Lab, g *topology.Graph) graph {
	out := graph{Lab: l.Name, Title: g.Title, Nodes: []node{}, Links: []link{}}
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, node{n.Name, n.Tier, n.Addr})
	}
	for _, k := range g.Links {
		out.Links = append(out.Links, link{
			k.Name, g.Nodes[k.A].Name, g.Nodes[k.B].Name, int64(k.Rate), k.Delay.Microseconds(), k.Down,
		})
	}
	return out
}
