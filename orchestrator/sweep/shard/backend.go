package shard

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"weft/orchestrator/sweep"
)

// A Backend keeps the state of a sweep for the tasks of its shards. It is the sweep's directory
// where all machines share that (Dir), or else a collector (package collect).
type Backend interface {
	Submission() *sweep.Submission
	// Over reports whether the sweep was cancelled or collected.
	Over() bool
	// SettledIn returns the number of points of a shard that need no further try.
	SettledIn(ctx context.Context, shard int) (int, error)
	// Begin returns what to do with the point of a try. If that is sweep.Run, the try is recorded
	// under its ID until End. It may be repeated.
	Begin(ctx context.Context, id string, t sweep.Try) (sweep.Next, error)
	// Work returns the empty directory of a try.
	Work(id string) (path string, err error)
	// Place puts the run of a try, which is below its directory, into the place of its point.
	Place(ctx context.Context, id string, t sweep.Try, run string) error
	// Never records why a point could not be built.
	Never(ctx context.Context, point int, why string) error
	// End ends a try and removes its directory. The try stays on record if t.Error says what the
	// machine lacked.
	End(ctx context.Context, id string, t sweep.Try) error
	// Arguments returns those of weft sweep shard that name the backend.
	Arguments() []string
}

// Submission implements Backend.
func (d *Dir) Submission() *sweep.Submission { return d.Sub }

// Arguments implements Backend.
func (d *Dir) Arguments() []string { return []string{d.Path} }

// SettledIn implements Backend.
func (d *Dir) SettledIn(_ context.Context, shard int) (n int, err error) {
	for _, i := range d.Sub.PointsOf(shard) {
		if d.SettledPoint(i) {
			n++
		}
	}
	return n, nil
}

// SettledPoint reports whether a point needs no further try.
func (d *Dir) SettledPoint(i int) bool { return sweep.Decide(d.about(i), 0, i) == sweep.Skip }

// tryFile returns the name of the file of a try.
func tryFile(id string) string { return filepath.Join(triesFolder, id+".json") }

// Try returns the try with an ID, which has not ended.
func (d *Dir) Try(id string) (sweep.Try, error) { return readJSON[sweep.Try](d, tryFile(id)) }

// Begin implements Backend. A try is on the disk as long as it has no result.
func (d *Dir) Begin(_ context.Context, id string, t sweep.Try) (sweep.Next, error) {
	if !d.has(tryFile(id)) {
		if err := d.Check(t.Point); err != nil {
			return sweep.Run, err
		}
		about := d.about(t.Point)
		switch next := sweep.Decide(about, t.Round, t.Point); next {
		case sweep.GiveUp:
			return next, d.note(sweep.Exhausted(about, t.Round, t.Point))
		case sweep.Skip:
			return next, nil
		}
		if err := d.writeJSON(tryFile(id), t); err != nil {
			return sweep.Run, err
		}
	}
	err := os.MkdirAll(d.at(workFolder, id), 0o755)
	if err != nil {
		err = errors.Join(err, os.Remove(d.at(tryFile(id))))
	}
	return sweep.Run, err
}

// Work implements Backend.
func (d *Dir) Work(id string) (string, error) { return d.at(workFolder, id), nil }

// Place implements Backend.
func (d *Dir) Place(_ context.Context, _ string, t sweep.Try, run string) error {
	return d.place(t.Point, run, t.Host)
}

// Never implements Backend.
func (d *Dir) Never(_ context.Context, point int, why string) error {
	return d.note(sweep.Note{Point: point, What: sweep.NeverStarted, Error: why})
}

// End implements Backend.
func (d *Dir) End(_ context.Context, id string, t sweep.Try) error {
	_ = os.RemoveAll(d.at(workFolder, id)) // what stays is removed when the sweep is collected
	if t.Error != "" {
		return d.writeJSON(tryFile(id), t)
	}
	if err := os.Remove(d.at(tryFile(id))); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
