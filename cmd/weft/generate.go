package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"weft/collectives/schedule"
	"weft/internal/plural"
	"weft/orchestrator/lab"
	"weft/orchestrator/starter"
	"weft/orchestrator/topology"
)

func (a *app) generateCommand() *cobra.Command {
	kinds := topology.Kinds()
	names := make([]string, len(kinds))
	var list strings.Builder
	for i, k := range kinds {
		names[i] = k.Name
		fmt.Fprintf(&list, "  %-15s %s\n  %-15s  ", k.Name, k.About, "")
		for _, p := range k.Parameters() {
			if p.Value == "" {
				list.WriteString(" [--" + sizeFlag(k.Name, p.Name) + "]")
				continue
			}
			list.WriteString(" --" + sizeFlag(k.Name, p.Name) + " " + p.Value)
		}
		list.WriteString("\n")
	}
	expected := "expected a topology: " + plural.Or(names)
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "print a lab file to start from",
		Long: `Print a lab file to start from: a topology of a given size, a transport and a collective, each with
the keys that are changed most. Keys that are left out have the defaults that weft explain shows.

Topologies, with their parameters and defaults:
` + strings.TrimRight(list.String(), "\n"),
		Example: `  weft generate fat-tree --k 8 --transport roce
  weft generate leaf-spine --leaves 2 --spines 2 --rate 400Gbps --collective all-to-all`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown topology %q; %s", args[0], expected)
			}
			return usagef("%s", expected)
		},
	}
	for _, k := range kinds {
		cmd.AddCommand(a.generateKind(k))
	}
	return cmd
}

// sizeFlag returns the name of the flag for a size of a kind of topology. If all kinds have a flag
// of that name, the name of the kind goes before it.
func sizeFlag(kind, size string) string {
	name := strings.ReplaceAll(size, "_", "-")
	if everyKind().Flags().Lookup(name) != nil {
		return kind + "-" + name
	}
	return name
}

// everyKind returns a command with the flags that all kinds of topology have.
var everyKind = sync.OnceValue(func() *cobra.Command {
	cmd := new(cobra.Command)
	starterFlags(cmd, new(starter.Lab))
	return cmd
})

// generateKind returns weft generate for one kind of topology.
func (a *app) generateKind(kind topology.Registration) *cobra.Command {
	l := starter.Lab{Kind: kind.Name}
	example := "  weft generate " + kind.Name
	for _, p := range kind.Parameters() {
		if p.Value != "" {
			example += " --" + sizeFlag(kind.Name, p.Name) + " " + p.Value
		}
	}
	cmd := &cobra.Command{
		Use: kind.Name, Short: "print a lab with a " + kind.Name + " network: " + kind.About, Args: cobra.NoArgs,
		Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			l.Sizes, err = kind.Sketch(func(size string) string {
				return cmd.Flags().Lookup(sizeFlag(kind.Name, size)).Value.String()
			})
			if err != nil {
				return usageError{err}
			}
			text, err := l.Text()
			if err != nil {
				return withoutPositions(err)
			}
			_, err = fmt.Fprint(a.stdout, text)
			return err
		},
	}
	for _, p := range kind.Parameters() {
		cmd.Flags().String(sizeFlag(kind.Name, p.Name), p.Value, p.About)
	}
	starterFlags(cmd, &l)
	return cmd
}

// starterCollectives returns the values of --collective.
func starterCollectives() []string { return append(schedule.Collectives(), starter.NoWork) }

// starterFlags adds the flags that all kinds of topology have.
func starterFlags(cmd *cobra.Command, l *starter.Lab) {
	f := cmd.Flags()
	f.StringVar(&l.Name, "name", "my-"+l.Kind, "name of the lab")
	f.StringVar(&l.Rate, "rate", "100Gbps", "rate of every link")
	f.StringVar(&l.Delay, "delay", "1us", "propagation delay of every link")
	f.StringVar(&l.MTU, "mtu", "4096", "payload bytes per packet")
	f.StringVar(&l.Transport, "transport", lab.Default("transport.kind"), plural.Or(lab.Values("transport.kind")))
	f.StringVar(&l.Collective, "collective", "all-reduce",
		plural.Or(starterCollectives())+"; "+starter.NoWork+" makes a lab for weft deploy")
	f.StringVar(&l.Size, "size", "4MB", "size of the collective, as nccl-tests counts it")
	f.StringVar(&l.Ranks, "ranks", "all",
		"number of hosts that take part, or all; for incast and ps the number of senders, beside one receiver")
}

// withoutPositions returns the problems of a lab that flags describe, without positions in a file.
func withoutPositions(err error) error {
	var problems lab.Problems
	if !errors.As(err, &problems) {
		return usageError{err}
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Path+": "+p.Message)
	}
	return usageError{errors.New(strings.Join(slices.Compact(lines), "\n"))}
}
