package main

import (
	"errors"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/deploy"
	"weft/orchestrator/deploy/probe"
	"weft/orchestrator/emulate"
	"weft/orchestrator/runtime/docker"
)

// insideCommands returns the hidden commands that are the processes of an emulated lab. Each
// inherits a connection to the orchestrator and runs until the orchestrator stops it or the
// connection ends.
func (a *app) insideCommands() []*cobra.Command {
	return []*cobra.Command{
		reapCommand(),
		{
			Use: "fabric", Short: "carry the packets of a lab", Hidden: true, Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return inside("fabric", emulate.FabricProcess) },
		},
		{
			Use: "probe send PLAN | receive PORT PHASES", Short: "measure the path between two nodes",
			Hidden: true, Args: cobra.RangeArgs(2, 3),
			RunE: func(_ *cobra.Command, args []string) error { return probe.Run(a.stdout, args) },
		},
		{
			Use: "supervise ROOT LAB", Short: "own a deployed lab", Hidden: true, Args: cobra.ExactArgs(2),
			RunE: func(_ *cobra.Command, args []string) error {
				return inside("supervise", func(conn *control.Conn) error {
					return deploy.Supervise(conn, args[0], args[1], a.deployOptions())
				})
			},
		},
	}
}

// inside runs body with the connection that this process inherits from its parent.
func inside(name string, body func(*control.Conn) error) error {
	signal.Reset() // a signal ends this process, and the orchestrator then ends the lab
	conn, err := boot.Connect()
	if err != nil {
		return usagef("weft %s is part of weft run and weft deploy, which start it: %w", name, err)
	}
	return errors.Join(body(conn), conn.Close())
}

// reapCommand returns the process that removes the containers of a lab whose orchestrator was
// killed.
func reapCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reap ENGINE RUN", Short: "remove the containers of a lab when weft is killed",
		Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return docker.Reap(cmd.Context(), os.Stdin, args[0], args[1])
		},
	}
}
