package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"weft/orchestrator/lab"
	"weft/orchestrator/pages"
	"weft/orchestrator/uml"
	"weft/results/expect"
	"weft/results/record"
	"weft/results/store"
)

// sweepsOf splits jobs by lab file and engine: what the points of a sweep have in common.
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

// claimSweeps creates a directory for each sweep, which no other command line has, and tells the jobs.
func claimSweeps(jobs []job, root string) error {
	for _, which := range sweepsOf(jobs) {
		if len(which) < 2 {
			continue
		}
		first := &jobs[which[0]]
		dir, err := store.Claim(root, first.lab.Name, "sweep-"+first.series.Stamp()+"-"+first.engine, "", store.NewFolder)
		if err != nil {
			return fmt.Errorf("create a directory for the sweep: %w", err)
		}
		for _, i := range which {
			jobs[i].sweep, jobs[i].series.Sweep = dir, filepath.Base(dir)
		}
	}
	return nil
}

// dropSweeps removes the directories of sweeps in which there is nothing: no run of theirs left anything.
func dropSweeps(jobs []job) {
	for _, which := range sweepsOf(jobs) {
		if dir := jobs[which[0]].sweep; dir != "" {
			_ = os.Remove(dir) // one that is not empty stays
		}
	}
}

// pointsOf is the runs of a sweep as expectations across its points see them.
func pointsOf(jobs []job, runs []*record.Summary, which []int) []expect.Point {
	var out []expect.Point
	for _, i := range which {
		out = append(out, expect.Point{At: expect.At(jobs[i].lab.Point), Fixed: replaced(jobs[i].lab), Summary: runs[i], Scope: jobs[i].lab.Scope()})
	}
	return out
}

// replaced is the settings of a lab that the command line replaced, by their path.
func replaced(l *lab.Lab) map[string]string {
	out := map[string]string{}
	for _, s := range l.Sources {
		if s.Flag != "" {
			out[s.Path] = s.Value
		}
	}
	return out
}

// linesOf is every expectation of the labs of a sweep, once.
func linesOf(jobs []job, which []int) []string {
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

// acrossPoints judges what is expected across the points of each sweep, leaves a directory about each that was more than one
// run, and returns what was judged: one summary for each sweep that has any such expectation.
func (a *app) acrossPoints(jobs []job, runs []*record.Summary) (judged []*record.Summary, err error) {
	for _, which := range sweepsOf(jobs[:len(runs)]) {
		points := pointsOf(jobs, runs, which)
		if seedless(jobs, runs, which) {
			fmt.Fprintf(a.stderr, "note: seeds make no difference to %s: its simulations that differ in the seed alone came out the same\n",
				jobs[which[0]].lab.Name)
		}
		across := expect.Sweep(linesOf(jobs, which), points)
		first := runs[which[0]]
		if len(across) > 0 {
			judged = append(judged, &record.Summary{
				Lab: first.Lab + ": across points", Engine: first.Engine, Status: record.OK, Verified: true, Expect: across,
			})
		}
		if dir := jobs[which[0]].sweep; len(which) < 2 || dir == "" || first.Run == "" || !store.IsRun(first.Run) {
			continue
		}
		var some []*record.Summary
		for _, i := range which {
			some = append(some, runs[i])
		}
		dir := jobs[which[0]].sweep
		if err := pages.WriteSweep(versionText(), dir, some, points, across); err != nil {
			return judged, fmt.Errorf("sweep of %s: %w", first.Lab, err)
		}
		fmt.Fprintf(a.stderr, "all points: %s\n", filepath.Join(dir, pages.PageFile))
	}
	return judged, nil
}

// seedless says that a sweep goes through seeds, and that every two of its simulations that differ in nothing else came out alike.
func seedless(jobs []job, runs []*record.Summary, which []int) bool {
	first := map[string]*record.Summary{} // by the rest of the point
	compared := false
	for _, i := range which {
		point, s := maps.Clone(jobs[i].lab.Point), runs[i]
		if _, swept := point["seed"]; !swept || s == nil || s.Engine != "sim" || s.Status != record.OK {
			return false
		}
		delete(point, "seed")
		rest := fmt.Sprint(point) // in the order of its keys
		other := first[rest]
		switch {
		case other == nil:
			first[rest] = s
		case !reflect.DeepEqual(other.Flows, s.Flows) || !reflect.DeepEqual(other.Network, s.Network) || !reflect.DeepEqual(other.Collectives, s.Collectives):
			return false
		default:
			compared = true
		}
	}
	return compared
}

// finished finds the summaries of jobs that were run before, by this very program and with the same settings, and ended well.
func finished(jobs []job, root string) map[int]*record.Summary {
	out := map[int]*record.Summary{}
	kept := map[string][]*record.Manifest{}
	for i, j := range jobs {
		name := j.lab.Name
		if _, ok := kept[name]; !ok {
			kept[name] = store.Manifests(filepath.Join(root, name))
		}
		for _, m := range kept[name] {
			if !sameJob(m, j) {
				continue
			}
			if s, err := store.ReadSummary(m.Run); err == nil && s.Status == record.OK {
				s.Run = m.Run
				out[i] = s
				break
			}
		}
	}
	return out
}

// sameJob says whether a run was of this job: the same program, engine and settings.
func sameJob(m *record.Manifest, j job) bool {
	if m.Status != record.OK || m.Program == "" || m.Program != store.Program() || j.engine != "auto" && m.Engine != j.engine || len(m.Settings) != len(j.lab.Sources) {
		return false
	}
	if m.Engine == "emu" && strings.HasPrefix(m.Machine.Kernel, "uml ") != (uml.Inside() != "") {
		return false
	}
	for i, s := range j.lab.Sources {
		if s.Path == "engine.dilation" && m.Retry != nil && m.Retry.Counts {
			continue
		}
		if m.Settings[i].Path != s.Path || m.Settings[i].Value != s.Value {
			return false
		}
	}
	return true
}
