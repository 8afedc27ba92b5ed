package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
)

// noWork is the value of --collective for a lab without a workload.
const noWork = "none"

// generated holds the flags of weft generate that all kinds of topology have.
type generated struct {
	name, rate, delay, mtu, transport, collective, size, ranks string
}

func (a *app) generateCommand() *cobra.Command {
	kinds := topology.Kinds()
	names := make([]string, len(kinds))
	var list strings.Builder
	for i, k := range kinds {
		names[i] = k.Name
		fmt.Fprintf(&list, "  %-15s %s\n  %-15s  ", k.Name, k.About, "")
		for _, p := range k.Parameters() {
			if p.Value == "" {
				list.WriteString(" [" + flagOf(p) + "]")
				continue
			}
			list.WriteString(" " + flagOf(p) + " " + p.Value)
		}
		list.WriteString("\n")
	}
	expected := "expected a topology: " + orList(names)
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "print a lab file to start from",
		Long: "Print a lab file to start from: a topology of a given size, a transport and a collective, each with the keys that\n" +
			"are changed most. Keys that are not written have the default that weft explain shows.\n\n" +
			"Topologies, their parameters and what these are unless given:\n" + strings.TrimRight(list.String(), "\n"),
		Example: "  weft generate fat-tree --k 8 --transport roce\n  weft generate leaf-spine --leaves 2 --spines 2 --rate 400Gbps --collective all-to-all",
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

// flagOf returns the flag that sets a parameter.
func flagOf(p topology.Parameter) string { return "--" + strings.ReplaceAll(p.Name, "_", "-") }

// orList returns words as a sentence offers them.
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// generateKind returns weft generate for one kind of topology.
func (a *app) generateKind(kind topology.Registration) *cobra.Command {
	var g generated
	example := "  weft generate " + kind.Name
	for _, p := range kind.Parameters() {
		if p.Value != "" {
			example += " " + flagOf(p) + " " + p.Value
		}
	}
	cmd := &cobra.Command{
		Use: kind.Name, Short: "print a lab with a " + kind.Name + " network: " + kind.About, Args: cobra.NoArgs,
		Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sketch, err := kind.Sketch(func(parameter string) string {
				return cmd.Flags().Lookup(strings.ReplaceAll(parameter, "_", "-")).Value.String()
			})
			if err != nil {
				return usageError{err}
			}
			text, err := g.lab(kind.Name, sketch)
			if err != nil {
				return fromFlags(err)
			}
			_, err = fmt.Fprint(a.stdout, text)
			return err
		},
	}
	f := cmd.Flags()
	for _, p := range kind.Parameters() {
		f.String(strings.TrimPrefix(flagOf(p), "--"), p.Value, p.About)
	}
	transports, collectives := lab.TransportKinds(), append(lab.CollectiveKinds(), noWork)
	f.StringVar(&g.name, "name", "my-"+kind.Name, "name of the lab")
	f.StringVar(&g.rate, "rate", "100Gbps", "rate of every link")
	f.StringVar(&g.delay, "delay", "1us", "propagation delay of every link")
	f.StringVar(&g.mtu, "mtu", "4096", "payload bytes per packet")
	f.StringVar(&g.transport, "transport", "pc4", orList(transports))
	f.StringVar(&g.collective, "collective", "all-reduce", orList(collectives)+"; "+noWork+" for a lab to deploy")
	f.StringVar(&g.size, "size", "4MB", "size of the collective, as nccl-tests mean it")
	f.StringVar(&g.ranks, "ranks", "all", "all, or how many hosts take part; of incast and ps, which have one more host to receive, how many send")
	completeWords(cmd, "transport", transports)
	completeWords(cmd, "collective", collectives)
	return cmd
}

// completeWords has a shell complete the value of a flag with words.
func completeWords(cmd *cobra.Command, flag string, words []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, wordsOf(words...))
	if err != nil {
		panic("weft: " + err.Error()) // the flag does not exist
	}
}

// lab returns the text of a valid lab file.
func (g *generated) lab(kind, sketch string) (string, error) {
	var n needs
	n.lossless = transport.FactsOf(g.transport).Lossless
	text := g.text(kind, sketch, n)
	labs, err := parseGenerated(text)
	if n.lossless && err == nil {
		graph, errGraph := topology.Build(labs[0].Topology)
		if errGraph != nil {
			return "", errGraph
		}
		if graph.Circle() != nil { // with PFC, switches could wait for each other forever
			n.upDown = true
		}
	}
	if err == nil {
		n.deep = slices.ContainsFunc(experiment.Outside(labs[0]), func(p lab.Problem) bool { return strings.HasPrefix(p.Path, "queues.ecn.") })
	}
	if n.upDown || n.deep {
		text = g.text(kind, sketch, n)
		labs, err = parseGenerated(text)
	}
	if err != nil {
		return "", err
	}
	if problems := experiment.Check(labs); len(problems) > 0 {
		return "", problems
	}
	return text, nil
}

func parseGenerated(text string) ([]*lab.Lab, error) {
	return lab.Parse("generated", []byte(text), lab.Options{})
}

// needs is what a generated lab has to write so that its transport finds its conditions.
type needs struct {
	lossless bool // PFC
	upDown   bool // routes without a cyclic buffer dependency
	deep     bool // buffers that hold more than the thresholds of marking
}

// text returns the lab file.
func (g *generated) text(kind, sketch string, n needs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A lab with a %s network to start from. weft run FILE runs it, weft deploy FILE leaves it running,\n"+
		"# and weft explain FILE shows the values of all other keys.\nweft: 1\nname: %s\nseed: 1\n\ntopology:\n  kind: %s\n", kind, g.name, kind)
	fmt.Fprintf(&b, "%s  link: {rate: %s, delay: %s}\n  mtu: %s\n", sketch, g.rate, g.delay, g.mtu)
	if n.upDown {
		b.WriteString("  routes: up-down # with PFC, shortest paths could deadlock in this network\n")
	}
	if n.lossless {
		fmt.Fprintf(&b, "\nqueues:\n  pfc: on # %s is made for networks that lose nothing\n", g.transport)
	}
	if n.deep {
		fmt.Fprintf(&b, "\nqueues:\n  buffer: 40bdp # %s slows down by marks, and its switches mark beyond the default buffer\n", g.transport)
	}
	fmt.Fprintf(&b, "\ntransport:\n  kind: %s\n", g.transport)
	if g.collective != noWork {
		fmt.Fprintf(&b, "\nworkload:\n  - collective: %s\n    ranks: %s\n    size: %s\n\nexpect:\n  - verified == true\n  - unfinished == 0\n",
			g.collective, g.ranks, g.size)
	}
	return b.String()
}

// fromFlags returns what is wrong with a lab that flags describe, without positions in a file that nobody has.
func fromFlags(err error) error {
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
