package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weft/collectives/graph"
	"weft/inputs"
	"weft/internal/clip"
	"weft/internal/plural"
	"weft/internal/regular"
	library "weft/labs"
	"weft/orchestrator/labfile"
)

// readJob reads a job that a person named, and compiles it.
func readJob(name string, o inputs.Options) (*graph.Graph, string, error) {
	file := filepath.Clean(name)
	o.Folder = file[:len(file)-len(filepath.Base(file))]
	g, format, err := inputs.Read(labfile.Folder(file), filepath.Base(file), o)
	if inside, ok := strings.CutPrefix(name, "labs/"); ok && errors.Is(err, fs.ErrNotExist) {
		o.Folder = "labs/"
		g, format, err = inputs.Read(library.Files, inside, o) // as labs inside the program are found
	}
	if err == nil && o.Ranks > 0 && o.Ranks != len(g.Ranks) {
		return nil, "", usagef("--ranks %d: %s is a job of %s; a single Chakra trace can be run by several ranks",
			o.Ranks, name, plural.Count(len(g.Ranks), "rank"))
	}
	if err == nil {
		_, _, err = graph.Compile(g)
	}
	if err != nil && g != nil && len(g.Ranks) == 1 && format == inputs.Chakra {
		return nil, "", usagef("%s is the trace of one rank; name the folder of all, or with --ranks 8, eight run it",
			name)
	}
	if err != nil {
		var missing *fs.PathError
		if errors.As(err, &missing) {
			return nil, "", usagef("%s: %v", clip.Line(name), missing.Err)
		}
		return nil, "", usageError{err}
	}
	return g, format, nil
}

// jobFlags adds the flags that say how to read a job.
func jobFlags(cmd *cobra.Command, o *inputs.Options) {
	cmd.Flags().StringVar(&o.Format, "format", "",
		"format of the file: "+plural.Or(inputs.Formats())+" (default by its content)")
	cmd.Flags().IntVar(&o.Ranks, "ranks", 0,
		"chakra: ranks that all run the same trace (default one for each file)")
	_ = cmd.RegisterFlagCompletionFunc("format", completeFrom(inputs.Formats()...)) // the flag exists
}

func (a *app) traceCommand() *cobra.Command {
	var o inputs.Options
	asJSON := false
	cmd := &cobra.Command{
		Use: "trace FILE", Short: "show what is in a trace: ranks, bytes, collectives, critical path",
		Long: `Show what is in a trace: ranks, messages, collectives, computations and the critical path, or what
cannot run. FILE is a file or a folder of any format that workload.trace or workload.flows reads
(docs/inputs.md).`,
		Example: "  weft trace labs/questions/inputs/pair.goal",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if about, ok := algorithm(args[0], o); ok {
				return a.showAlgorithm(about, asJSON)
			}
			g, format, err := readJob(args[0], o)
			if err != nil {
				return err
			}
			if asJSON {
				f := jobFacts{args[0], format, graph.About(g), append([]string{}, g.Notes.Texts()...)}
				f.Collectives = append([]graph.Kinds{}, f.Collectives...)
				return json.NewEncoder(a.stdout).Encode(f)
			}
			_, err = io.WriteString(a.stdout, inputs.Describe(args[0], format, graph.About(g)))
			a.note(g)
			return err
		},
	}
	jobFlags(cmd, &o)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object: times in ps, warnings")
	return cmd
}

// jobFacts is the output of weft trace --json.
type jobFacts struct {
	File   string `json:"file"`
	Format string `json:"format"`
	graph.Facts
	Warnings []string `json:"warnings"`
}

// algorithmFacts is the output of weft trace --json for an algorithm of a collective.
type algorithmFacts struct {
	File       string   `json:"file"`
	Format     string   `json:"format"`
	Name       string   `json:"name"`
	Collective string   `json:"collective"`
	Ranks      int      `json:"ranks"`
	Chunks     int      `json:"chunks"`
	Steps      int      `json:"steps"`
	Warnings   []string `json:"warnings"`
}

// algorithm returns what a file has if it is an algorithm, which is proved. ok is false for other
// files, and for one with an error, which reading it as a job tells.
func algorithm(name string, o inputs.Options) (f algorithmFacts, ok bool) {
	file := filepath.Clean(name)
	files, base := labfile.Folder(file), filepath.Base(file)
	if o.Format == "" {
		o.Format, _ = inputs.Detect(files, base) // an error is that of reading the file
	}
	if o.Format != inputs.MSCCL {
		return f, false
	}
	x, err := inputs.ReadAlgorithm(files, base)
	if err != nil || x.Prove() != nil {
		return f, false
	}
	return algorithmFacts{name, o.Format, x.Name, x.Collective, x.Ranks, x.Chunks(), x.Steps(),
		append([]string{}, x.Notes.Texts()...)}, true
}

// showAlgorithm prints the facts of an algorithm.
func (a *app) showAlgorithm(f algorithmFacts, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(f)
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %s, an algorithm for %s of %s, proved to be correct\n  name    %s\n"+
		"  chunks  %d\n  steps   %d\n  to run  workload: [{trace: %s, size: 64MB}]\n", f.File, f.Format, f.Collective,
		plural.Count(f.Ranks, "rank"), clip.Text(f.Name), f.Chunks, f.Steps, filepath.Base(f.File))
	a.tell(f.Warnings)
	return err
}

// note tells what of a job's files is not used.
func (a *app) note(g *graph.Graph) {
	a.tell(g.Notes.Texts())
}

// tell prints warnings.
func (a *app) tell(warnings []string) {
	for _, text := range warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", text)
	}
}

func (a *app) convertCommand() *cobra.Command {
	var o inputs.Options
	var to string
	var round bool
	cmd := &cobra.Command{
		Use: "convert IN OUT", Short: "convert a trace to another format, unless something would be lost",
		Long: `Write a trace in another format. OUT is x.goal, or for Chakra a new folder x/ with a file for each
rank; the names of the files are printed. What OUT's format cannot express is an error with its place in
IN. OUT is complete or absent.

Chakra counts microseconds and GOAL nanoseconds. --round rounds the times of computations to these units,
keeps each rank's sum within half a unit, and prints how many it rounds.`,
		Example: "  weft convert labs/questions/inputs/pair.goal job/",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if to == "" {
				to = inputs.FormatOf(args[1])
			}
			if to == "" {
				return usagef("%s stands for no format; expected x.goal or a folder such as x/, or --to", args[1])
			}
			g, _, err := readJob(args[0], o)
			if err != nil {
				return err
			}
			if round {
				inputs.Round(g, to)
			}
			names, err := convert(g, to, args[1])
			a.note(g)
			for _, name := range names {
				fmt.Fprintln(a.stdout, name)
			}
			return err
		},
	}
	jobFlags(cmd, &o)
	cmd.Flags().BoolVar(&round, "round", false, "round times that the format of OUT cannot express")
	cmd.Flags().StringVar(&to, "to", "", "format of OUT: "+plural.Or(inputs.Written())+" (default by its name)")
	_ = cmd.RegisterFlagCompletionFunc("to", completeFrom(inputs.Written()...)) // the flag exists
	return cmd
}

// convert writes a job to a file, or to a folder that must be new or empty, and returns the names
// of its files. What it writes gets its name when it is complete.
func convert(g *graph.Graph, format, to string) (names []string, err error) {
	to = filepath.Clean(to)
	if entries, err := os.ReadDir(to); len(entries) > 0 || err == nil && format == inputs.GOAL {
		return nil, usagef("%s is a folder with files; name a new one, or remove it", to)
	}
	if info, err := os.Stat(to); err == nil && !info.IsDir() && (format != inputs.GOAL || !info.Mode().IsRegular()) {
		return nil, usagef("%s is there, and can be no output; name a new one", to)
	}
	temp := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".part") // a killed conversion leaves one at most
	if err := os.RemoveAll(temp); err != nil {
		return nil, err
	}
	if err := os.Mkdir(temp, 0o777); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	err = inputs.Write(g, format, func(name string) (io.WriteCloser, error) {
		names = append(names, filepath.Join(to, name))
		return regular.OpenOutput(filepath.Join(temp, cmp.Or(name, "job")), os.O_EXCL)
	})
	if err != nil {
		return nil, usageError{err}
	}
	from := temp
	if format == inputs.GOAL {
		from = filepath.Join(temp, "job")
	}
	if err := os.Rename(from, to); err != nil {
		return nil, err
	}
	return names, nil
}
