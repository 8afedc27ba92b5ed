package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weft/internal/regular"
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
		if err := regular.WriteOutput(filepath.Join(s.Run, topologyFile), svg); err != nil {
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
	}, happened(s))), nil
}

// happened is the faults of a run as a drawing of its network has them.
func happened(s *record.Summary) []render.Event {
	m, err := store.ReadManifest(s.Run)
	if err != nil {
		return nil // the report, which needs it, says so
	}
	places, more := report.Places(m.Faults, s.LabTimeUS)
	var events []render.Event
	for i := range places {
		p := &places[i]
		events = append(events, render.Event{Label: fmt.Sprint(p.Number), Text: p.String(), Place: p.Name()})
	}
	if more > 0 {
		events = append(events, render.Event{Label: "…", Text: fmt.Sprintf("faults of %d more places are not marked", more)})
	}
	return events
}

// maxTopology is how large a drawing of a network may be, in bytes: far above one of maxDrawn links.
const maxTopology = 64 << 20

// writeReport writes report.html of a run directory, anew if it is there.
func writeReport(dir string) error {
	r, err := report.Load(dir)
	if err != nil {
		return err
	}
	network, err := regular.Read(filepath.Join(dir, topologyFile), maxTopology)
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
	return regular.WriteOutput(path, b.Bytes())
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

// leaveSweep writes into a directory what there is to say about all points of a sweep: a table, charts, and a page.
func leaveSweep(dir string, runs []*record.Summary, points []expect.Point, across []record.Expect) error {
	text, err := json.MarshalIndent(report.Swept(runs, across, versionText()), "", "  ")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(report.CSV(runs)); err != nil {
		return err
	}
	err = errors.Join(regular.WriteOutput(filepath.Join(dir, sweepFile), append(text, '\n')), regular.WriteOutput(filepath.Join(dir, tableFile), b.Bytes()))
	if err != nil {
		return err
	}
	charts, err := report.Charts(points)
	if err != nil {
		return err
	}
	for _, c := range charts {
		if _, _, err := draw(c, filepath.Join(dir, plotsFolder), c.Name, "svg"); err != nil {
			return err
		}
	}
	first, err := report.Load(runs[0].Run)
	if err != nil {
		return err
	}
	p, err := report.SweepPage(versionText(), first, runs, across, charts)
	if err != nil {
		return err
	}
	return writePage(filepath.Join(dir, reportFile), p)
}
