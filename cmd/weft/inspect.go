package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"weft/internal/plural"
	"weft/orchestrator/deploy"
)

func (a *app) inspectCommand() *cobra.Command {
	var asJSON, check bool
	var links int
	var name string
	cmd := &cobra.Command{
		Use:   "inspect [LAB]",
		Short: "show the nodes, addresses, links and queues of a deployed lab",
		Long: `Show the state of a deployed lab: its nodes and their addresses, its links with their current
settings, and the packets in their queues. Times and rates are the lab's.`,
		Example: "  weft inspect\n  weft inspect quickstart --json\n  weft inspect quickstart --check",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := labArgument(name, args)
			if err != nil {
				return err
			}
			return a.onDeployed(lab, func(h *deploy.Handle) error {
				if check {
					return a.checkLinks(cmd.Context(), h, links, asJSON)
				}
				return a.inspect(h, asJSON)
			})
		},
	}
	deployedFlag(cmd, &name)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&check, "check", false,
		"measure rate, delay and loss with packets between nodes, and compare them with the lab")
	cmd.Flags().IntVar(&links, "links", 64, "with --check, the maximum number of links, evenly spread; 0: all")
	return cmd
}

// inspect prints the state of a deployed lab. A broken lab is an error.
func (a *app) inspect(h *deploy.Handle, asJSON bool) error {
	s, err := h.State()
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(a.stdout, s)
	} else {
		err = s.Show(a.stdout)
	}
	if err == nil && s.Broken != "" {
		err = fmt.Errorf("lab %s is broken; take it down with weft destroy %[1]s", s.Lab)
	}
	return err
}

// checkLinks measures links of a deployed lab. A link that differs from the lab is a missed
// expectation.
func (a *app) checkLinks(ctx context.Context, h *deploy.Handle, links int, asJSON bool) error {
	if links < 0 {
		return usagef("--links must not be negative")
	}
	all := []deploy.Measured{}
	missed, untried := 0, 0
	bar := isTerminal(a.stderr)
	of, err := h.Check(ctx, deploy.Check{Links: links}, func(m deploy.Measured) error {
		all = append(all, m)
		switch {
		case !m.Tried:
			untried++
		case m.Bad != "":
			missed++
		}
		if bar {
			fmt.Fprintf(a.stderr, "\r%s measured ", plural.Count(len(all), "link"))
		}
		return nil
	})
	if bar {
		fmt.Fprintln(a.stderr)
	}
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(a.stdout, all)
	} else {
		err = deploy.ShowMeasured(a.stdout, all, of)
	}
	if err == nil && missed+untried > 0 {
		return errMissed
	}
	return err
}

// first returns the first argument, or "".
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
