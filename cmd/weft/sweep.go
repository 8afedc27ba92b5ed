package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/uml"
	"weft/results/expect"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
)

// sweepsOf splits the runs of a command line by lab file and engine: what the points of a sweep have in common. runs has one
// summary for each of the first jobs.
func sweepsOf(jobs []job, runs []*record.Summary) [][]int {
	index := map[string]int{}
	var out [][]int
	for i := range runs {
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

// pointsOf is the runs of a sweep as expectations across its points see them.
func pointsOf(jobs []job, runs []*record.Summary, which []int) []expect.Point {
	var out []expect.Point
	for _, i := range which {
		out = append(out, expect.Point{At: expect.At(jobs[i].lab.Point), Summary: runs[i], Scope: orchestrate.Scope(jobs[i].lab)})
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
func (a *app) acrossPoints(jobs []job, runs []*record.Summary, flags runFlags) (judged []*record.Summary, err error) {
	for _, which := range sweepsOf(jobs, runs) {
		points := pointsOf(jobs, runs, which)
		lines := linesOf(jobs, which)
		if len(flags.lab.set) > 0 {
			lines = a.possible(lines, points)
		}
		across := expect.Sweep(lines, points)
		first := runs[which[0]]
		if len(across) > 0 {
			judged = append(judged, &record.Summary{
				Lab: first.Lab + ": across points", Engine: first.Engine, Status: "ok", Verified: true, Expect: across,
			})
		}
		if len(which) < 2 || first.Run == "" || !isRun(first.Run) {
			continue
		}
		var some []*record.Summary
		for _, i := range which {
			some = append(some, runs[i])
		}
		stamp := jobs[which[0]].series.Began.UTC().Format("20060102T150405") + "-" + first.Engine
		dir, err := leaveSweep(flags.out, stamp, some, points, across)
		if err != nil {
			return judged, fmt.Errorf("sweep of %s: %w", first.Lab, err)
		}
		fmt.Fprintf(a.stderr, "all points: %s\n", filepath.Join(dir, reportFile))
	}
	return judged, nil
}

// possible is those of the lines whose points exist: the command line may have taken some of a sweep's away.
func (a *app) possible(lines []string, points []expect.Point) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		e, err := expect.Parse(line)
		if err != nil || !e.Cross() || e.CheckSweep(points) == nil {
			return false
		}
		fmt.Fprintf(a.stderr, "not judged, since --set leaves no points to compare: %s\n", line)
		return true
	})
}

// finished finds the summaries of jobs that were run before, by this very program and with the same settings, and ended well.
func finished(jobs []job, root string) map[int]*record.Summary {
	if root == "" {
		root = "results"
	}
	out := map[int]*record.Summary{}
	kept := map[string][]*record.Manifest{}
	for i, j := range jobs {
		name := j.lab.Name
		if _, ok := kept[name]; !ok {
			kept[name] = manifestsBelow(filepath.Join(root, name))
		}
		for _, m := range kept[name] {
			if !sameJob(m, j) {
				continue
			}
			if s, err := store.ReadSummary(m.Run); err == nil && s.Status == "ok" {
				s.Run = m.Run
				out[i] = s
				break
			}
		}
	}
	return out
}

// manifestsBelow reads the manifests of all runs in a folder, the newest first. What cannot be read is none.
func manifestsBelow(folder string) []*record.Manifest {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var out []*record.Manifest
	for _, e := range slices.Backward(entries) {
		dir := filepath.Join(folder, e.Name())
		if m, err := store.ReadManifest(dir); err == nil {
			m.Run = dir // wherever the results were moved
			out = append(out, m)
		}
	}
	return out
}

// sameJob says whether a run was of this job: the same program, engine and settings.
func sameJob(m *record.Manifest, j job) bool {
	if m.Status != "ok" || m.Program == "" || m.Program != program() || j.engine != "auto" && m.Engine != j.engine || len(m.Settings) != len(j.lab.Sources) {
		return false
	}
	if m.Engine == "emu" && strings.HasPrefix(m.Machine.Kernel, "uml ") != (uml.Inside() != "") {
		return false
	}
	for i, s := range j.lab.Sources {
		if m.Settings[i].Path != s.Path || m.Settings[i].Value != s.Value {
			return false
		}
	}
	return true
}

// remaining says in words how long the rest of many runs will take.
func remaining(began time.Time, done, total int) string {
	if done == 0 || done >= total {
		return ""
	}
	left := time.Duration(float64(time.Since(began)) / float64(done) * float64(total-done))
	return ", about " + left.Round(time.Second).String() + " left"
}

// writeMarkdown appends the runs to a file as GitHub shows them in the summary of a job.
func writeMarkdown(path string, runs []*record.Summary) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("summary: %w", cerr)
		}
	}()
	return markdown(f, runs)
}

func markdown(w io.Writer, runs []*record.Summary) error {
	var b strings.Builder
	b.WriteString("| lab | point | engine | FCT p99 | slowdown p99 | status |\n|---|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;")
	for _, s := range runs {
		status := "✅ ok"
		switch missed := table.Missed(s); {
		case s.Status != "ok":
			status = "❌ " + s.Status + ": " + s.Error
		case missed > 0:
			status = fmt.Sprintf("❌ %d of %d expectations missed", missed, len(s.Expect))
		case !s.Verified:
			status = "⚠️ data not verified"
		case s.Fidelity != nil && s.Fidelity.Verdict != "ok":
			status = "⚠️ fidelity " + s.Fidelity.Verdict
		}
		fct, slow := "", ""
		if s.Flows.Count > s.Flows.Unfinished {
			fct, slow = fmt.Sprintf("%.4g us", s.Flows.FCT.P99), fmt.Sprintf("%.4g", s.Flows.Slowdown.P99)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", cell.Replace(s.Lab), cell.Replace(table.Point(s.Point)), s.Engine, fct, slow, cell.Replace(status))
	}
	for _, s := range runs {
		for _, e := range s.Expect {
			if !e.OK {
				fmt.Fprintf(&b, "\n- ❌ **%s** %s: `%s`: %s", cell.Replace(s.Lab), cell.Replace(table.Point(s.Point)), e.That, cell.Replace(e.Note))
			}
		}
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}
