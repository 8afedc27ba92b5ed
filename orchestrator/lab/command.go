package lab

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"weft/internal/clip"
	"weft/results/record"
)

// Command is a program on the command line. It replaces the workload of a lab, what is expected of
// it, and the transport that it would have used: the lab has the network.
type Command struct {
	Args                                   []string
	Hosts, Launch, Clock, Timeout, Metrics string // as in a lab file; "": the default. Hosts are separated by commas
	Env                                    []string
	Files                                  []ProgramFile

	Given []string // its flags and it as on the command line, with absolute paths, to run it again
}

// commandFlag is the name of the command line's program in messages.
const commandFlag = "-- CMD"

// apply returns the tree of a lab with the program as its workload.
func (c *Command) apply(r *report, root *node) *node {
	at := func(flag string) origin { return origin{flag: flag} }
	text := func(flag, text string) *node { return &node{text: text, at: at(flag)} }
	texts := func(flag string, all []string) *node {
		n := &node{kind: list, at: at(flag)}
		for _, t := range all {
			n.items = append(n.items, text(flag, t))
		}
		return n
	}
	item := mappingAt(at(commandFlag))
	item.add("program", texts(commandFlag, c.Args))
	if hosts := strings.Split(c.Hosts, ","); len(hosts) > 1 || c.Hosts != "" && c.Hosts != "all" {
		item.add("hosts", texts("--hosts", hosts))
	}
	for _, k := range []struct{ name, value string }{{"launch", c.Launch}, {"clock", c.Clock}, {"timeout", c.Timeout},
		{"metrics", c.Metrics}} {
		if k.value != "" {
			item.add(k.name, text("--"+k.name, k.value))
		}
	}
	if len(c.Env) > 0 {
		env := mappingAt(at("--env"))
		for _, e := range c.Env {
			name, value, ok := strings.Cut(e, "=")
			if !ok || slices.Contains(env.names(), name) || strings.ContainsFunc(name, clip.Forbidden) {
				r.add(at("--env "+clip.Text(e)), "", "expected NAME=VALUE, and each name once")
				continue
			}
			env.add(name, text("--env", value))
		}
		item.add("env", env)
	}
	if len(c.Files) > 0 {
		var names []string
		for i := range c.Files {
			names = append(names, c.Files[i].Name)
		}
		item.add("files", texts("--file", names))
	}
	root = root.without("workload").without("expect").without("transport")
	root.add("workload", &node{kind: list, at: at(commandFlag), items: []*node{item}})
	if sweep := root.get("sweep"); sweep != nil && sweep.kind == mapping {
		edited := sweep
		for _, path := range sweep.names() {
			if strings.HasPrefix(path, "workload.") {
				edited = edited.without(path)
			}
		}
		root = root.without("sweep")
		if len(edited.keys) > 0 {
			root.add("sweep", edited)
		}
	}
	return root
}

// noteReplaced notes that a program of the command line does not use the transport of the file.
func (l *Lab) noteReplaced(transport *node) {
	if transport != nil && len(transport.keys) > 0 && l.Sends() == record.Programs {
		l.sections["transport"] = transport.at
		l.notes = append(l.notes, note{"transport", "the program does not use it, but the kernel's TCP or what it " +
			"brings along"})
	}
}

// file returns the content of one of its files.
func (c *Command) file(name string) ([]byte, error) {
	i := slices.IndexFunc(c.Files, func(f ProgramFile) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return c.Files[i].Text, nil
}
