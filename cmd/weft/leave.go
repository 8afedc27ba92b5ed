package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/orchestrator/topology/render"
	"weft/results/expect"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
)

// Files that the command line adds to a run directory.
const (
	reportFile   = "report.html"
	topologyFile = "topology.svg"
	plotsFolder  = "plots"
	sweepFile    = "sweep.json"
	tableFile    = "table.csv"
)

// leave writes the drawing of the network and the report into the directory of a run that was made.
func leave(l *lab.Lab, s *record.Summary) error {
	if s == nil || s.Run == "" || !isRun(s.Run) {
		return nil // nothing was left, or it is gone
	}
	if svg, err := usage(l, s); err != nil {
		return err
	} else if len(svg) > 0 {
		if err := os.WriteFile(filepath.Join(s.Run, topologyFile), svg, 0o644); err != nil {
			return err
		}
	}
	return writeReport(s.Run)
}

// maxDrawn is up to how many links a network is drawn in a report: beyond, nobody tells them apart. Ours.
const maxDrawn = 2000

// usage draws the network with what its links carried; nothing where that was not measured, or there are too many.
func usage(l *lab.Lab, s *record.Summary) ([]byte, error) {
	type row struct {
		Port  string `parquet:"port"`
		Bytes int64  `parquet:"bytes"`
		Rate  int64  `parquet:"rate_bps"`
	}
	share := map[string]float64{}
	err := store.Scan(s.Run, store.PortsFile, func(rows []row) error {
		for _, p := range rows {
			if p.Rate > 0 && s.LabTimeUS > 0 {
				share[string([]byte(p.Port))] = float64(p.Bytes) * 8 / float64(p.Rate) / (s.LabTimeUS / 1e6)
			}
		}
		return nil
	})
	if errors.Is(err, store.ErrNoTable) || err == nil && len(share) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g, err := topology.Build(l.Topology)
	if err != nil {
		return nil, err
	}
	if len(g.Links) > maxDrawn {
		return nil, nil
	}
	return []byte(render.Utilisation("Use of links", g, func(k *topology.Link) float64 {
		a, b := g.Nodes[k.A].Name, g.Nodes[k.B].Name
		return max(share[a+"->"+b], share[b+"->"+a])
	})), nil
}

// writeReport writes report.html of a run directory, anew if it is there.
func writeReport(dir string) error {
	r, err := report.Load(dir)
	if err != nil {
		return err
	}
	network, err := os.ReadFile(filepath.Join(dir, topologyFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p, err := r.Page(network)
	if err != nil {
		return err
	}
	return writePage(filepath.Join(dir, reportFile), p)
}

func writePage(path string, p *report.Page) error {
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
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
	return path, true, os.WriteFile(path, b, 0o644)
}

// sweepSummary is sweep.json: the points of a sweep, and what was expected across them.
type sweepSummary struct {
	Lab     string          `json:"lab"`
	Points  []sweepPoint    `json:"points"`
	Expect  []record.Expect `json:"expect"`
	Version string          `json:"version"`
}

type sweepPoint struct {
	Point  map[string]any `json:"point"`
	Run    string         `json:"run"`
	Status string         `json:"status"`
}

// leaveSweep writes one directory about all points of a sweep: a table, charts, and a page. It returns where.
func leaveSweep(root, stamp string, runs []*record.Summary, points []expect.Point, across []record.Expect) (string, error) {
	name := runs[0].Lab
	if root == "" {
		root = "results"
	}
	dir := filepath.Join(root, name, "sweep-"+stamp)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	sum := sweepSummary{Lab: name, Expect: across, Version: versionText()}
	for _, s := range runs {
		sum.Points = append(sum.Points, sweepPoint{s.Point, s.Run, s.Status})
	}
	text, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		return "", err
	}
	table := report.Points(runs)
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.WriteAll(table.CSV()); err != nil {
		return "", err
	}
	err = errors.Join(os.WriteFile(filepath.Join(dir, sweepFile), append(text, '\n'), 0o644), os.WriteFile(filepath.Join(dir, tableFile), b.Bytes(), 0o644))
	if err != nil {
		return "", err
	}
	p := &report.Page{Title: name + ": sweep", Footer: "weft " + versionText()}
	p.Verdict, p.Class = sweepVerdict(runs, across)
	if len(across) > 0 {
		p.Parts = append(p.Parts, report.Part{Heading: "Expectations across points", Tables: []report.Table{report.Expectations(across)}})
	}
	p.Parts = append(p.Parts, report.Part{Heading: "Points", Tables: []report.Table{table}})
	plots := report.Part{Heading: "Plots"}
	for _, o := range report.Overview(points) {
		d, err := o.Draw(points)
		if errors.Is(err, plot.ErrEmpty) {
			continue
		}
		if err != nil {
			return "", err
		}
		svg, err := d.SVG()
		if err != nil {
			return "", err
		}
		plots.Pictures = append(plots.Pictures, report.Inline(svg))
		if _, _, err := draw(d, filepath.Join(dir, plotsFolder), o.Name, "svg"); err != nil {
			return "", err
		}
	}
	if len(plots.Pictures) > 0 {
		p.Parts = append(p.Parts, plots)
	}
	return dir, writePage(filepath.Join(dir, reportFile), p)
}

func sweepVerdict(runs []*record.Summary, across []record.Expect) (text, class string) {
	failed, missed := 0, 0
	for _, s := range runs {
		if s.Status != "ok" {
			failed++
		}
		for _, e := range s.Expect {
			if !e.OK {
				missed++
			}
		}
	}
	for _, e := range across {
		if !e.OK {
			missed++
		}
	}
	switch {
	case failed > 0:
		return fmt.Sprintf("%d of %d runs failed", failed, len(runs)), "bad"
	case missed > 0:
		return fmt.Sprintf("%d runs, %d expectations missed", len(runs), missed), "bad"
	}
	return fmt.Sprintf("%d runs, every expectation met", len(runs)), ""
}
