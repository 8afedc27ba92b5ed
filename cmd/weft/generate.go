package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
)

// generated is what weft generate writes into a lab file.
type generated struct {
	name, rate, delay, mtu, transport, collective, size, ranks string
}

// sizes are the flags that describe the size of each kind of topology, with what they default to.
var sizes = []struct {
	kind  string
	flags []string // name=default; a key of the lab file is the flag with _ for -
}{
	{"fat-tree", []string{"k=4"}},
	{"leaf-spine", []string{"leaves=4", "spines=2", "hosts-per-leaf=4", "oversubscription="}},
	{"dumbbell", []string{"hosts=4"}},
	{"star", []string{"hosts=8"}},
}

func (a *app) generateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "print a lab file to start from",
		Long: "Print a lab file to start from: a topology of a given size, a transport and a collective, each with the keys that\n" +
			"are changed most. What is not written has the default that weft explain shows.",
		Example: "  weft generate fat-tree --k 8 --transport roce\n  weft generate leaf-spine --leaves 2 --spines 2 --rate 400Gbps --collective all-to-all",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("%q is no topology; expected fat-tree, leaf-spine, dumbbell or star", args[0])
			}
			return usagef("expected a topology: fat-tree, leaf-spine, dumbbell or star")
		},
	}
	for _, s := range sizes {
		cmd.AddCommand(a.generateKind(s.kind, s.flags))
	}
	return cmd
}

// generateKind is weft generate for one kind of topology.
func (a *app) generateKind(kind string, keys []string) *cobra.Command {
	var g generated
	cmd := &cobra.Command{
		Use: kind, Short: "print a lab with a " + kind + " network", Args: cobra.NoArgs,
		Example: "  weft generate " + kind,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := g.text(kind, keys, func(name string) string { return cmd.Flags().Lookup(name).Value.String() })
			labs, err := lab.Parse("generated", []byte(text), lab.Options{})
			if err == nil {
				if problems := orchestrate.Check(labs); len(problems) > 0 {
					err = problems
				}
			}
			if err != nil {
				return fromFlags(err)
			}
			_, err = fmt.Fprint(a.stdout, text)
			return err
		},
	}
	f := cmd.Flags()
	for _, k := range keys {
		name, value, _ := strings.Cut(k, "=")
		f.String(name, value, "topology."+strings.ReplaceAll(name, "-", "_"))
	}
	f.StringVar(&g.name, "name", "my-"+kind, "name of the lab")
	f.StringVar(&g.rate, "rate", "100Gbps", "rate of every link")
	f.StringVar(&g.delay, "delay", "1us", "propagation delay of every link")
	f.StringVar(&g.mtu, "mtu", "4096", "payload bytes per packet")
	f.StringVar(&g.transport, "transport", "pc4", "pc4, roce, swift, hpcc, strack or spray")
	f.StringVar(&g.collective, "collective", "all-reduce", "all-reduce, all-to-all, incast, ...; none: a lab to deploy")
	f.StringVar(&g.size, "size", "4MB", "size of the collective, as nccl-tests mean it")
	f.StringVar(&g.ranks, "ranks", "all", "all, or how many hosts take part")
	return cmd
}

// text is the lab file. value is that of a flag.
func (g *generated) text(kind string, keys []string, value func(flag string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A %s to start from: weft run FILE runs it, weft deploy FILE leaves it running, weft explain FILE shows\n"+
		"# what every key is that is not here.\nweft: 1\nname: %s\nseed: 1\n\ntopology:\n  kind: %s\n", kind, g.name, kind)
	for _, k := range keys {
		name, _, _ := strings.Cut(k, "=")
		if v := value(name); v != "" {
			fmt.Fprintf(&b, "  %s: %s\n", strings.ReplaceAll(name, "-", "_"), v)
		}
	}
	fmt.Fprintf(&b, "  link: {rate: %s, delay: %s}\n  mtu: %s\n\ntransport:\n  kind: %s\n", g.rate, g.delay, g.mtu, g.transport)
	if g.collective != "none" {
		fmt.Fprintf(&b, "\nworkload:\n  - collective: %s\n    ranks: %s\n    size: %s\n\nexpect:\n  - verified == true\n  - unfinished == 0\n",
			g.collective, g.ranks, g.size)
	}
	return b.String()
}

// fromFlags is what is wrong with a lab that flags describe, without places in a file that nobody has.
func fromFlags(err error) error {
	var problems lab.Problems
	if !errors.As(err, &problems) {
		return usageError{err}
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Path+": "+p.Message)
	}
	return usageError{errors.New(strings.Join(lines, "\n"))}
}
