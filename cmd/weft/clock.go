package main

import (
	"github.com/spf13/cobra"

	"weft/orchestrator/lab"
)

// clockCommand is weft clock: the synchronization of a lab's clocks without its workload.
func (a *app) clockCommand() *cobra.Command {
	flags := runFlags{lab: labFlags{Options: lab.Options{ClocksAlone: true}}}
	cmd := &cobra.Command{
		Use:   "clock LAB...",
		Short: "measure how well a lab's clocks are kept together, without its workload",
		Long: "Run the clocks of labs alone: the synchronization that clocks.sync names, on the network of the lab with its\n" +
			"faults, without the workload. What is printed is the true error between hosts, how soon it came below\n" +
			"clocks.limit, whether the bounds that hosts state hold, and what synchronization cost. The run's directory has\n" +
			"every sample (clocks.parquet) and a drawing of the error over time (plots/clocks.svg).\n\n" +
			"Errors count from measure.from on, or from the start.",
		Example: "  weft clock labs/quickstart.yaml --set clocks.sync=huygens --engine sim\n" +
			"  weft clock labs/clocksync/huygens-load.yaml --engine sim\n" +
			"  weft clock labs/quickstart.yaml --set clocks.sync=ptp --for 50ms --json\n" +
			"  weft clock labs/quickstart.yaml --engine emu --set clocks.sync=ptp --for 20ms --dilation 500 --capture h1=ptp.pcapng",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: labFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, flags) },
	}
	f := cmd.Flags()
	flags.lab.register(cmd)
	f.StringVar(&flags.lab.Span, "for", "", "how long in lab time (default clocks.for, or a hundred PTP intervals, ten Huygens windows)")
	f.StringVar(&flags.lab.Engine.Dilation, "dilation", "", "auto or a number from 1: how much slower than the lab emulation runs")
	kernelFlag(cmd, &flags.kernel)
	outFlag(f, &flags.out)
	f.StringVar(&flags.junit, "junit", "", "also write a JUnit report to this file")
	runCaptureFlag(cmd, &flags.capture)
	strictFlag(cmd, &flags.strict)
	f.BoolVar(&flags.json, "json", false, "print one JSON object per run instead of tables")
	return cmd
}
