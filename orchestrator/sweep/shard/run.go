package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/pages"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/sweep"
	"weft/results/record"
	"weft/results/store"
)

// An Engine runs experiments: orchestrate.Run, or a fake in tests.
type Engine func(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error)

// Options are the settings of a shard's process.
type Options struct {
	Shard, Round int
	Host         string // name of the machine, for messages
	Workers      int    // processors for a simulation; 0: all
	Run          Engine
	Say          func(line string)
}

// overTime is how often a running point looks whether the sweep is over. Our own choice.
const overTime = time.Second

// MachineError is an error of the machine, such as a full disk, and not of the point.
type MachineError struct{ error }

func (e MachineError) Unwrap() error { return e.error }

// Labs reads the labs of a submission, one for each point.
func Labs(s *sweep.Submission) ([]*lab.Lab, error) {
	f, err := labfile.Load(labfile.Recorded(s.File, []byte(s.Text), s.Inputs),
		lab.Options{Set: s.Set, Engine: s.Engine})
	if err != nil {
		return nil, err
	}
	if len(f.Labs) != len(s.Points) {
		return nil, fmt.Errorf("the submission has %d points, and this weft reads %d in its lab: use the weft that "+
			"submitted it", len(s.Points), len(f.Labs))
	}
	return f.Labs, nil
}

// Run runs the points of a shard that have no result yet, and returns when all are settled. The
// error is ErrOver if the sweep was cancelled or collected meanwhile, and a MachineError if this
// machine cannot run points.
func (d *Dir) Run(ctx context.Context, o Options) error {
	if d.Over() {
		return ErrOver
	}
	if p := store.Program(); p != d.Sub.Program {
		return MachineError{fmt.Errorf("this is another build of weft than the one that submitted the sweep (%s, %s): "+
			"its results could differ; install or mount the same binary everywhere", d.Sub.Version, d.Sub.Program)}
	}
	labs, err := Labs(d.Sub)
	if err != nil {
		return MachineError{err}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		for ctx.Err() == nil {
			if d.Over() {
				end(ErrOver)
			}
			select {
			case <-ctx.Done():
			case <-time.After(overTime):
			}
		}
	}()
	for _, i := range d.Sub.PointsOf(o.Shard) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		about := d.about(i)
		switch sweep.Decide(about, o.Round, i) {
		case sweep.Skip:
		case sweep.GiveUp:
			n := sweep.Exhausted(about, o.Round, i)
			o.Say(fmt.Sprintf("%s: %s", d.Sub.PointName(i), n.Error))
			if err := d.note(n); err != nil {
				return MachineError{err}
			}
		default:
			if err := d.try(ctx, labs[i], i, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// try runs a point once. The try is on the disk as long as it has no result.
func (d *Dir) try(ctx context.Context, l *lab.Lab, point int, o Options) (err error) {
	id := rand.Text()
	mark := filepath.Join(triesFolder, fmt.Sprintf("%d-%s.json", point, id))
	t := sweep.Try{Point: point, Shard: o.Shard, Round: o.Round, Host: o.Host, Began: time.Now().UTC()}
	if err := d.writeJSON(mark, t); err != nil {
		return d.machine(err)
	}
	work := d.at(workFolder, fmt.Sprintf("%d-%s", point, id))
	if err := os.Mkdir(work, 0o755); err != nil {
		return d.machine(errors.Join(err, os.Remove(d.at(mark))))
	}
	defer func() { _ = os.RemoveAll(work) }() // what stays is removed when the sweep is collected
	err = d.attempt(ctx, l, point, work, o)
	var machine MachineError
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // asked to end, which the point is not to blame for
	} else if errors.As(err, &machine) {
		t.Error = err.Error()
		return d.machine(errors.Join(err, d.writeJSON(mark, t)))
	}
	if rerr := os.Remove(d.at(mark)); rerr != nil && err == nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = d.machine(rerr)
	}
	return err
}

// machine returns err as an error of the machine, or ErrOver if the sweep's files are gone because
// it is over.
func (d *Dir) machine(err error) error {
	if d.Over() {
		return ErrOver
	}
	return MachineError{err}
}

// attempt runs a point in the directory work and places the run. A point that fails is a result.
func (d *Dir) attempt(ctx context.Context, l *lab.Lab, point int, work string, o Options) error {
	never := func(err error) error {
		if err := d.note(sweep.Note{Point: point, What: sweep.NeverStarted, Error: err.Error()}); err != nil {
			return MachineError{err}
		}
		return nil
	}
	x, err := experiment.Build(l)
	if err != nil {
		return never(err)
	}
	s, err := o.Run(ctx, x, orchestrate.Options{
		Engine: d.Sub.Kind, Root: work, As: d.Sub.RunPath(point), LabText: []byte(d.Sub.Text),
		Inputs:  store.Inputs{Lab: d.Sub.File, Files: d.Sub.Inputs},
		Version: d.Sub.Version, Program: d.Sub.Program, Workers: o.Workers, Say: o.Say,
		Series: store.Series{ID: d.Sub.Series, Began: d.Sub.Began, Number: point + 1, Of: len(d.Sub.Points),
			Sweep: d.Sub.ID},
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case lacking(err) || s == nil && (d.Sub.Kind != "sim" || ofFiles(err)):
		return MachineError{err} // an emulation that does not start says nothing about its lab
	case s == nil:
		return never(err)
	}
	run := filepath.Join(work, d.Sub.Lab, d.Sub.RunName(point))
	if _, err := store.ReadSummary(run); err != nil {
		return MachineError{fmt.Errorf("the run cannot be read back: %w", err)}
	}
	at := *s
	at.Run = run
	if err := pages.Leave(l, &at, nil); err != nil {
		return MachineError{fmt.Errorf("report: %w", err)}
	}
	if err := d.place(point, run, o.Host); err != nil {
		return MachineError{err}
	}
	o.Say(fmt.Sprintf("%s: %s %s", d.Sub.PointName(point), s.Status, s.Error))
	return nil
}

// lacking reports whether an error is about what the machine lacks.
func lacking(err error) bool {
	for _, no := range []error{unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS, unix.ESTALE, unix.ENOMEM, unix.EMFILE} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// ofFiles reports whether an error is about a file or a directory.
func ofFiles(err error) bool {
	var file *fs.PathError
	var call *os.SyscallError
	return errors.As(err, &file) || errors.As(err, &call)
}
