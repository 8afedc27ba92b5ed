package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weft/orchestrator/deploy"
	"weft/units"
)

func (a *app) inspectCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "inspect [LAB]",
		Short:   "show a deployed lab: nodes, addresses, links, queues, state",
		Long:    "Show a deployed lab as it is now: its nodes and their addresses, its links with what they are made of at the moment,\nand what waits in their queues. Times and rates are the lab's.",
		Example: "  weft inspect\n  weft inspect quickstart --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, done, err := a.deployed(first(args))
			if err != nil {
				return err
			}
			defer done()
			s, err := h.State()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.stdout, s)
			}
			return showState(a.stdout, s)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// showState prints a deployed lab for people.
func showState(w io.Writer, s *deploy.State) error {
	fmt.Fprintf(w, "%s: %s\n", s.Lab, s.Topology)
	fmt.Fprintf(w, "up since %s; runtime %s, datapath %s, dilation %g; lab time %.3f ms\n",
		s.Began.Local().Format(time.DateTime), s.Runtime, s.Datapath, s.Dilation, s.NowUS/1e3)
	if s.Broken != "" {
		fmt.Fprintf(w, "broken: %s\n", s.Broken)
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "node\ttier\taddress\tstate\tprocess")
	for _, n := range s.Nodes {
		pid := ""
		if n.PID != 0 {
			pid = fmt.Sprint(n.PID)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", n.Name, n.Tier, n.Address, n.State, pid)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(t, "link\tstate\trate\tdelay\tloss\tqueued\tpackets\tdropped\t")
	for _, k := range s.Links {
		changed := ""
		if k.Changed {
			changed = "(changed)"
		}
		var queued, packets, drops int64
		for _, p := range k.Ports {
			queued, packets, drops = queued+p.QueuedBytes, packets+p.Packets, drops+p.Drops+p.Lost+p.Cut
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.4g%%\t%d B\t%d\t%d\t%s\n", k.Name, k.State, units.Bandwidth(k.RateBPS),
			units.Time(k.DelayUS*float64(units.Microsecond)), 100*k.Loss, queued, packets, drops, changed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n := s.Network; n != nil {
		fmt.Fprintf(w, "\n%d packets sent, %d delivered; %d dropped by queues, %d lost on lines, %d cut off, %d not ordered by the lab\n",
			n.Injected, n.Delivered, n.Drops, n.Lost, n.Cut, n.Refused)
	}
	return nil
}
