package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	library "weft/labs"
	"weft/orchestrator/catalogue"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/results/table"
)

// labFlags are the flags of every command that reads lab files and may change them.
type labFlags struct {
	lab.Options
	builtIn bool           // only labs inside the program, no files
	cmd     *cobra.Command // prints what else a name may mean; nil: nobody does
}

// register adds the flags to a command.
func (f *labFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.cmd = cmd
	setFlag(flags, &f.Set)
	flags.StringVar(&f.Engine.Kind, "engine", "", "auto, sim, emu or both (default the lab's, else auto)")
}

// setFlag adds --set.
func setFlag(f *pflag.FlagSet, set *[]string) {
	f.StringArrayVar(set, "set", nil, "replace a value of the lab, as in --set topology.k=8 (repeatable)")
}

// runtimeFlag adds --runtime.
func runtimeFlag(f *pflag.FlagSet, o *lab.EngineOptions) {
	f.StringVar(&o.Runtime, "runtime", "", "auto, namespace or docker: where emulated nodes run")
}

// datapathFlag adds --datapath.
func datapathFlag(f *pflag.FlagSet, o *lab.EngineOptions, usage string) {
	f.StringVar(&o.Datapath, "datapath", "", usage)
}

// dilationFlag adds --dilation.
func dilationFlag(f *pflag.FlagSet, o *lab.EngineOptions) {
	f.StringVar(&o.Dilation, "dilation", "", "auto or a number from 1: by how much emulation is slower than lab time")
}

// labsCommand returns weft labs, which lists the labs inside the program.
func (a *app) labsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "labs [WORD]", Short: "list the built-in labs, which need no file",
		Long: `List the labs that come with Weft: the name of each and what it is about. They are inside the
program, so that weft run pc4/incast works without a checkout. With a word, list only labs that have
it in their path, name or description.`,
		Example: "  weft labs\n  weft labs incast\n  weft run pc4/incast --engine sim",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all := catalogue.List(library.Files)
			word := strings.ToLower(first(args))
			all = slices.DeleteFunc(all, func(e catalogue.Entry) bool {
				return !strings.Contains(strings.ToLower(e.Lab+"\n"+e.Name+"\n"+e.About), word)
			})
			if len(all) == 0 {
				return usagef("no lab has %q in its path, name or description; weft labs lists all", args[0])
			}
			if asJSON {
				return writeJSON(a.stdout, all)
			}
			paths, about := table.Column{Name: "lab"}, table.Column{Name: "about"}
			for _, e := range all {
				paths.Cells = append(paths.Cells, table.Left(e.Lab))
				about.Cells = append(about.Cells, table.Left(e.About))
			}
			return a.paged(func(w io.Writer) error {
				return table.Columns(w, []table.Column{paths, about}, "--json has all", style(a.stdout))
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// load reads and checks lab files. The problems of all of them are one lab.Problems.
func (f *labFlags) load(names []string) ([]labfile.File, error) {
	var files []labfile.File
	var problems lab.Problems
	for _, name := range names {
		one, err := f.loadOne(name)
		var ps lab.Problems
		switch {
		case errors.As(err, &ps):
			problems = append(problems, ps...)
		case err != nil:
			return nil, err
		default:
			files = append(files, one)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return files, nil
}

// loadOne reads and checks one lab file.
func (f *labFlags) loadOne(name string) (labfile.File, error) {
	src, err := labfile.Open(name, f.builtIn)
	if err != nil {
		return labfile.File{}, usageError{err}
	}
	if src.Note != "" && f.cmd != nil {
		fmt.Fprintln(f.cmd.ErrOrStderr(), "note: "+src.Note)
	}
	return labfile.Load(src, f.Options)
}
