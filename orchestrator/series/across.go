package series

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"weft/orchestrator/lab"
	"weft/orchestrator/pages"
	"weft/results/expect"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
)

// sweepsOf groups jobs, by index, into sweeps: those with the same lab file and engine.
func sweepsOf(jobs []Job) [][]int {
	index := map[string]int{}
	var out [][]int
	for i := range jobs {
		key := jobs[i].Lab.File + "\x00" + jobs[i].Engine
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

// Claim creates a new directory below root for each sweep with several points, or with
// expectations across its only one, and sets it in its jobs.
func Claim(jobs []Job, root string) error {
	for _, which := range sweepsOf(jobs) {
		if len(which) < 2 && !jobs[which[0]].across() {
			continue
		}
		dir, err := claim(&jobs[which[0]], root)
		if err != nil {
			return err
		}
		for _, i := range which {
			jobs[i].Sweep, jobs[i].Series.Sweep = dir, filepath.Base(dir)
		}
	}
	return nil
}

// across reports whether the lab has expectations across points, whose results only the directory
// of a sweep keeps.
func (j *Job) across() bool {
	return slices.ContainsFunc(j.Lab.Expect, func(e lab.Expectation) bool {
		of, err := expect.Parse(e.Text)
		return err == nil && of.Cross()
	})
}

// claim creates a new directory for the sweep of a job below root.
func claim(j *Job, root string) (string, error) {
	dir, err := store.Claim(root, j.Lab.Name, "sweep-"+j.Series.Stamp()+"-"+j.Engine, "", store.NewFolder)
	if err != nil {
		return "", fmt.Errorf("create a directory for the sweep: %w", err)
	}
	return dir, nil
}

// Drop removes the directories of sweeps without a run.
func Drop(jobs []Job) {
	for _, which := range sweepsOf(jobs) {
		dir := jobs[which[0]].Sweep
		if dir == "" {
			continue
		}
		if found, err := store.Find("", dir); err == nil && len(found.Runs) == 0 {
			_ = os.Remove(filepath.Join(dir, store.SweepFile))
		}
		_ = os.Remove(dir) // one that is not empty stays
	}
}

// begin writes sweep.json of each sweep before its first run: whoever reads the sweep meanwhile, or
// after it was killed, finds the runs of earlier command lines that it reuses, by index of the job,
// and every other point as running. A single run that is reused gets a sweep.json below root as
// well: nothing else tells that it is the newest of its lab, and not one of other settings.
func begin(jobs []Job, reused map[int]*record.Summary, root, version string) (err error) {
	for _, which := range sweepsOf(jobs) {
		dir := jobs[which[0]].Sweep
		if dir == "" && len(which) == 1 && reused[which[0]] != nil {
			if dir, err = claim(&jobs[which[0]], root); err != nil {
				return err
			}
		}
		if dir == "" {
			continue
		}
		var points []*record.Summary
		for _, i := range which {
			s := reused[i]
			if s == nil {
				s = NotRun(jobs[i].Lab, jobs[i].Engine, record.Running, "")
			}
			points = append(points, s)
		}
		if err := store.WriteSweep(dir, report.SweepRecord(jobs[which[0]].sweep(version), points, nil)); err != nil {
			return fmt.Errorf("sweep of %s: %w", jobs[which[0]].Lab.Name, err)
		}
	}
	return nil
}

// sweep returns what identifies the sweep of the job.
func (j *Job) sweep(version string) record.Sweep {
	return record.Sweep{Lab: j.Lab.Name, Engine: j.Engine, Series: j.Series.ID, Version: version,
		Started: j.Series.Began.UTC().Format(time.RFC3339)}
}

// pointsOf returns the runs of a sweep as points for expectations across them.
func pointsOf(jobs []Job, runs []*record.Summary, which []int) []expect.Point {
	var out []expect.Point
	for _, i := range which {
		l := jobs[i].Lab
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

// labsOf returns the labs of a sweep, each with the expectations of its run.
func labsOf(jobs []Job, runs []*record.Summary, which []int) (out []*lab.Lab) {
	for _, i := range which {
		out = append(out, jobs[i].Lab.In(runs[i].Engine))
	}
	return out
}

// linesOf returns the expectations of the labs of a sweep, each once and in the order of the file,
// with the points of the labs that meet its condition.
func linesOf(labs []*lab.Lab, points []expect.Point) (out []expect.Line) {
	var all []lab.Expectation
	at := map[string][]expect.Point{}
	for i, l := range labs {
		for n, e := range l.Expect {
			that := e.That()
			if slices.ContainsFunc(l.Expect[:n], func(o lab.Expectation) bool { return o.That() == that }) {
				continue // written twice
			}
			if at[that] == nil {
				all = append(all, e)
			}
			at[that] = append(at[that], points[i])
		}
	}
	slices.SortStableFunc(all, func(a, b lab.Expectation) int { return cmp.Compare(a.Index, b.Index) })
	for _, e := range all {
		out = append(out, expect.Line{Text: e.Text, That: e.That(), Points: at[e.That()]})
	}
	return out
}

// unmet returns the expectations whose condition no point of a sweep meets, since the command line
// took or changed those that did, or all ran in the other engine. Runs of the file in the other
// engine (others) may meet one, and then it is judged there.
func unmet(labs, others []*lab.Lab) (out []record.Expect) {
	labs = slices.DeleteFunc(slices.Clone(labs), func(l *lab.Lab) bool { return len(l.Point) == 0 })
	for _, e := range lab.Unmet(labs) {
		if lab.Meets(others, e) {
			continue
		}
		note := e.Why
		if e.When != "" {
			note = "no point meets its condition: " + e.Why
		}
		out = append(out, record.Expect{That: e.That(), Skipped: true, Note: note})
	}
	return out
}

// Across judges the expectations across the points of each sweep, and writes the table and page of
// each sweep that has a directory. runs has the summary of each job. judged has a summary for
// each sweep with such expectations. version is that of weft, for the pages; say receives lines for
// the user.
func Across(jobs []Job, runs []*record.Summary, version string, say func(line string)) (
	judged []*record.Summary, err error,
) {
	sweeps := sweepsOf(jobs[:len(runs)])
	files := map[string][]*lab.Lab{} // labs of each file, in every engine
	for _, which := range sweeps {
		file := jobs[which[0]].Lab.File
		files[file] = append(files[file], labsOf(jobs, runs, which)...)
	}
	for _, which := range sweeps {
		points := pointsOf(jobs, runs, which)
		if report.SameForAllSeeds(points) {
			say(fmt.Sprintf("note: seeds make no difference to %s: "+
				"simulations that differ only in the seed gave the same result", jobs[which[0]].Lab.Name))
		}
		labs := labsOf(jobs, runs, which)
		across := append(expect.Sweep(linesOf(labs, points)), unmet(labs, files[jobs[which[0]].Lab.File])...)
		first := runs[which[0]]
		if len(across) > 0 {
			judged = append(judged, record.AcrossPoints(first.Lab, first.Engine, across))
		}
		dir := jobs[which[0]].Sweep
		if dir == "" || !slices.ContainsFunc(points, func(p expect.Point) bool {
			return p.Summary.Run != "" && store.IsRun(p.Summary.Run)
		}) {
			continue
		}
		var some []*record.Summary
		for _, p := range points {
			some = append(some, p.Summary)
		}
		if err := pages.WriteSweep(jobs[which[0]].sweep(version), dir, some, points, across); err != nil {
			return judged, fmt.Errorf("sweep of %s: %w", first.Lab, err)
		}
		say("all points: " + filepath.Join(dir, pages.PageFile))
	}
	return judged, nil
}
