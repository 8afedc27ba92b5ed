package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/collectives/schedule"
	"weft/orchestrator/benchmark"
	"weft/orchestrator/deploy"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/launcher"
	"weft/orchestrator/topology/render"
	"weft/results/report"
	"weft/results/store"
)

// completer returns the words that the last word of a command line may become.
type completer = cobra.CompletionFunc

// deployed answers completion's questions about deployed labs.
type deployed struct {
	labs  func() ([]string, error)
	state func(lab string) (*deploy.State, error)
}

// complete registers completions for the flags and arguments of all commands. They read directories
// and ask supervisors, and offer nothing if that fails.
func (a *app) complete(root *cobra.Command) {
	d := a.deployed
	if d == nil {
		d = &deployed{labs: deployedLabs, state: func(lab string) (s *deploy.State, err error) {
			err = a.onDeployed(lab, func(h *deploy.Handle) error {
				s, err = h.State()
				return err
			})
			return s, err
		}}
	}
	hosts := func(args []string, _ string) []string { return d.hosts(args[0]) }
	links := func(args []string, _ string) []string { return d.links(args[0]) }
	arguments := map[string][]func(args []string, toComplete string) []string{
		"destroy": {d.names}, "inspect": {d.names}, "events": {d.names},
		"link": {d.names, links, oneOf("down", "up", "set"), linkProperties},
		"node": {d.names, hosts, oneOf("kill", "pause", "resume", "restart")},
	}
	byFlag := map[string]func(lab string) []string{
		"exec": d.programNodes, "capture": func(lab string) []string { return append(d.nodes(lab), d.ports(lab)...) },
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if values := flagValues(cmd, f.Name, d); values != nil {
				if _, known := cmd.GetFlagCompletionFunc(f.Name); !known {
					_ = cmd.RegisterFlagCompletionFunc(f.Name, values) // the flag exists
				}
			}
		})
		if each, ok := arguments[cmd.Name()]; ok && cmd.Parent() == root {
			cmd.ValidArgsFunction = d.completeArguments(each)
		}
		if values, ok := byFlag[cmd.Name()]; ok && cmd.Parent() == root {
			cmd.ValidArgsFunction = func(
				cmd *cobra.Command, args []string, toComplete string,
			) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveDefault // a program and its arguments
				}
				lab, _ := cmd.Flags().GetString("lab") // the flag exists
				return withPrefix(values(lab), toComplete), cobra.ShellCompDirectiveNoFileComp
			}
		}
		if cmd.Parent() != nil && cmd.Parent().Name() == "results" {
			completeRuns(cmd)
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
}

// flagValues returns the completion of a flag's value; nil leaves it to the shell.
func flagValues(cmd *cobra.Command, flag string, d *deployed) completer {
	if cmd.Name() == "deploy" {
		switch flag {
		case "engine":
			return completeFrom("auto", "emu")
		case "datapath":
			return completeFrom(lab.DatapathFabric, lab.DatapathKernel)
		case "kernel":
			return completeFrom("host")
		}
	}
	switch flag {
	case "engine", "runtime", "datapath", "dilation":
		if flag == "engine" {
			flag = "kind"
		}
		return completeFrom(lab.Values("engine." + flag)...)
	case "transport":
		return completeFrom(lab.Values("transport.kind")...)
	case "fail-if":
		return completeFrom(string(report.Worse))
	case "collective":
		if cmd.Name() != "bench" {
			return completeFrom(starterCollectives()...)
		}
		return completeFrom(schedule.Collectives()...)
	case "algorithm":
		return completeFrom(append([]string{"all"}, lab.Values("workload.*.algorithm")...)...)
	case "type":
		return completeFrom(lab.Values("workload.*.type")...)
	case "topology":
		return completeFrom(benchmark.Topologies()...)
	case "kernel":
		return completeFrom("host", "uml")
	case "format":
		if cmd.Name() == "graph" {
			return completeFrom(render.Formats()...)
		}
		return completeFrom("svg", "png")
	case "launch":
		return completeFrom(launcher.Names()...)
	case "clock":
		return completeFrom("lab", "real")
	case "by":
		return completeSplit
	case "strict":
		return completeFrom("ok", "degraded")
	case "set":
		return completeSetting
	case "lab":
		if cmd.Name() == "bench" {
			return labFiles
		}
		return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return withPrefix(d.names(nil, ""), toComplete), cobra.ShellCompDirectiveNoFileComp
		}
	case "out":
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	}
	return nil
}

// labFiles completes a lab: a file, or one of those inside the program.
func labFiles(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	names := labfile.Complete(toComplete)
	switch {
	case len(names) == 0: // the shell knows more, such as ~
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	case strings.HasSuffix(names[0], "/"):
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeFrom completes a word, or the last of a comma-separated list of words.
func completeFrom(all ...string) completer {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return lastOfList(all, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// lastOfList returns the comma-separated list toComplete with its last word completed from all.
func lastOfList(all []string, toComplete string) (out []string) {
	before := toComplete[:strings.LastIndexByte(toComplete, ',')+1]
	for _, w := range all {
		out = append(out, before+w)
	}
	return withPrefix(out, toComplete)
}

// completeSetting completes path=value of --set: keys of lab files, with 0 as the index of lists,
// and the words that a value may be.
func completeSetting(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	path, _, valued := strings.Cut(toComplete, "=")
	var out []string
	if valued {
		for _, v := range lab.Values(path) {
			out = append(out, path+"="+v)
		}
		return withPrefix(out, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
	for _, k := range lab.Keys() {
		switch {
		case k.Path == "weft" || strings.HasPrefix(k.Path, "sweep"):
		case !k.Section || len(k.Values) > 0:
			out = append(out, strings.ReplaceAll(k.Path, "*", "0")+"=\t"+k.About)
		}
	}
	return withPrefix(out, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeSplit completes setting=A,B of weft results compare SWEEP --by with what the sweep
// varies.
func completeSplit(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) != 1 {
		return nil, directive
	}
	root, _ := cmd.Flags().GetString("out") // the flag exists
	found, _ := store.Find(root, args[0])   // none after an error
	varied := map[string][]string{}
	for _, dir := range found.Runs {
		m, err := store.ReadManifest(dir)
		if err != nil {
			continue
		}
		for path, v := range m.Point {
			if value := fmt.Sprint(v); !slices.Contains(varied[path], value) {
				varied[path] = append(varied[path], value)
			}
		}
	}
	path, chosen, valued := strings.Cut(toComplete, "=")
	if !valued {
		return withPrefix(slices.Sorted(maps.Keys(varied)), toComplete), directive
	}
	var out []string
	for _, list := range lastOfList(varied[path], chosen) {
		out = append(out, path+"="+list)
	}
	return out, directive
}

// completeArguments completes each argument by its position, the first with the deployed labs. The
// command has --lab, and the only lab may be left out.
func (d *deployed) completeArguments(each []func(args []string, toComplete string) []string) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		lab, _ := cmd.Flags().GetString("lab") // the flag exists
		var more []string
		if labs := d.names(nil, ""); lab == "" && len(labs) == 1 && len(each) > 1 {
			if len(args) == 0 {
				more = each[1](labs, toComplete)
			} else if args[0] != labs[0] {
				lab = labs[0]
			}
		}
		if args = withLab(lab, args); len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out := withPrefix(append(more, each[len(args)](args, toComplete)...), toComplete)
		if len(out) > 0 && strings.HasSuffix(out[0], "=") {
			return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func oneOf(all ...string) func([]string, string) []string {
	return func([]string, string) []string { return all }
}

// linkProperties completes the properties of weft link LAB A-B set.
func linkProperties(args []string, toComplete string) []string {
	if args[2] != "set" {
		return nil
	}
	var keys []string
	for _, key := range deploy.Properties() {
		keys = append(keys, key+"=")
	}
	return lastOfList(keys, toComplete)
}

// withPrefix returns the words that begin with prefix.
func withPrefix(all []string, prefix string) (out []string) {
	for _, w := range all {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	return out
}

// names returns the deployed labs.
func (d *deployed) names([]string, string) []string {
	names, _ := d.labs() // none after an error
	return names
}

// nodes returns the names of the nodes of a deployed lab; "" means the only lab.
func (d *deployed) nodes(lab string) []string {
	return d.nodesIf(lab, func(*deploy.NodeState) bool { return true })
}

// nodesIf returns the names of those nodes of a deployed lab that keep accepts.
func (d *deployed) nodesIf(lab string, keep func(*deploy.NodeState) bool) (out []string) {
	if s, err := d.state(lab); err == nil {
		for i := range s.Nodes {
			if keep(&s.Nodes[i]) {
				out = append(out, s.Nodes[i].Name)
			}
		}
	}
	return out
}

// hosts returns the names of the hosts of a deployed lab: only hosts have a MAC address.
func (d *deployed) hosts(lab string) []string {
	return d.nodesIf(lab, func(n *deploy.NodeState) bool { return n.MAC != "" })
}

// programNodes returns the names of the nodes of a deployed lab that can run programs: hosts, and
// switches that are not modelled.
func (d *deployed) programNodes(lab string) []string {
	return d.nodesIf(lab, func(n *deploy.NodeState) bool { return n.State != "modelled" })
}

// links returns the names of the links of a deployed lab.
func (d *deployed) links(lab string) (out []string) {
	if s, err := d.state(lab); err == nil {
		for _, k := range s.Links {
			out = append(out, k.Name)
		}
	}
	return out
}

// ports returns the ports of a deployed lab: both directions of every link.
func (d *deployed) ports(lab string) (out []string) {
	if s, err := d.state(lab); err == nil {
		for _, k := range s.Links {
			out = append(out, k.A+"->"+k.B, k.B+"->"+k.A)
		}
	}
	return out
}

// completeRuns completes the arguments of weft results from the directory of runs: labs and, after
// lab/, its runs and sweeps.
func completeRuns(cmd *cobra.Command) {
	after := cmd.ValidArgsFunction
	limit := map[string]int{"ls": 1, "show": 1, "compare": 2, "plot": 1 << 20, "export": 1}[cmd.Name()]
	cmd.ValidArgsFunction = func(
		cmd *cobra.Command, args []string, toComplete string,
	) ([]string, cobra.ShellCompDirective) {
		if len(args) >= limit {
			if after != nil {
				out, directive := after(cmd, args, toComplete)
				return withPrefix(out, toComplete), directive
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		root, _ := cmd.Flags().GetString("out") // the flag exists
		var out []string
		one, _, named := strings.Cut(toComplete, "/")
		for _, name := range store.EntryNames(root) {
			switch {
			case !named:
				out = append(out, name)
			case name == one && cmd.Name() != "ls":
				for _, run := range slices.Backward(store.EntryNames(filepath.Join(root, name))) {
					out = append(out, name+"/"+run)
				}
			}
		}
		if out = withPrefix(out, toComplete); len(out) == 0 && cmd.Name() != "ls" {
			return nil, cobra.ShellCompDirectiveDefault // runs may be anywhere
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
