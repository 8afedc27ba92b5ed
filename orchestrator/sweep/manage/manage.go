// Package manage implements the verbs of weft sweep: it submits a sweep, reports its progress,
// cancels and resumes it, and collects its results.
//
// In go a lab file or the directory of a sweep, and a scheduler. Out come a directory (package
// shard), its status (package sweep), and at the end the summaries of all points in their order,
// which are compared with expectations and printed as those of a local sweep.
//
// The one idea: nothing is kept anywhere but in the directory of the results, so any machine that
// sees it can ask, end, resume or collect. No process has to stay but the collector of a sweep
// whose machines do not see that directory, which may be killed: whoever waits starts it again.
package manage

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weft/internal/clip"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/series"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/collect"
	"weft/orchestrator/sweep/shard"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
)

// Request is a sweep to submit.
type Request struct {
	Source  labfile.Source
	Options lab.Options
	Results string // directory of all runs
	Shards  int    // 0: as many as the scheduler has use for
	Version string
	Round   sweep.Round // On, Image, Workers, Memory and Collect
	Now     time.Time
}

// Refused is the error for a request that no machine could run.
type Refused struct{ error }

func (e Refused) Unwrap() error { return e.error }

// Read reads the lab of a request, with the files that it names, and returns the submission without
// names, and its labs. A lab that leaves the engine open is simulated.
func Read(q *Request) (*sweep.Submission, []*lab.Lab, error) {
	files := labfile.NewRecorder(sweep.MaxInputs)
	f, err := labfile.Load(files.Record(q.Source), q.Options)
	if err == nil && q.Options.Engine.Kind == "" && f.Labs[0].Engine.Kind == "auto" {
		q.Options.Engine.Kind = "sim"
		f, err = labfile.Load(files.Record(q.Source), q.Options)
	}
	if err != nil {
		return nil, nil, err
	}
	s := &sweep.Submission{
		Format: sweep.Format, Lab: f.Labs[0].Name, File: q.Source.Name, Text: string(q.Source.Text),
		Inputs: files.Files(), Set: q.Options.Set, Engine: q.Options.Engine, Kind: f.Labs[0].Engine.Kind,
		Results: filepath.ToSlash(q.Results), Version: q.Version, Program: store.Program(), Series: rand.Text(),
	}
	for _, l := range f.Labs {
		if l.Engine.Kind != s.Kind {
			return nil, nil, Refused{errors.New("the points have different engines: --engine sim or --engine emu " +
				"chooses one")}
		}
		s.Points = append(s.Points, table.Point(l.Point))
	}
	if s.Kind != "sim" && s.Kind != "emu" {
		return nil, nil, Refused{fmt.Errorf("engine %s: other machines may choose differently; --engine sim or "+
			"--engine emu says what the sweep is", s.Kind)}
	}
	again, err := shard.Labs(s, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("the lab reads differently on another machine: %w", err)
	}
	for i, l := range again {
		if len(l.Sources) != len(f.Labs[i].Sources) {
			return nil, nil, errors.New("the lab reads differently on another machine")
		}
	}
	return s, f.Labs, nil
}

// Collector starts the collector of a sweep again if it was killed.
func Collector(ctx context.Context, d *shard.Dir) error {
	r, ok, err := d.Round()
	if err != nil || !ok || r.Collect == "" || d.Over() {
		return err
	}
	return collect.Ensure(ctx, d, &r)
}

// checkRound returns an error if a scheduler ignores what a user asked for.
func checkRound(on shard.Scheduler, r *sweep.Round) error {
	switch name := on.Name(); {
	case r.Collect != "" && name != "swarm":
		return Refused{fmt.Errorf("--collect is for --on swarm: with --on %s, --results names a directory that all "+
			"machines share", name)}
	case r.Image != "" && name != "swarm":
		return Refused{fmt.Errorf("--image is for --on swarm: --on %s runs this program", name)}
	case r.Memory != 0 && name == "local":
		return Refused{errors.New("--memory: processes of this machine have no limit; leave it out, or use --on " +
			"swarm or --on slurm")}
	}
	return nil
}

// Submit writes a submission and starts its shards. After an error nothing is left.
func Submit(ctx context.Context, on shard.Scheduler, q *Request) (d *shard.Dir, err error) {
	s, _, err := Read(q)
	if err != nil {
		return nil, err
	}
	if err := checkRound(on, &q.Round); err != nil {
		return nil, err
	}
	if err := on.Check(ctx, s.Kind); err != nil {
		return nil, err
	}
	if err := store.CheckRoot(q.Results, s.Lab); err != nil {
		return nil, err
	}
	if s.Shards = q.Shards; s.Shards == 0 {
		slots, err := on.Slots(ctx, s.Kind)
		if err != nil {
			return nil, err
		}
		s.Shards = sweep.DefaultShards(len(s.Points), slots)
	}
	s.Shards = min(s.Shards, len(s.Points))
	folder := filepath.Join(q.Results, s.Lab)
	for n, now := 0, q.Now; ; n++ {
		if s.Began, err = sweep.Began(now, store.EntryNames(folder)); err != nil {
			return nil, err
		}
		name := "sweep-" + s.Stamp() + "-" + s.Kind
		if _, err = store.Claim(q.Results, s.Lab, name, "", func(path string) (err error) {
			d, err = begin(ctx, on, q, s, path)
			return err
		}); !errors.Is(err, errTaken) {
			return d, err
		}
		// The letters of a series are random, so two submitters do not choose the same once more.
		now = s.Began.Add(-time.Duration(s.Series[n%len(s.Series)]) * time.Second)
	}
}

// errTaken is returned by begin if another submitter chose the same start at the same time.
var errTaken = errors.New("another sweep has this start")

// begin makes the directory of a submission and starts its shards. After an error it is not there;
// fs.ErrExist says that it was before.
func begin(ctx context.Context, on shard.Scheduler, q *Request, s *sweep.Submission, path string,
) (d *shard.Dir, err error) {
	s.ID = filepath.Base(path)
	if err := s.Check(); err != nil {
		return nil, err
	}
	if d, err = shard.Create(path, s); err != nil {
		return nil, fmt.Errorf("create a directory for the sweep: %w", err)
	}
	if !s.Alone(store.EntryNames(filepath.Dir(path))) {
		err = errTaken
	} else if err = start(ctx, on, d, q.Round, q.Now); errors.Is(err, fs.ErrExist) {
		err = errors.New(err.Error()) // not the directory
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return d, nil
}

// start starts the next round.
func start(ctx context.Context, on shard.Scheduler, d *shard.Dir, r sweep.Round, now time.Time) error {
	last, _, err := d.Round()
	if err != nil {
		return err
	}
	r.Number, r.On, r.Began, r.Done = last.Number+1, on.Name(), now.UTC(), d.Settled()
	if err := d.AddRound(r); err != nil { // before the tasks, which read it
		return err
	}
	if err := on.Start(ctx, d, &r); err != nil {
		return errors.Join(err, d.Cancel())
	}
	return d.AddRound(r)
}

// Status returns the state of a sweep. on has the scheduler of each round by its name. Once no
// point is left to run, it reads their summaries: a damaged one is no result.
func Status(ctx context.Context, on func(name string) (shard.Scheduler, error), d *shard.Dir, now time.Time,
) (sweep.Status, error) {
	r, ok, err := d.Round()
	if err != nil {
		return sweep.Status{}, err
	}
	var tasks []sweep.Task
	var answer error
	f := d.Scan()
	if r.On == sweep.ByManifest {
		answer = errByManifest
	} else if ok && !f.Collected {
		s, err := on(r.On)
		if err != nil {
			return sweep.Status{}, err
		}
		tasks, answer = s.Tasks(ctx, d, r)
		if r.Collect != "" {
			f.Waits, f.Away = collect.Look(d, &r, slices.ContainsFunc(tasks, func(t sweep.Task) bool {
				return t.State == sweep.Running
			}))
		}
	}
	st := d.Sub.Judge(r, f, tasks, answer, now)
	if st.Done < st.Points {
		return st, nil
	}
	for _, n := range damaged(d) {
		f.Notes[n.Point] = n
	}
	return d.Sub.Judge(r, f, tasks, answer, now), nil
}

// errByManifest is the answer for tasks that a user started from a manifest.
var errByManifest = errors.New("its tasks were started from a manifest; kubectl get pods lists them")

// Manifest returns the manifest of a request for Kubernetes.
func Manifest(q *Request, k *sweep.Kubernetes) (string, error) {
	s, _, err := Read(q)
	if err != nil {
		return "", err
	}
	if s.Kind != "sim" {
		return "", Refused{errors.New("pods of a manifest may not make networks to emulate with: --engine sim")}
	}
	if s.Began, err = sweep.Began(q.Now, nil); err != nil {
		return "", err
	}
	if s.Shards = q.Shards; s.Shards == 0 {
		s.Shards = sweep.DefaultShards(len(s.Points), k.Parallel)
	}
	s.Shards = min(s.Shards, len(s.Points))
	s.ID = "sweep-" + s.Stamp() + "-" + s.Kind
	return k.Manifest(s)
}

// Cancel ends the tasks of a sweep. Results that are finished stay.
func Cancel(ctx context.Context, on func(string) (shard.Scheduler, error), d *shard.Dir) error {
	if err := d.Cancel(); err != nil {
		return err
	}
	return end(ctx, on, d)
}

// end ends the tasks of the last round, and removes what its scheduler keeps.
func end(ctx context.Context, on func(string) (shard.Scheduler, error), d *shard.Dir) error {
	r, ok, err := d.Round()
	if err != nil || !ok || r.On == sweep.ByManifest {
		return err
	}
	s, err := on(r.On)
	if err != nil {
		return err
	}
	return s.End(ctx, d, r)
}

// ErrNothingLeft is returned by Resume if no point is without a result.
var ErrNothingLeft = errors.New("every point has a result; weft sweep collect prints them")

// Resume starts the shards again, for points without a result and for those that were given up.
// Tasks of the last round are ended first. r has On, Image, Workers, Memory and Collect; with the
// same scheduler, empty ones other than Workers are as in the last round. started is false if every
// point has a result and only records of copies with other bytes were removed. note is a message
// for the user; it may be empty.
func Resume(ctx context.Context, on func(string) (shard.Scheduler, error), d *shard.Dir, r sweep.Round, now time.Time,
) (started bool, note string, err error) {
	last, _, err := d.Round()
	if err != nil {
		return false, "", err
	}
	r.On = cmp.Or(r.On, last.On, "local") // no round: its submitter was killed before
	next, err := on(r.On)
	if err != nil {
		return false, "", err
	}
	if err := checkRound(next, &r); err != nil {
		return false, "", err
	}
	if r.On == last.On {
		r.Image, r.Memory = cmp.Or(r.Image, last.Image), cmp.Or(r.Memory, last.Memory)
		r.Collect = cmp.Or(r.Collect, last.Collect)
	}
	if err := next.Check(ctx, d.Sub.Kind); err != nil {
		return false, "", err
	}
	if d.Sub.Program != store.Program() {
		return false, "", fmt.Errorf("%s was submitted by another build of weft (%s), and its results would be of "+
			"two; submit the sweep anew, or use that build", d.Sub.ID, d.Sub.Version)
	}
	forgotten, err := d.Forget()
	if err != nil {
		return false, "", err
	}
	if d.Settled() == len(d.Sub.Points) {
		if all := damaged(d); len(all) > 0 {
			return false, "", fmt.Errorf("%s: %s", d.Sub.PointName(all[0].Point), all[0].Error)
		}
		if lines := DamagedFiles(d); len(lines) > 0 {
			return false, "", fmt.Errorf("%s; move the run away, and weft sweep resume %s runs the point again",
				strings.Join(lines, "; "), d.Name())
		}
		if forgotten > 0 {
			return false, "every point has a result: of copies that disagreed the first ones stay", nil
		}
		return false, "", ErrNothingLeft
	}
	if err := Cancel(ctx, on, d); err != nil && r.On == last.On {
		return false, "", err
	} else if err != nil { // the last engine may be gone for good, and its tasks do no harm
		note = fmt.Sprintf("the tasks on %s were not removed, and may still run points: %v; weft clean removes them",
			last.On, err)
	}
	if err := d.Reopen(); err != nil {
		return false, note, err
	}
	return true, note, start(ctx, next, d, r, now)
}

// Took says how long the runs of a sweep took, how many were made at a time, and by which machines.
// It is empty if that was too short to tell: manifests have whole seconds, of each machine's clock.
func Took(runs []*record.Summary) string {
	var sum float64
	var first, last time.Time
	hosts := map[string]int{}
	for _, s := range runs {
		m, err := store.ReadManifest(s.Run)
		if s.Run == "" || err != nil {
			continue // the table has the reason
		}
		began, err1 := time.Parse(time.RFC3339, m.Started)
		ended, err2 := time.Parse(time.RFC3339, m.Ended)
		if err1 != nil || err2 != nil {
			continue
		}
		if first.IsZero() || began.Before(first) {
			first = began
		}
		if ended.After(last) {
			last = ended
		}
		sum += s.WallS
		hosts[clip.Text(m.Machine.Host)]++
	}
	span := last.Sub(first)
	if span < minSpan {
		return ""
	}
	text := fmt.Sprintf("the runs took %v in all and %v from the first to the last, %.1f at a time",
		time.Duration(sum*float64(time.Second)).Round(time.Second), span, sum/span.Seconds())
	if len(hosts) < 2 {
		return text
	}
	var had []string
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		had = append(had, fmt.Sprintf("%s made %d", host, hosts[host]))
	}
	return text + ": " + clip.Line(strings.Join(had, ", "))
}

// minSpan is the shortest sweep that Took describes. Our own choice.
const minSpan = 3 * time.Second

// summaryOf returns the summary and the manifest of a point whose run is in its place. If they are
// damaged, the error says how the point is run again.
func summaryOf(d *shard.Dir, point int) (*record.Summary, *record.Manifest, error) {
	dir, _ := d.RunDir(point)
	s, err := store.ReadSummary(dir)
	var m *record.Manifest
	if err == nil {
		m, err = store.ReadManifest(dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; move %s away, and weft sweep resume %s runs the point again", err, dir,
			d.Name())
	}
	s.Run = dir
	return s, m, d.Check(point)
}

// result returns the summary of a point whose run is in its place, with a warning if files of the
// run are damaged.
func result(d *shard.Dir, point int) (*record.Summary, error) {
	s, m, err := summaryOf(d, point)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Sub.PointName(point), err)
	}
	if damage := store.DamageInside(s.Run, m); damage != "" {
		s.Warnings = append(s.Warnings, "files "+damage)
	}
	return s, nil
}

// damaged returns a note for each point whose run is in its place and has no summary that can be
// read.
func damaged(d *shard.Dir) (all []sweep.Note) {
	for i := range d.Sub.Points {
		if _, placed := d.RunDir(i); !placed {
			continue
		}
		if _, _, err := summaryOf(d, i); err != nil {
			all = append(all, sweep.Note{Point: i, What: sweep.Damaged, Error: err.Error()})
		}
	}
	return all
}

// DamagedFiles returns a line for each point whose summary can be read and whose other files are
// damaged.
func DamagedFiles(d *shard.Dir) (lines []string) {
	for i := range d.Sub.Points {
		if _, placed := d.RunDir(i); !placed {
			continue
		}
		s, m, err := summaryOf(d, i)
		if err != nil {
			continue // Status names it
		}
		if damage := store.DamageInside(s.Run, m); damage != "" {
			lines = append(lines, fmt.Sprintf("%s: files %s (%s)", d.Sub.PointName(i), damage, s.Run))
		}
	}
	return lines
}

// Collect ends a sweep whose points are all settled: it removes tasks and temporary files, and
// returns the jobs and summaries of all points in their order. A point without a run has a summary
// that says why. The results are valid also if cleanup is an error: then the scheduler did not
// answer, and Collect or weft clean removes later what it keeps.
func Collect(ctx context.Context, on func(string) (shard.Scheduler, error), d *shard.Dir,
) (jobs []series.Job, runs []*record.Summary, cleanup, err error) {
	labs, err := shard.Labs(d.Sub, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	f := d.Scan()
	if left := len(d.Sub.Points) - d.Settled(); left > 0 {
		return nil, nil, nil, fmt.Errorf("%d of %d points have no result yet: weft sweep wait %s, or weft sweep resume",
			left, len(d.Sub.Points), d.Name())
	}
	jobs, runs = make([]series.Job, len(labs)), make([]*record.Summary, len(labs))
	for i, l := range labs {
		jobs[i] = series.Job{Lab: l, Text: []byte(d.Sub.Text), Engine: d.Sub.Kind, Sweep: d.Path,
			Series: store.Series{ID: d.Sub.Series, Began: d.Sub.Began, Number: i + 1, Of: len(labs), Sweep: d.Sub.ID}}
		if _, placed := d.RunDir(i); !placed {
			runs[i] = series.NotRun(l, d.Sub.Kind, record.Failed, f.Notes[i].Error)
			continue
		}
		if runs[i], err = result(d, i); err != nil {
			return nil, nil, nil, err
		}
	}
	if err := d.Finish(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil, err
	}
	if err := end(ctx, on, d); err != nil {
		cleanup = fmt.Errorf("the results are complete, but the shards' tasks were not removed: %w; weft sweep "+
			"collect %s tries again", err, d.Name())
	}
	return jobs, runs, cleanup, nil
}
