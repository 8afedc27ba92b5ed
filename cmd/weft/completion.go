package main

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/collectives/schedule"
	library "weft/labs"
	"weft/orchestrator/benchmark"
	"weft/orchestrator/catalogue"
	"weft/orchestrator/deploy"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology/render"
	"weft/results/store"
)

// completer lists what a word of a command line may be.
type completer = cobra.CompletionFunc

// live answers completion's questions about deployed labs.
type live struct {
	labs  func() ([]string, error)
	state func(lab string) (*deploy.State, error)
}

// complete registers completions for the flags and arguments of all commands. They read directories
// and ask supervisors, and offer nothing where that fails.
func (a *app) complete(root *cobra.Command) {
	l := a.live
	if l == nil {
		l = &live{labs: deployedLabs, state: func(lab string) (s *deploy.State, err error) {
			err = a.onDeployed(lab, func(h *deploy.Handle) error {
				s, err = h.State()
				return err
			})
			return s, err
		}}
	}
	node := func(_ []string, flag string) []string { return l.nodes(flag) }
	arguments := map[string][]func(args []string, toComplete string) []string{
		"destroy": {l.names}, "inspect": {l.names}, "events": {l.names},
		"link": {l.names, l.links, fixed("down", "up", "set"), settings}, "node": {l.names, l.nodesOf, fixed("kill", "pause", "resume", "restart")},
	}
	byFlag := map[string]func(args []string, lab string) []string{"exec": node, "capture": func(_ []string, lab string) []string {
		return append(l.nodes(lab), l.ports(lab)...)
	}}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if values := a.flagValues(cmd, f, l); values != nil {
				if _, known := cmd.GetFlagCompletionFunc(f.Name); !known {
					_ = cmd.RegisterFlagCompletionFunc(f.Name, values) // the flag is there
				}
			}
		})
		if each, ok := arguments[cmd.Name()]; ok && cmd.Parent() == root {
			cmd.ValidArgsFunction = positions(each)
		}
		if values, ok := byFlag[cmd.Name()]; ok && cmd.Parent() == root {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveDefault // a program and its arguments
				}
				lab, _ := cmd.Flags().GetString("lab") // it has one
				return begin(values(args, lab), toComplete), cobra.ShellCompDirectiveNoFileComp
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
func (a *app) flagValues(cmd *cobra.Command, f *pflag.Flag, l *live) completer {
	switch f.Name {
	case "engine", "runtime", "datapath", "dilation":
		return wordsOf(lab.Values(map[string]string{"engine": "engine.kind", "runtime": "engine.runtime", "datapath": "engine.datapath", "dilation": "engine.dilation"}[f.Name])...)
	case "transport":
		return wordsOf(lab.Values("transport.kind")...)
	case "collective":
		return wordsOf(schedule.Collectives()...)
	case "algorithm":
		return wordsOf(append([]string{"all"}, lab.Values("workload.*.algorithm")...)...)
	case "type":
		return wordsOf(lab.Values("workload.*.type")...)
	case "topology":
		return wordsOf(benchmark.Topologies()...)
	case "kernel":
		if cmd.Name() == "deploy" {
			return wordsOf("host")
		}
		return wordsOf("host", "uml")
	case "format":
		if cmd.Name() == "graph" {
			return wordsOf(render.Formats()...)
		}
		return wordsOf("svg", "png")
	case "strict":
		return wordsOf("ok", "degraded")
	case "set":
		return settable
	case "lab":
		if cmd.Name() == "bench" {
			return labFiles
		}
		return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return begin(l.names(nil, ""), toComplete), cobra.ShellCompDirectiveNoFileComp
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
	dir := toComplete[:strings.LastIndexByte(toComplete, '/')+1]
	var offers []string
	offer := func(files fs.FS, at string) {
		entries, _ := fs.ReadDir(files, at) // what cannot be read has nothing to offer
		for _, e := range entries {
			info, err := fs.Stat(files, path.Join(at, e.Name())) // of what a link leads to
			switch {
			case err != nil || e.Name()[0] == '.' && dir == toComplete:
			case info.IsDir():
				offers = append(offers, dir+e.Name()+"/")
			case slices.Contains([]string{".yaml", ".yml"}, path.Ext(e.Name())):
				offers = append(offers, dir+e.Name())
			}
		}
	}
	offer(os.DirFS(cmp.Or(dir, ".")), ".")
	if inside, ok := strings.CutPrefix(dir, "labs/"); ok {
		offer(library.Files, path.Clean(inside))
	}
	if dir == "" && toComplete != "" { // by their names, which are many
		for _, e := range catalogue.List(library.Files) {
			offers = append(offers, e.Name)
		}
	}
	if dir == "" {
		offers = append(offers, "labs/")
		names, _ := fs.Glob(library.Files, "*.yaml") // a good pattern
		for _, name := range names {
			offers = append(offers, strings.TrimSuffix(name, ".yaml"))
		}
	}
	slices.Sort(offers)
	offers = begin(slices.Compact(offers), toComplete)
	switch {
	case len(offers) == 0: // the shell knows more, such as ~
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	case strings.HasSuffix(offers[0], "/"):
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// wordsOf completes a word, or the last of a comma-separated list of words.
func wordsOf(all ...string) completer {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		before := toComplete[:strings.LastIndexByte(toComplete, ',')+1]
		var out []string
		for _, w := range all {
			out = append(out, before+w)
		}
		return begin(out, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// settable completes path=value of --set: keys of the format, with 0 as the index of lists, and the
// words that a value may be.
func settable(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	path, _, valued := strings.Cut(toComplete, "=")
	var out []string
	if valued {
		for _, v := range lab.Values(path) {
			out = append(out, path+"="+v)
		}
		return begin(out, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
	for _, k := range lab.Keys() {
		switch {
		case k.Path == "weft" || strings.HasPrefix(k.Path, "sweep"):
		case !k.Section || len(k.Values) > 0:
			out = append(out, strings.ReplaceAll(k.Path, "*", "0")+"=\t"+k.About)
		}
	}
	return begin(out, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// positions completes each argument by its position.
func positions(each []func(args []string, toComplete string) []string) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		lab, _ := cmd.Flags().GetString("lab") // all of them have it
		if args = withLab(lab, args); len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out := begin(each[len(args)](args, toComplete), toComplete)
		if len(out) > 0 && strings.HasSuffix(out[0], "=") {
			return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func fixed(all ...string) func([]string, string) []string {
	return func([]string, string) []string { return all }
}

// settings completes the link properties that weft link sets.
func settings(args []string, toComplete string) (out []string) {
	if args[2] != "set" {
		return nil
	}
	before := toComplete[:strings.LastIndexByte(toComplete, ',')+1]
	for _, key := range deploy.Properties() {
		out = append(out, before+key+"=")
	}
	return out
}

// begin returns the words that start with toComplete.
func begin(all []string, toComplete string) []string {
	var out []string
	for _, w := range all {
		if strings.HasPrefix(w, toComplete) {
			out = append(out, w)
		}
	}
	return out
}

// names returns the deployed labs.
func (l *live) names([]string, string) []string {
	names, _ := l.labs() // who cannot be asked has none
	return names
}

// nodes returns the nodes of a deployed lab; "" means the only one.
func (l *live) nodes(lab string) (out []string) {
	if s, err := l.state(lab); err == nil {
		for _, n := range s.Nodes {
			out = append(out, n.Name)
		}
	}
	return out
}

func (l *live) nodesOf(args []string, _ string) []string { return l.nodes(args[0]) }

func (l *live) links(args []string, _ string) (out []string) {
	if s, err := l.state(args[0]); err == nil {
		for _, k := range s.Links {
			out = append(out, k.Name)
		}
	}
	return out
}

// ports returns both directions of every link of a deployed lab.
func (l *live) ports(lab string) (out []string) {
	if s, err := l.state(lab); err == nil {
		for _, k := range s.Links {
			out = append(out, k.A+"->"+k.B, k.B+"->"+k.A)
		}
	}
	return out
}

// completeRuns completes the arguments of weft results from the directory of runs: labs and, once
// one is named, its runs and sweeps.
func completeRuns(cmd *cobra.Command) {
	after := cmd.ValidArgsFunction
	most := map[string]int{"ls": 1, "show": 1, "compare": 2, "plot": 1 << 20, "export": 1}[cmd.Name()]
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			if after != nil {
				out, directive := after(cmd, args, toComplete)
				return begin(out, toComplete), directive
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		root, _ := cmd.Flags().GetString("out") // all of them have it
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
		if out = begin(out, toComplete); len(out) == 0 && cmd.Name() != "ls" {
			return nil, cobra.ShellCompDirectiveDefault // runs may lie anywhere
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
