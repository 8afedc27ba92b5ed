package inputs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"weft/collectives/graph"
	"weft/inputs/chakra"
	"weft/inputs/flows"
	"weft/inputs/goal"
	"weft/inputs/kineto"
	"weft/inputs/msccl"
	"weft/inputs/source"
	"weft/inputs/topologies"
	"weft/internal/natural"
)

// Names of the formats of jobs, as a lab file writes them.
const (
	Flows  = "flows"
	GOAL   = "goal"
	Chakra = "chakra"
	Kineto = "kineto"
	MSCCL  = "msccl"
)

// Options says how to read a job.
type Options struct {
	Format string  // "": told from the content
	Scale  float64 // of the time of computations; 0: 1
	Ranks  int     // ranks that do alike if there is one trace for all; 0: the files say
	Folder string  // of the file system, as errors name it, with a slash; "": they do not
}

// format is the registration of a format.
type format struct {
	name  string
	looks func(head []byte) bool // whether a file begins like one of the format
	read  func(file string, r io.Reader) (*graph.Graph, error)
	// readAll reads the files of a folder, one for each rank, in order; nil: a job is one file.
	readAll func(files []string, ranks int, open func(string) (io.ReadCloser, error)) (*graph.Graph, error)
}

// formats registers all formats.
var formats = []format{
	{name: Flows, looks: flows.Looks, read: func(file string, r io.Reader) (*graph.Graph, error) {
		l, err := flows.Parse(file, r)
		if err != nil {
			return nil, err
		}
		return l.Graph()
	}},
	{name: GOAL, looks: goal.Looks, read: goal.Parse},
	{name: Chakra, looks: chakra.Looks, readAll: chakra.Parse},
	{name: Kineto, looks: kineto.Looks, readAll: kineto.Parse},
	{name: MSCCL, looks: msccl.Looks, read: func(file string, r io.Reader) (*graph.Graph, error) {
		if a, err := msccl.Parse(file, r); err != nil {
			return nil, err
		} else if err := a.Prove(); err != nil {
			return nil, err
		}
		return nil, &graph.Error{At: file, Err: errors.New("an algorithm for a collective of any size, which is " +
			"correct, and no job; workload.trace runs it with a size")}
	}},
}

// ReadFlows reads a file of flows.
func ReadFlows(files fs.FS, name string) (_ *flows.List, err error) {
	r, err := source.Open(files, name, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return flows.Parse(name, r)
}

// ReadAlgorithm reads an algorithm of a collective.
func ReadAlgorithm(files fs.FS, name string) (_ *msccl.Algorithm, err error) {
	r, err := source.Open(files, name, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return msccl.Parse(name, r)
}

// ErrNetwork is wrapped by the error about a file that is a network, and no job.
var ErrNetwork = errors.New("a network")

// Detect returns the name of the format that a file or a folder has, or "" if it is none of them.
// For a network, the error is an ErrNetwork.
func Detect(files fs.FS, name string) (string, error) {
	name = path.Clean(name)
	info, err := fs.Stat(files, name)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		names, _, err := list(files, name)
		if err != nil {
			return "", err
		}
		name = names[0]
	}
	r, err := source.Open(files, name, name)
	if err != nil {
		return "", err
	}
	f, err := formatOf(name, r.Head, Options{})
	if !errors.Is(err, ErrNetwork) {
		err = nil
	}
	if err = errors.Join(err, r.Close()); err != nil || f == nil {
		return "", err
	}
	return f.name, nil
}

// Formats returns the names of all formats.
func Formats() (names []string) {
	for i := range formats {
		names = append(names, formats[i].name)
	}
	return names
}

var errLink = errors.New("a symbolic link to nothing, or out of the folder; expected a file: copy what it stands for")

// maxFiles bounds the files of a folder.
const maxFiles = 4096

// Read reads a job: a file, or a folder with a file for each rank. It returns the name of its
// format.
func Read(files fs.FS, name string, o Options) (*graph.Graph, string, error) {
	name = path.Clean(name)
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, "", err
	}
	var g *graph.Graph
	var f *format
	if info.IsDir() {
		g, f, err = readFolder(files, name, o)
	} else {
		g, f, err = readFile(files, name, o)
	}
	if err != nil {
		return nil, "", err
	}
	if o.Scale > 0 && o.Scale != 1 {
		g.Scale(o.Scale)
	}
	return g, f.name, nil
}

// formatOf returns the format of a file that begins with head.
func formatOf(file string, head []byte, o Options) (*format, error) {
	for i := range formats {
		if f := &formats[i]; o.Format == f.name || o.Format == "" && f.looks(head) {
			return f, nil
		}
	}
	if o.Format != "" {
		return nil, fmt.Errorf("format %q is unknown; expected one of %s", o.Format, strings.Join(Formats(), ", "))
	}
	if len(head) == 0 {
		return nil, graph.Errorf(file, 1, "an empty file; expected a job")
	}
	if network := topologies.Detect(file, head); network != "" {
		return nil, graph.Errorf(file, 1, "%w in the format %s; topology.import reads it", ErrNetwork, network)
	}
	if bytes.Contains(head, []byte("collective,")) {
		return nil, graph.Errorf(file, 1, "no job, but collectives one after another; "+
			"workload: [{trace: %s}] runs them", path.Base(file))
	}
	return nil, graph.Errorf(file, 1, "no known format of jobs begins so; expected one of %s",
		strings.Join(Formats(), ", "))
}

func readFile(files fs.FS, name string, o Options) (_ *graph.Graph, _ *format, err error) {
	shown := o.Folder + name
	r, err := source.Open(files, name, shown)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f, err := formatOf(shown, r.Head, o)
	if err != nil {
		return nil, nil, err
	}
	if f.read == nil {
		g, err := f.readAll([]string{shown}, o.Ranks, func(string) (io.ReadCloser, error) {
			return io.NopCloser(r), nil // closed above
		})
		return g, f, err
	}
	g, err := f.read(shown, r)
	return g, f, err
}

// list returns the files of a folder, by the numbers in their names, and what else is in it.
func list(files fs.FS, name string) (names, others []string, err error) {
	entries, err := fs.ReadDir(files, name)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		file := path.Join(name, e.Name())
		info, err := fs.Stat(files, file)
		switch {
		case e.Name()[0] == '.':
		case err != nil && e.Type()&fs.ModeSymlink != 0:
			return nil, nil, &graph.Error{At: file, Err: errLink}
		case err == nil && info.Mode().IsRegular():
			names = append(names, file)
		default:
			others = append(others, file)
		}
	}
	if len(names) == 0 || len(names) > maxFiles {
		return nil, nil, &graph.Error{At: name, Err: fmt.Errorf("a folder with %d files; expected one for each rank, "+
			"at most %d", len(names), maxFiles)}
	}
	slices.SortFunc(names, natural.Compare)
	slices.SortStableFunc(names, func(a, b string) int { return aside(a) - aside(b) })
	return names, others, nil
}

func readFolder(files fs.FS, name string, o Options) (*graph.Graph, *format, error) {
	names, others, err := list(files, name)
	if err != nil {
		return nil, nil, err
	}
	first, err := source.Open(files, names[0], o.Folder+names[0])
	if err != nil {
		return nil, nil, err
	}
	f, err := formatOf(o.Folder+names[0], first.Head, o)
	if err != nil && len(names) > 1 {
		err = fmt.Errorf("%w; a job's folder has its files and no others", err)
	}
	if err = errors.Join(err, first.Close()); err != nil {
		return nil, nil, err
	}
	if f.readAll == nil {
		if len(names) == 1 {
			return readFile(files, names[0], o)
		}
		return nil, nil, &graph.Error{At: o.Folder + name, Err: fmt.Errorf("a folder of %d files that begin like %s, "+
			"of which each is a job; name one of them", len(names), f.name)}
	}
	for i := range names {
		names[i] = o.Folder + names[i]
	}
	g, err := f.readAll(names, o.Ranks, func(file string) (io.ReadCloser, error) {
		return source.Open(files, strings.TrimPrefix(file, o.Folder), file)
	})
	if err == nil && len(others) > 0 {
		g.Notes.AddAt("what is no file", func() string { return o.Folder + others[0] })
	}
	return g, f, err
}

// aside returns 1 for a file beside the traces of ranks, 0 for others.
func aside(name string) int {
	if path.Base(name) == chakra.GroupsFile {
		return 1
	}
	return 0
}
