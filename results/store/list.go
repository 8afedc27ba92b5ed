package store

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"weft/results/record"
)

// listFormat is the version of record.List that this program writes and reads.
const listFormat = 1

// WriteList writes the list of runs of a command line to w, which is the file at path, and what was
// judged across the points of its sweeps. Directories are relative to that of the file, so that
// both can be moved together.
func WriteList(w io.Writer, path, version string, runs, judged []*record.Summary) error {
	l := record.List{Format: listFormat, Version: version, Runs: []record.ListedRun{}}
	beside, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, s := range runs {
		one := record.ListedRun{Lab: s.Lab, Engine: s.Engine, Point: s.Point, Seed: s.Seed,
			Status: s.Status, Error: s.Error}
		if s.Run != "" {
			dir, err := filepath.Abs(s.Run)
			if err != nil {
				return err
			}
			if one.Run, err = filepath.Rel(beside, dir); err != nil {
				return err
			}
		}
		l.Runs = append(l.Runs, one)
	}
	for _, s := range judged {
		l.Across = append(l.Across, record.ListAcross(s))
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// ReadList returns the runs of a list that WriteList wrote to path. Runs whose directories are gone
// are lacking.
func ReadList(path string) (found Found, err error) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return found, fmt.Errorf("%s: empty: the weft run that was to write it has not ended", path)
	}
	l, _, err := readJSON[record.List](path, maxJSON)
	switch {
	case err != nil:
		return found, err
	case l.Format > listFormat:
		return found, fmt.Errorf("%s: %w", path, newerFormat(l.Format))
	case l.Format < 1 || l.Runs == nil:
		return found, fmt.Errorf("%s: not a list of weft run --list", path)
	}
	found.Points, found.Labs = map[string]map[string]any{}, true
	named := map[string]bool{}
	for _, r := range l.Runs {
		s := record.NotRun(r.Lab, r.Point, r.Engine, r.Status, r.Error)
		s.Seed = r.Seed
		if r.Run != "" {
			dir := r.Run
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(filepath.Dir(path), dir)
			}
			lost := lostRun(dir, r.Run, r.Lab, &record.SweepPoint{Point: r.Point, Seed: r.Seed}, named)
			if lost == "" {
				found.Runs = append(found.Runs, dir)
				if r.Point != nil {
					found.Points[dir] = r.Point
				}
				continue
			}
			s.Status, s.Error = record.Failed, lost
		}
		found.Lacking = append(found.Lacking, s)
	}
	for _, s := range l.Across {
		found.Judged = append(found.Judged, record.AcrossPoints(s.Lab, s.Engine, s.Expect))
	}
	return found, nil
}
