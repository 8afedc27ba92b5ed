package main

import (
	"github.com/spf13/cobra"

	"weft/orchestrator/lab"
)

// clockCommand returns weft clock: the synchronization of a lab's clocks without its workload.
func (a *app) clockCommand() *cobra.Command {
	flags := runFlags{lab: labFlags{Options: lab.Options{ClocksAlone: true}}}
	cmd := &cobra.Command{
		Use:   "clock LAB...",
		Short: "measure the clock synchronization of a lab, without its workload",
		Long: `Run only the clocks of labs: the synchronization that clocks.sync names, on the lab's network with
its faults, without the workload. The output is the true error between hosts, the time until it
stayed below clocks.limit, whether the hosts' stated error bounds hold, and the cost of
synchronization. The directory of the run has every sample (clocks.parquet) and a plot of the error
over time (plots/clocks.svg).

Errors are measured from measure.from on; the default is from the start.`,
		Example: `  weft clock labs/quickstart.yaml --set clocks.sync=huygens --engine sim
  weft clock labs/clocksync/huygens-load.yaml --engine sim
  weft clock labs/quickstart.yaml --set clocks.sync=ptp --for 50ms --json
  weft clock labs/quickstart.yaml --engine emu --set clocks.sync=ptp --for 20ms --dilation 500 --capture h1=ptp.pcapng`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: labFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, flags) },
	}
	f := cmd.Flags()
	flags.lab.register(cmd)
	f.StringVar(&flags.lab.Span, "for", "",
		"duration in lab time (default clocks.for, or a hundred PTP intervals or ten Huygens windows)")
	dilationFlag(f, &flags.lab.Engine)
	kernelFlag(cmd, &flags.kernel)
	outFlag(f, &flags.out)
	f.StringVar(&flags.junit, "junit", "", "also write a JUnit report to this file")
	runCaptureFlag(cmd, &flags.capture)
	strictFlag(cmd, &flags.strict)
	quietFlag(cmd, &flags.quiet)
	f.BoolVar(&flags.json, "json", false, "print one JSON object per run instead of tables")
	return cmd
}
