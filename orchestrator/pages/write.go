// Package pages writes what people look at into directories of runs and sweeps: the drawing of a run's network, charts, and pages of
// HTML. What comes in are directories and what package report makes of them; what goes out are files.
package pages

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"weft/internal/regular"
	"weft/results/expect"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
)

// Names of what is written for people into the directory of a run or a sweep.
const (
	PageFile    = "report.html"
	NetworkFile = "topology.svg" // the network of a run, drawn by whoever knows its lab
	PlotsFolder = "plots"
	TableFile   = "table.csv" // of a sweep
)

// maxNetwork is how large a drawing of a network may be, in bytes: far above one of the largest that are drawn.
const maxNetwork = 64 << 20

// Write writes report.html of a run directory, anew if it is there.
func Write(dir string) error {
	r, err := report.Load(dir)
	if err != nil {
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

// Save writes a page to a file.
func Save(path string, p *report.Page) error {
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return err
	}
	return regular.WriteOutput(path, b.Bytes())
}

// Draw draws what a run measured into its plots/, as svg or png, and its report.html anew. It returns the files that it wrote.
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
	if err := Write(dir); err != nil {
		return written, err
	}
	return append(written, filepath.Join(dir, PageFile)), nil
}

// draw writes a chart as an SVG or a PNG. What has nothing to show is left out: ok is false.
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
	return path, true, regular.WriteOutput(path, b)
}

// WriteSweep writes into a directory what there is to say about all points of a sweep: a table, charts, and a page.
func WriteSweep(version, dir string, runs []*record.Summary, points []expect.Point, across []record.Expect) error {
	text, err := json.MarshalIndent(report.Swept(runs, across, version), "", "  ")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(report.CSV(runs)); err != nil {
		return err
	}
	err = errors.Join(regular.WriteOutput(filepath.Join(dir, store.SweepFile), append(text, '\n')), regular.WriteOutput(filepath.Join(dir, TableFile), b.Bytes()))
	if err != nil {
		return err
	}
	charts, err := report.Charts(points)
	if err != nil {
		return err
	}
	for _, c := range charts {
		if _, _, err := draw(c, filepath.Join(dir, PlotsFolder), c.Name, "svg"); err != nil {
			return err
		}
	}
	first, err := report.Load(runs[0].Run)
	if err != nil {
		return err
	}
	p, err := report.SweepPage(version, first, runs, across, charts)
	if err != nil {
		return err
	}
	return Save(filepath.Join(dir, PageFile), p)
}
