package series

import (
	"path/filepath"

	"weft/orchestrator/lab"
	"weft/orchestrator/run"
	"weft/results/record"
	"weft/results/store"
)

// Earlier counts the jobs of a command line that earlier ones finished with this very program and
// the same settings, and whose files are as they left them.
type Earlier struct {
	Jobs     int // of the command line
	Reused   int // jobs that are not repeated
	Doubtful int // of these, emulations whose fidelity is not ok
	Refused  int // jobs that are repeated, since Runner.Strict does not accept their fidelity
	// Damaged names the runs of jobs that are repeated, since their files are not as they left
	// them, with the reason.
	Damaged []string
}

// finishedBefore returns, by the index of the job, the summaries of earlier runs of this very
// program with the same settings that succeeded, and whose fidelity strict accepts. Points may come
// to the same settings, as an algorithm and auto do, or two spellings of a size: each run is that
// of one job at most, since one run at two points is no repetition of itself.
func finishedBefore(jobs []Job, root, strict string) (map[int]*record.Summary, Earlier) {
	labs := map[string]*earlierRuns{}
	found := make([]run.Found, len(jobs))
	// A run that was made for a point is kept for it: other runs may be those of any point.
	for _, own := range []bool{true, false} {
		for i, j := range jobs {
			e := labs[j.Lab.Name]
			if e == nil {
				e = readEarlier(filepath.Join(root, j.Lab.Name))
				labs[j.Lab.Name] = e
			}
			if found[i].Summary == nil {
				found[i] = e.take(j.Lab, j.Engine, strict, own)
			}
		}
	}
	out, count := map[int]*record.Summary{}, Earlier{Jobs: len(jobs)}
	for i, f := range found {
		if f.Refused {
			count.Refused++
		}
		count.Damaged = append(count.Damaged, f.Damaged...)
		if f.Summary == nil {
			continue
		}
		out[i] = f.Summary
		if count.Reused++; f.Summary.Outcome().Doubtful() {
			count.Doubtful++
		}
	}
	return out, count
}

// earlierRuns are the runs of a lab that no job has taken yet, newest first.
type earlierRuns struct {
	all   []*record.Manifest
	of    map[string][]*record.Manifest // by the point that they were made for: store.PointKey
	taken map[string]bool               // by directory
}

// readEarlier reads the runs in the directory of a lab.
func readEarlier(folder string) *earlierRuns {
	e := &earlierRuns{all: store.Manifests(folder), of: map[string][]*record.Manifest{}, taken: map[string]bool{}}
	for _, m := range e.all {
		key := store.PointKey(m.Point)
		e.of[key] = append(e.of[key], m)
	}
	return e
}

// take finds the run to reuse for a lab, which is then taken. With own it looks at runs of the same
// point alone, and leaves those of a doubtful fidelity, since another run may have a better one.
func (e *earlierRuns) take(l *lab.Lab, engine, strict string, own bool) run.Found {
	among := e.all
	if own {
		among = e.of[store.PointKey(l.Point)]
	}
	var left []*record.Manifest
	for _, m := range among {
		if !e.taken[m.Run] {
			left = append(left, m)
		}
	}
	f := run.Finished(l, engine, strict, left)
	switch {
	case f.Summary == nil:
	case own && f.Summary.Outcome().Doubtful():
		return run.Found{}
	default:
		e.taken[f.Summary.Run] = true
	}
	return f
}
