package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/orchestrator/deploy"
	"weft/orchestrator/emulate"
)

func (a *app) linkCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "link [LAB] A-B down|up|set KEY=VALUE,...",
		Short: "change a link of a deployed lab",
		Long: `Change both directions of a link of a deployed lab at once: take it down, bring it up, or set
properties. Keys and values are those of a link in a lab file: rate, delay, loss, bit_errors,
duplicate, reorder, reorder_by, jitter. Other properties stay as they are. If one lab is deployed, or
with --lab NAME, leave out the argument LAB.`,
		Example: `  weft link edge0-agg1 down
  weft link quickstart edge0-agg1 up
  weft link quickstart h0-edge0 set delay=5us,loss=0.1%
  weft link quickstart h0-edge0 set duplicate=1%,reorder=5%,reorder_by=20us`,
		RunE: func(_ *cobra.Command, args []string) error {
			n := 2 // arguments without the lab: a link, and what to do with it
			if len(args) > 2 && args[len(args)-2] == "set" {
				n = 3
			}
			if len(args) < n || len(args) > n+1 {
				return usagef("expected a link, and down, up, or set and a list, such as: " +
					"weft link h0-edge0 set delay=5us,loss=0.1%%")
			}
			lab, err := labArgument(name, args[:len(args)-n])
			if err != nil {
				return err
			}
			k, err := linkChange(args[len(args)-n:])
			if err != nil {
				return err
			}
			return a.onDeployed(lab, func(h *deploy.Handle) error { return h.Link(k) })
		},
	}
	deployedFlag(cmd, &name)
	return cmd
}

// linkChange returns the change of a link by its name and what to do with it.
func linkChange(args []string) (deploy.Link, error) {
	if len(args) == 0 {
		return deploy.Link{}, usagef("expected a link, and down, up or set")
	}
	k := deploy.Link{Link: args[0]}
	switch what := strings.Join(args[1:min(len(args), 2)], ""); {
	case what == "down" && len(args) == 2:
		k.Up = new(false)
	case what == "up" && len(args) == 2:
		k.Up = new(true)
	case what == "set" && len(args) == 3:
		k.Set = args[2]
		if err := k.Check(); err != nil {
			return k, usageError{err}
		}
	default:
		return k, usagef("unknown change %q; expected down, up, or set and a list such as delay=5us,loss=0.1%%",
			strings.Join(args[1:], " "))
	}
	return k, nil
}

// nodeChange returns the change of a node by its name and the action.
func nodeChange(args []string) (deploy.Node, error) {
	if len(args) != 2 {
		return deploy.Node{}, usagef("expected a node, and kill, pause, resume or restart")
	}
	switch args[1] {
	case deploy.NodeKill, deploy.NodePause, deploy.NodeResume, deploy.NodeRestart:
		return deploy.Node{Node: args[0], Action: args[1]}, nil
	}
	return deploy.Node{}, usagef("unknown action %q; expected kill, pause, resume or restart", args[1])
}

// deployedFlag adds --lab, which names a deployed lab.
func deployedFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "lab", "", "name or file of the lab (default the only deployed lab)")
}

// withLab returns the arguments with the lab of --lab, if it is set, before them.
func withLab(name string, args []string) []string {
	if name == "" {
		return args
	}
	return slices.Insert(slices.Clone(args), 0, name)
}

// labArgument returns the lab that --lab or the only argument names; empty: neither.
func labArgument(name string, args []string) (string, error) {
	if args = withLab(name, args); len(args) > 1 {
		return "", usagef("--lab %s and the argument %s: name one lab", args[0], args[1])
	}
	return first(args), nil
}

// nodeCommand returns weft node, which changes a node. Without arguments it is the process of a
// node itself: see insideCommands.
func (a *app) nodeCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "node [LAB] NODE kill|pause|resume|restart",
		Short: "kill, pause, resume or restart a node of a deployed lab",
		Long: `Kill a node with all programs in it, pause it so that it neither sends nor answers, resume it, or
restart it with a fresh network. If one lab is deployed, or with --lab NAME, leave out the argument
LAB.`,
		Example: "  weft node h3 kill\n  weft node quickstart h3 restart",
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && name == "":
				return inside("node", emulate.NodeProcess)
			case len(args) < 2 || len(args) > 3:
				return usagef("expected a node, and kill, pause, resume or restart, such as: weft node h3 kill")
			}
			lab, err := labArgument(name, args[:len(args)-2])
			if err != nil {
				return err
			}
			n, err := nodeChange(args[len(args)-2:])
			if err != nil {
				return err
			}
			return a.onDeployed(lab, func(h *deploy.Handle) error { return h.Node(n) })
		},
	}
	deployedFlag(cmd, &name)
	return cmd
}

func (a *app) eventsCommand() *cobra.Command {
	var follow bool
	var name string
	cmd := &cobra.Command{
		Use:     "events [LAB]",
		Short:   "print the events of a deployed lab as JSON lines",
		Long:    "Print the events of a deployed lab as JSON lines: what was deployed, changed, killed or restarted.",
		Example: "  weft events\n  weft events quickstart --follow",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := json.NewEncoder(a.stdout)
			out.SetEscapeHTML(false)
			lab, err := labArgument(name, args)
			if err != nil {
				return err
			}
			return a.onDeployed(lab, func(h *deploy.Handle) error {
				err := h.Events(cmd.Context(), follow, func(e deploy.Event) error { return out.Encode(e) })
				if cmd.Context().Err() != nil {
					return exitCode(exitInterrupted)
				}
				return err
			})
		},
	}
	deployedFlag(cmd, &name)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue until the lab is destroyed or Ctrl-C")
	return cmd
}
