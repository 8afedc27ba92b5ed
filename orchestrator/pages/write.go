// Package pages writes files for people into the directories of runs and sweeps: the drawing of a
// run's network, charts, and HTML pages.
//
// Input: directories with the results of runs, and summaries. Output: files. Package report turns
// results into pages and charts; this package decides which of them a directory gets, and saves
// them.
//
// Write makes the page of a run and WriteSweep that of a sweep (write.go); paper.go has the parts
// of a paper's page, and network.go draws the network. A chart with nothing to show is left out.
// Writing again replaces what an earlier call wrote.
package pages

import (
	"bytes"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"weft/internal/regular"
	"weft/orchestrator/experiment"
	"weft/results/expect"
	"weft/results/frames"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/view"
)

// Names of the files in the directory of a run or a sweep.
const (
	PageFile    = "report.html"
	NetworkFile = "topology.svg"  // the network of a run, drawn by Leave
	ViewFile    = report.ViewFile // the run over time
	PlotsFolder = "plots"
	TableFile   = "table.csv" // of a sweep
)

// maxNetwork is the largest accepted drawing of a network in bytes, far larger than any that is
// drawn.
const maxNetwork = 64 << 20

// maxView is the largest view.html in bytes that Write leaves; weft view shows larger runs. Our own
// value: a browser opens it at once.
const maxView = 8 << 20

// writeView writes view.html of a run that has frames, unless it would be too large, and reports
// whether it did. kept is what is in memory; nil: it is read.
func writeView(r *report.Run, kept *view.Source) (bool, error) {
	var m *view.Model
	var err error
	if kept != nil {
		m, err = view.Make(r.Dir, r.Manifest, r.Summary, *kept)
	} else {
		m, err = view.Load(r.Dir)
	}
	if errors.Is(err, view.ErrNoFrames) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, err := view.Page(m.Name(), m.About, []*view.Model{m})
	if err != nil || len(text) > maxView {
		return false, err
	}
	return true, write(filepath.Join(r.Dir, ViewFile), text)
}

// Write writes report.html and view.html of a run directory and replaces existing ones. kept is
// what the run that has just ended has in memory; nil: everything is read.
func Write(dir string, kept *view.Source) error {
	r, err := report.Load(dir)
	if err != nil {
		return err
	}
	if r.View, err = writeView(r, kept); err != nil {
		return err
	}
	network, err := regular.Read(filepath.Join(dir, NetworkFile), maxNetwork)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p, err := r.Page(network)
	if err != nil {
		return err
	}
	return Save(filepath.Join(dir, PageFile), p)
}

// Live returns the model of a run in progress: its frames so far, and its connections.
func Live(x *experiment.Experiment, n *record.NetworkMap, all []frames.Frame) *view.Model {
	m := view.NewModel(x.Lab.Name, n, all)
	m.Conns = make([]*view.Conn, min(len(x.Conns), view.MaxConns))
	for i := range m.Conns {
		c := &x.Conns[i]
		m.Conns[i] = &view.Conn{Src: x.Graph.Nodes[c.Src].Name, Dst: x.Graph.Nodes[c.Dst].Name}
	}
	if first, ok := x.Workload.Begins(); ok {
		m.BeginUS = first.Microseconds()
	}
	return m
}

// Save writes a page to a file.
func Save(path string, p *report.Page) error {
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return err
	}
	return write(path, b.Bytes())
}

// write writes a file that a disk without space does not leave cut short.
func write(path string, content []byte) error {
	err := regular.WriteOutput(path, content)
	if err == nil {
		return nil
	}
	if info, e := os.Lstat(path); e == nil && info.Mode().IsRegular() {
		_ = os.Remove(path) // the first error matters more
	}
	return err
}

// Draw writes the charts of a run into its plots/, as svg or png, and a new report.html. It returns
// the files that it wrote.
func Draw(dir, format string) (written []string, err error) {
	r, err := report.Load(dir)
	if err != nil {
		return nil, err
	}
	figures, err := r.Figures()
	if err != nil {
		return nil, err
	}
	for _, f := range figures {
		path, ok, err := draw(f, filepath.Join(dir, PlotsFolder), f.Name, format)
		if err != nil {
			return written, err
		}
		if ok {
			written = append(written, path)
		}
	}
	if err := Write(dir, nil); err != nil {
		return written, err
	}
	return append(written, filepath.Join(dir, PageFile)), nil
}

// draw writes a chart as an SVG or a PNG. ok is false if it has nothing to show and is left out.
func draw(d report.Drawing, folder, name, format string) (path string, ok bool, err error) {
	var b []byte
	if format == "png" {
		b, err = d.PNG()
	} else {
		b, err = d.SVG()
	}
	if errors.Is(err, plot.ErrEmpty) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", false, err
	}
	path = filepath.Join(folder, name+"."+format)
	return path, true, write(path, b)
}

// WriteSweep writes the results of all points of a sweep into a directory: sweep.json, a table,
// charts, and a page. head has what identifies the sweep.
func WriteSweep(head record.Sweep, dir string, runs []*record.Summary, points []expect.Point, across []record.Expect,
) error {
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(report.CSV(runs)); err != nil {
		return err
	}
	err := errors.Join(store.WriteSweep(dir, report.SweepRecord(head, runs, across)),
		write(filepath.Join(dir, TableFile), b.Bytes()))
	if err != nil {
		return err
	}
	left := slices.IndexFunc(runs, func(s *record.Summary) bool {
		return s.Run != "" && store.IsRun(s.Run)
	})
	if left < 0 {
		return errors.New("no point of the sweep left a run")
	}
	first, err := report.Load(runs[left].Run)
	if err != nil {
		return err
	}
	charts, err := report.Charts(first, points, across)
	if err != nil {
		return err
	}
	for _, c := range charts {
		if _, _, err := draw(c, filepath.Join(dir, PlotsFolder), c.Name, "svg"); err != nil {
			return err
		}
	}
	p, err := report.SweepPage(head.Version, first, runs, across, charts, func(run string) bool {
		_, err := os.Stat(filepath.Join(run, ViewFile))
		return err == nil
	})
	if err != nil {
		return err
	}
	return Save(filepath.Join(dir, PageFile), p)
}
