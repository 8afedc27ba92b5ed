package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/launcher"
	"weft/orchestrator/summary"
	"weft/results/record"
	"weft/units"
)

// outputFile has the output of the programs of hosts. Each line begins with its host.
const outputFile = "output.log"

// Folders of a run's directory: the output of programs, and the files that they read.
const (
	outputFolder = "output"
	filesFolder  = "files"
)

// programs are the programs of a run's workload.
type programs struct {
	x       *experiment.Experiment
	readers []*summary.Reader

	mu    sync.Mutex // guards what follows
	files []*capped  // of output, to be closed
	err   error      // the first failure to write
}

// maxOutput is how much of the output of a program on a host is kept, in bytes: one that prints
// without end must not fill the disk. Ours.
const maxOutput = 1 << 30

// capped is a file that drops what does not fit into maxOutput.
type capped struct {
	*os.File
	size int
	full bool // something was dropped
}

// Write implements io.Writer.
func (c *capped) Write(b []byte) (int, error) {
	if c.full = c.full || c.size+len(b) > maxOutput; c.full {
		return len(b), nil
	}
	n, err := c.File.Write(b)
	c.size += n
	return n, err
}

// warning says that something was dropped; "": nothing was.
func (c *capped) warning() string {
	if !c.full {
		return ""
	}
	return fmt.Sprintf("%s has the first %d GiB of what was printed, and no more", filepath.Base(c.Name()),
		maxOutput>>30)
}

// newPrograms prepares the programs of an experiment in the run's directory: their files, and where
// their output goes, one file for each program and host. shown, unless nil, receives each line too.
func newPrograms(x *experiment.Experiment, spec *emulate.Experiment, dir string,
	shown func(host string, errors bool, line []byte)) (*programs, error) {
	all := &programs{x: x}
	if len(spec.Programs) > 0 {
		file, err := os.Create(filepath.Join(dir, outputFile))
		if err != nil {
			return nil, err
		}
		output := &capped{File: file}
		spec.Processes.Stderr, all.files = output, append(all.files, output)
	}
	for i := range x.Programs {
		if err := all.add(&x.Programs[i], spec, dir, shown); err != nil {
			return nil, errors.Join(err, all.close())
		}
	}
	return all, nil
}

// add prepares a program.
func (all *programs) add(p *experiment.Program, spec *emulate.Experiment, dir string,
	shown func(host string, errors bool, line []byte)) error {
	item := strconv.Itoa(p.Index)
	reader := summary.NewReader(p)
	all.readers = append(all.readers, reader)
	g := emulate.Group{Name: summary.CommandName(p.Args), Image: p.Image, Args: p.Args, Env: p.Env,
		Launch: launcher.Of(p.Launch), LabTime: p.LabTime, Start: p.Begin, Timeout: p.Timeout}
	for _, h := range p.On {
		g.Hosts = append(g.Hosts, int(h))
	}
	if len(p.Files) > 0 {
		folder, err := filepath.Abs(filepath.Join(dir, filesFolder, item))
		if err == nil {
			err = os.MkdirAll(folder, 0o755)
		}
		for i := 0; err == nil && i < len(p.Files); i++ {
			err = writeReadable(filepath.Join(folder, p.Files[i].Base()), p.Files[i].Text)
		}
		if err != nil {
			return err
		}
		g.Folder = folder
	}
	folder := filepath.Join(dir, outputFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	outputs := make([]*capped, len(p.Names))
	for i, host := range p.Names {
		file, err := os.Create(filepath.Join(folder, item+"-"+host+".log"))
		if err != nil {
			return err
		}
		outputs[i] = &capped{File: file}
		all.files = append(all.files, outputs[i])
	}
	g.Line = func(rank int, errors bool, line []byte, at units.Time) {
		reader.Line(rank, line, at) // of both streams: they are shown and kept as one
		_, err := outputs[rank].Write(append(line[:len(line):len(line)], '\n'))
		all.mu.Lock()
		defer all.mu.Unlock()
		if all.err == nil && err != nil {
			all.err = err
		}
		if shown != nil {
			shown(p.Names[rank], errors, line)
		}
	}
	spec.Groups = append(spec.Groups, g)
	return nil
}

// writeReadable writes a file that every user may read and run, whatever the umask: programs have a
// user of their own.
func writeReadable(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(0o755), f.Close())
}

// close closes the files, and returns the first error of writing them.
func (all *programs) close() error {
	err := all.err
	for _, f := range all.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// report adds to an outcome what the programs did. got may lack programs that never began.
func (all *programs) report(got *emulate.Outcome, out *summary.Outcome) {
	for _, f := range all.files {
		if text := f.warning(); text != "" {
			out.Warnings = append(out.Warnings, text)
		}
	}
	out.Carrier = got.Carrier()
	for i := range all.x.Programs {
		p, reader := &all.x.Programs[i], all.readers[i]
		out.Metrics = append(out.Metrics, reader.Rows...)
		for name, n := range reader.Unkept {
			out.Unkeep(name, n)
		}
		out.Warnings = append(out.Warnings, reader.Doubts()...)
		if i >= len(got.Groups) || got.Groups[i].Hosts == nil {
			continue
		}
		is := record.Program{Item: p.Index, Command: summary.CommandName(p.Args), Launch: p.Launch, Clock: "real"}
		if p.LabTime {
			is.Clock = "lab"
		}
		for k := range got.Groups[i].Hosts {
			h := &got.Groups[i].Hosts[k]
			row := record.ProgramHost{Host: h.Host, Exit: h.Exit.Code, Signal: h.Exit.Signal,
				WallS: h.Over.Sub(h.Began).Seconds(), TimeUS: (h.End - h.Begin).Microseconds(), CPUS: h.CPU.Seconds(),
				BusyS: h.Busy.Seconds(), WaitS: h.Waited.Seconds(), Lines: reader.Lines(k)}
			if h.Cut != "" || h.Err != nil || h.Exit.Ended != "" {
				row.Ended = h.How()
			}
			is.Hosts = append(is.Hosts, row)
		}
		out.Programs = append(out.Programs, is)
	}
}
