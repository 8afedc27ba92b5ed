package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/plural"
	"weft/orchestrator/deploy"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/plan"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/topology"
	"weft/orchestrator/topology/render"
	"weft/results/record"
	"weft/results/table"
)

// describe completes a command that shows one aspect of one lab. For a sweep it shows the first
// point; the second argument of show is the number of points.
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
			fmt.Fprintf(a.stderr, "%s sweeps over %s; this is the first, %s. Choose another with --set.\n",
				labfile.NameOf(args[0]), plural.Count(len(labs), "run"), table.Point(labs[0].Point))
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
		Use:   "explain LAB",
		Short: "show every setting of a lab, its effective value and where it comes from",
		Long: `Show the lab with every default filled in, and where each value comes from. Below follow the
effective values: what settings such as auto, or sizes in units of the bandwidth-delay product, are
in this lab. Warnings name conditions that the transport needs and the lab does not meet.`,
		Example: `  weft explain labs/quickstart.yaml
  weft explain labs/quickstart.yaml --set transport.pc4.target_qtime=1us --json`,
	}, &flags, func(l *lab.Lab, runs int) error {
		effective, err := experiment.Effective(l)
		if err != nil {
			return err
		}
		unused, err := experiment.Unused(l)
		if err != nil {
			return err
		}
		outside := experiment.Outside(l)
		settings := []record.Setting{}
		for _, s := range l.Sources {
			if !slices.Contains(unused, s.Path) {
				settings = append(settings, record.Setting{Path: s.Path, Value: s.Value, From: s.From})
			}
		}
		if asJSON {
			return writeJSON(a.stdout, explained{l.Name, runs, l.Point, settings, effective, problems(outside)})
		}
		for _, p := range outside {
			fmt.Fprintf(a.stderr, "warning: %v\n", p)
		}
		_, err = fmt.Fprintf(a.stdout, "%s\nEffective values:\n\n%s",
			table.Settings(settings), table.Settings(effective))
		return err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explained is the output of weft explain --json.
type explained struct {
	Lab      string           `json:"lab"`
	Runs     int              `json:"runs"` // points of the sweep
	Point    map[string]any   `json:"point,omitempty"`
	Settings []record.Setting `json:"settings"`

	Effective []record.Setting `json:"effective"`
	Warnings  []problem        `json:"warnings"`
}

func (a *app) planCommand() *cobra.Command {
	var flags labFlags
	var far machineFlags
	var run, asJSON bool
	cmd := &cobra.Command{
		Use:   "plan LAB",
		Short: "show what deploying the lab would create, without creating it",
		Long: `Show what weft deploy would create: processes, interfaces, addresses, neighbours, routes and queueing
disciplines, in the order of their creation. With --json each operation has the state after it,
property by property (makes). The subnet is the one that the lab would get now. On the kernel
datapath, rates and delays depend on the dilation: they are shown if the lab or --set
engine.dilation=N sets it. --on shows which host and switch would be on which other machine.`,
		Example: `  weft plan labs/quickstart.yaml
  weft plan labs/quickstart.yaml --run
  weft plan labs/smoke/parts.yaml --on 10.0.0.1:7788,10.0.0.2:7788
  weft plan labs/smoke/star.yaml --json`,
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		_, n, err := far.engine()
		if far.on != "" && err == nil {
			if n == 0 {
				var addrs []string
				addrs, err = far.addresses()
				n = len(addrs)
			}
			flags.Set = append(flags.Set, settings(n)...)
		}
		return err
	}
	a.describe(cmd, &flags, func(l *lab.Lab, _ int) error {
		p, err := planOf(cmd.Context(), l, run, far.on)
		if err == nil && far.on != "" {
			var where string
			where, err = far.where(cmd.Context())
			p.Note = strings.TrimPrefix(p.Note+"\n"+where, "\n")
		}
		if err != nil {
			return err
		}
		a.notes("topology", l)
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
	cmd.Flags().StringVar(&far.on, "on", "", "show what goes where on other machines: swarm:N, slurm:N or addresses")
	cmd.Flags().StringVar(&far.secret, "secret", "", "as of weft run; it is not read")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// notes prints the notes of labs about settings below a section, each once.
func (a *app) notes(section string, labs ...*lab.Lab) {
	seen := map[lab.Problem]bool{}
	for _, l := range labs {
		for _, p := range l.Notes() {
			if strings.HasPrefix(p.Path, section+".") && !seen[p] {
				seen[p] = true
				fmt.Fprintf(a.stderr, "warning: %s: %s\n", p.Path, p.Message)
			}
		}
	}
}

// planOf returns the plan of running a lab or, without run, of deploying it; on is --on.
func planOf(ctx context.Context, l *lab.Lab, run bool, on string) (plan.Plan, error) {
	if run {
		return orchestrate.PlanRun(ctx, l, on != "", nil)
	}
	subnet, up, err := deploy.SubnetOf(stateDir(), l, on)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := orchestrate.PlanDeployment(ctx, l, subnet, on != "", nil)
	if up != nil {
		p.Note = strings.TrimSuffix(up.Text(), "\n")
	}
	return p, err
}

func (a *app) graphCommand() *cobra.Command {
	var flags labFlags
	var format string
	var asJSON bool
	cmd := a.describe(&cobra.Command{
		Use:     "graph LAB",
		Short:   "draw the topology of a lab",
		Long:    "Draw the topology of a lab: its nodes and links, with their rates and delays.",
		Example: "  weft graph labs/smoke/star.yaml\n  weft graph labs/quickstart.yaml --format svg",
	}, &flags, func(l *lab.Lab, _ int) error {
		g, err := topology.Build(l.Topology)
		if err != nil {
			return usageError{err}
		}
		a.notes("topology", l)
		if asJSON {
			return writeJSON(a.stdout, render.NewDocument(l.Name, g))
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
