package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/internal/clip"
	"weft/internal/regular"
	"weft/orchestrator/lab"
	"weft/orchestrator/launcher"
)

// programFlags are the flags of weft run about a program on the command line.
type programFlags struct {
	lab.Command
	files []string
}

// register adds the flags.
func (p *programFlags) register(f *pflag.FlagSet) {
	f.StringVar(&p.Hosts, "hosts", "all", "with -- CMD: the hosts that run it, as in h0,h1")
	f.StringVar(&p.Launch, "launch", launcher.Default(), "with -- CMD: how its hosts learn of each other: "+
		strings.Join(launcher.Names(), ", "))
	f.StringVar(&p.Clock, "clock", "lab", "with -- CMD: its clocks, lab (lab time) or real (the machine's)")
	f.StringArrayVarP(&p.Env, "env", "e", nil, "with -- CMD: an environment variable `NAME=VALUE` (repeatable)")
	f.StringArrayVar(&p.files, "file", nil, "with -- CMD: a `FILE` that it reads below /lab (repeatable)")
	f.StringVar(&p.Timeout, "timeout", "", "with -- CMD: end it after this real time, as in 60s (default 600s)")
	f.StringVar(&p.Metrics, "metrics", "", "with -- CMD: a regular expression whose named groups are numbers in its "+
		"output")
}

// command splits the arguments of weft run into labs and a program, and returns nil without one.
func (p *programFlags) command(cmd *cobra.Command, args []string) (labs []string, c *lab.Command, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		for _, name := range programFlagNames {
			if cmd.Flags().Changed(name) {
				return nil, nil, usagef("--%s is about a program; name it: weft run LAB -- CMD", name)
			}
		}
		return args, nil, nil
	}
	labs, p.Args = args[:dash], args[dash:]
	if len(labs) != 1 || len(p.Args) == 0 {
		return nil, nil, usagef("a program runs on the network of one lab: weft run LAB -- CMD")
	}
	if p.Args[0], err = programPath(p.Args[0]); err != nil {
		return nil, nil, err
	}
	for _, name := range p.files {
		text, err := regular.Read(name, maxProgramFile)
		switch {
		case errors.Is(err, regular.ErrTooLarge):
			return nil, nil, usagef("--file %s: it is larger than %d MiB; leave it in the folder of the program, "+
				"which sees that", name, maxProgramFile>>20)
		case err != nil:
			return nil, nil, usagef("--file: %v", err)
		}
		p.Files = append(p.Files, lab.ProgramFile{Name: filepath.Base(name), Text: text})
	}
	p.Given, err = p.given(cmd.Flags())
	return labs, &p.Command, err
}

// programPath returns the absolute path of a program that is named by a path of this machine, since
// nodes have another working directory, and other words as they are.
func programPath(word string) (string, error) {
	if !strings.Contains(word, "/") {
		return word, nil
	}
	info, err := os.Stat(word)
	switch {
	case err != nil:
		return word, nil // it may be of an image
	case info.Mode().IsRegular() && info.Mode()&0o111 == 0:
		return "", usagef("%s may not be run: chmod +x %[1]s, with #!/usr/bin/env python3 or the like in its first "+
			"line if it is a script", clip.Line(word))
	}
	return filepath.Abs(word)
}

// explainLauncher tells after a program failed that it is a launcher, which Weft replaces. weft is
// the command up to the flags. It returns false if the program is no launcher.
func (a *app) explainLauncher(weft, program string) bool {
	kinds := launcher.Replacing(program)
	if len(kinds) > 0 {
		fmt.Fprintf(a.stderr, "weft: %s started all its processes on one host; to have one on each, leave it out: "+
			"%s --launch %s ... -- CMD\n", clip.Line(program), weft, strings.Join(kinds, " or "))
	}
	return len(kinds) > 0
}

// programFlagNames are the names of the flags of register.
var programFlagNames = []string{"hosts", "launch", "clock", "env", "file", "timeout", "metrics"}

// given returns the flags that were set, and the program, with absolute paths.
func (p *programFlags) given(f *pflag.FlagSet) (words []string, err error) {
	for _, name := range programFlagNames {
		if !f.Changed(name) {
			continue
		}
		values := []string{f.Lookup(name).Value.String()}
		switch name {
		case "env":
			values = p.Env
		case "file":
			values = nil
			for _, file := range p.files {
				if file, err = filepath.Abs(file); err != nil {
					return nil, err
				}
				values = append(values, file)
			}
		}
		for _, v := range values {
			words = append(words, "--"+name, v)
		}
	}
	return append(append(words, "--"), p.Args...), nil
}

// readable says how a program reads a file of this machine.
func (p *programFlags) readable(file string) string {
	name := filepath.Base(file)
	for _, f := range p.Files {
		if f.Name == name {
			return "name it /lab/" + name
		}
	}
	return "add --file " + file + ", and name it /lab/" + name
}

// maxProgramFile bounds a file of a program. Our own choice.
const maxProgramFile = 256 << 20
