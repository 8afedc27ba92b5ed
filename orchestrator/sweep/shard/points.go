package shard

import (
	"time"

	"weft/results/record"
	"weft/results/store"
)

// announce writes the sweep.json of a submission below the directory at path, with all points
// running: readers of its results know how many points it has long before it is collected, and
// whatever becomes of it.
func announce(path string, d *Dir) error {
	labs, err := Labs(d.Sub, nil)
	if err != nil {
		return err
	}
	s := record.Sweep{Lab: d.Sub.Lab, Engine: d.Sub.Kind, Series: d.Sub.Series, Version: d.Sub.Version,
		Started: d.Sub.Began.UTC().Format(time.RFC3339), Submitted: true}
	for _, l := range labs {
		s.Points = append(s.Points, record.SweepPoint{Point: l.Point, Seed: l.Seed, Status: record.Running,
			Outcome: record.Outcome{Status: record.Running}.String()})
	}
	return store.WriteSweep(path, s)
}
