package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"weft/orchestrator/lab"
	"weft/orchestrator/pages"
	orchestrate "weft/orchestrator/run"
	"weft/results/expect"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
)

// sweepsOf groups jobs, by index, into sweeps: those with the same lab file and engine.
func sweepsOf(jobs []job) [][]int {
	index := map[string]int{}
	var out [][]int
	for i := range jobs {
		key := jobs[i].lab.File + "\x00" + jobs[i].engine
		k, ok := index[key]
		if !ok {
			k = len(out)
			index[key] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}

// claimSweeps creates a new directory for each sweep, and sets it in its jobs.
func claimSweeps(jobs []job, root string) error {
	for _, which := range sweepsOf(jobs) {
		if len(which) < 2 {
			continue
		}
		first := &jobs[which[0]]
		dir, err := store.Claim(root, first.lab.Name, "sweep-"+first.series.Stamp()+"-"+first.engine, "",
			store.NewFolder)
		if err != nil {
			return fmt.Errorf("create a directory for the sweep: %w", err)
		}
		for _, i := range which {
			jobs[i].sweep, jobs[i].series.Sweep = dir, filepath.Base(dir)
		}
	}
	return nil
}

// dropSweeps removes the directories of sweeps that are empty, since no run left anything.
func dropSweeps(jobs []job) {
	for _, which := range sweepsOf(jobs) {
		if dir := jobs[which[0]].sweep; dir != "" {
			_ = os.Remove(dir) // one that is not empty stays
		}
	}
}

// pointsOf returns the runs of a sweep as points for expectations across them.
func pointsOf(jobs []job, runs []*record.Summary, which []int) []expect.Point {
	var out []expect.Point
	for _, i := range which {
		l := jobs[i].lab
		out = append(out, expect.Point{At: expect.At(l.Point), Fixed: flagSettings(l), Summary: runs[i],
			Scope: l.Scope()})
	}
	return out
}

// flagSettings returns the settings of a lab that come from the command line, by their path.
func flagSettings(l *lab.Lab) map[string]string {
	out := map[string]string{}
	for _, s := range l.Sources {
		if s.Flag != "" {
			out[s.Path] = s.Value
		}
	}
	return out
}

// expectationsOf returns the expectations of the labs of a sweep, each once.
func expectationsOf(jobs []job, which []int) []string {
	var out []string
	for _, i := range which {
		for _, e := range jobs[i].lab.Expect {
			if !slices.Contains(out, e.Text) {
				out = append(out, e.Text)
			}
		}
	}
	return out
}

// acrossPoints judges the expectations across the points of each sweep, and writes the table and
// page of each sweep with more than one run. judged has a summary for each sweep with such
// expectations.
func (a *app) acrossPoints(jobs []job, runs []*record.Summary) (judged []*record.Summary, err error) {
	for _, which := range sweepsOf(jobs[:len(runs)]) {
		points := pointsOf(jobs, runs, which)
		if report.SameForAllSeeds(points) {
			fmt.Fprintf(a.stderr, "note: seeds make no difference to %s: "+
				"simulations that differ only in the seed gave the same result\n", jobs[which[0]].lab.Name)
		}
		across := expect.Sweep(expectationsOf(jobs, which), points)
		first := runs[which[0]]
		if len(across) > 0 {
			judged = append(judged, &record.Summary{
				Lab: first.Lab + ": across points", Engine: first.Engine, Status: record.OK, Verified: true,
				Expect: across,
			})
		}
		dir := jobs[which[0]].sweep
		if len(which) < 2 || dir == "" || !slices.ContainsFunc(points, func(p expect.Point) bool {
			return p.Summary.Run != "" && store.IsRun(p.Summary.Run)
		}) {
			continue
		}
		var some []*record.Summary
		for _, p := range points {
			some = append(some, p.Summary)
		}
		if err := pages.WriteSweep(versionText(), dir, some, points, across); err != nil {
			return judged, fmt.Errorf("sweep of %s: %w", first.Lab, err)
		}
		fmt.Fprintf(a.stderr, "all points: %s\n", filepath.Join(dir, pages.PageFile))
	}
	return judged, nil
}

// finishedBefore returns, by the index of the job, the summaries of earlier runs of this very
// program with the same settings that succeeded.
func finishedBefore(jobs []job, root string) map[int]*record.Summary {
	out := map[int]*record.Summary{}
	earlier := map[string][]*record.Manifest{} // by lab
	for i, j := range jobs {
		name := j.lab.Name
		if _, ok := earlier[name]; !ok {
			earlier[name] = store.Manifests(filepath.Join(root, name))
		}
		if s := orchestrate.Finished(j.lab, j.engine, earlier[name]); s != nil {
			out[i] = s
		}
	}
	return out
}
