package main

import (
	"context"

	"github.com/spf13/cobra"

	"weft/internal/privilege"
	"weft/orchestrator/doctor"
	"weft/orchestrator/emulate"
	"weft/orchestrator/machine"
	"weft/orchestrator/uml"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON, measure bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check what this machine can do, and what each missing feature costs",
		Long: `Try what emulation needs: privileges, namespaces, devices, timers, and the packet rate of this
machine, which limits the dilation. Everything that a test creates is removed.`,
		Example: "  weft doctor --measure=false\n  weft doctor --measure=false --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.elevate(cmd.Context(), "auto"); err != nil {
				return err
			}
			var o doctor.Options
			for _, e := range agentEngines() {
				find := func(ctx context.Context) ([]string, error) {
					hosts, err := e.Hosts(ctx)
					return machine.Names(hosts), err
				}
				o.Engines = append(o.Engines, doctor.Engine{Name: e.Name(), Machines: find})
			}
			if measure && privilege.CheckNamespaces() == nil {
				o.PacketRate = packetRate(false)
				o.BypassRate = packetRate(true)
			}
			if measure {
				o.BootUML = uml.BootTime
			}
			findings := doctor.Check(cmd.Context(), o)
			if asJSON {
				return doctor.WriteJSON(a.stdout, findings)
			}
			return doctor.WriteTable(a.stdout, findings)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&measure, "measure", true,
		"measure the packet rate and boot User Mode Linux, which takes a few seconds")
	return cmd
}

// packetRate returns a function that measures the packets per second that the built-in runtime
// carries on this machine, with bypass NICs or sockets.
func packetRate(bypass bool) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		c, err := emulate.Calibrate(ctx, emulate.Processes{Bypass: bypass})
		return c.PacketsPerSecond, err
	}
}
