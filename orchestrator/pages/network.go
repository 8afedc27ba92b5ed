package pages

import (
	"errors"
	"fmt"
	"path/filepath"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/orchestrator/topology/render"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/view"
)

// Leave writes the drawing of the network and the report into the directory of a finished run. kept
// is what the run has in memory: see Write.
func Leave(l *lab.Lab, s *record.Summary, kept *view.Source) error {
	if s == nil || s.Run == "" || !store.IsRun(s.Run) {
		return nil // the run has no directory, or it was removed
	}
	if svg, err := usage(l, s); err != nil {
		return err
	} else if len(svg) > 0 {
		if err := write(filepath.Join(s.Run, NetworkFile), svg); err != nil {
			return err
		}
	}
	return Write(s.Run, kept)
}

// maxDrawn is the largest number of links for which a report draws the network: more could not be
// told apart. Our own value.
const maxDrawn = 2000

// usage returns a drawing of the network with the load of its links, or nil if that was not
// measured or there are too many links.
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

// happened returns the faults of a run as events of a drawing.
func happened(s *record.Summary) []render.Event {
	m, err := store.ReadManifest(s.Run)
	if err != nil {
		return nil // the report itself reports the error
	}
	locations, more := report.FaultLocations(m.Faults, s.End())
	var events []render.Event
	for i := range locations {
		p := &locations[i]
		events = append(events, render.Event{Label: fmt.Sprint(p.Number), Text: p.String(), Place: p.Name()})
	}
	if more > 0 {
		text := fmt.Sprintf("faults of %d more links and hosts are not marked", more)
		events = append(events, render.Event{Label: "…", Text: text})
	}
	return events
}
