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
	"weft/results/table"
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

// Labs reads the labs of a submission, one for each point. Those for which only, unless it is nil,
// returns false may be nil.
func Labs(s *sweep.Submission, only func(point int) bool) ([]*lab.Lab, error) {
	f, err := labfile.Load(labfile.Recorded(s.File, []byte(s.Text), s.Inputs),
		lab.Options{Set: s.Set, Engine: s.Engine, Only: only})
	if err != nil {
		return nil, err
	}
	same := len(f.Labs) == len(s.Points)
	for i := 0; same && i < len(f.Labs); i++ {
		same = f.Labs[i] == nil || table.Point(f.Labs[i].Point) == s.Points[i]
	}
	if !same {
		return nil, errors.New("this weft reads other points in the lab than the submission has: use the weft that " +
			"submitted it")
	}
	return f.Labs, nil
}

// Run runs the points of a shard that have no result yet, and returns when all are settled. The
// error is ErrOver if the sweep was cancelled or collected meanwhile, and a MachineError if this
// machine cannot run points.
func Run(ctx context.Context, b Backend, o Options) error {
	if b.Over() {
		return ErrOver
	}
	sub := b.Submission()
	if p := store.Program(); p != sub.Program {
		return unable(ctx, b, o, fmt.Errorf("this is another build of weft than the one that submitted the sweep "+
			"(%s, %s): its results could differ; install or mount the same binary everywhere", sub.Version,
			sub.Program))
	}
	labs, err := Labs(sub, func(point int) bool { return sub.ShardOf(point) == o.Shard })
	if err != nil {
		return unable(ctx, b, o, err)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		for ctx.Err() == nil {
			if b.Over() {
				end(ErrOver)
			}
			select {
			case <-ctx.Done():
			case <-time.After(overTime):
			}
		}
	}()
	for _, i := range sub.PointsOf(o.Shard) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := try(ctx, b, labs[i], i, o); err != nil {
			return err
		}
	}
	return nil
}

// newTry returns a try of a point, and its ID.
func newTry(point int, o Options) (id string, t sweep.Try) {
	return fmt.Sprintf("%d-%s", point, rand.Text()),
		sweep.Try{Point: point, Shard: o.Shard, Round: o.Round, Host: o.Host, Began: time.Now().UTC()}
}

// unable records why this machine runs no point of a shard, for those who ask for the status, and
// returns it as a MachineError.
func unable(ctx context.Context, b Backend, o Options, why error) error {
	for _, i := range b.Submission().PointsOf(o.Shard) {
		id, t := newTry(i, o)
		if next, err := b.Begin(ctx, id, t); err == nil && next == sweep.Run {
			t.Error = why.Error()
			_ = b.End(ctx, id, t) // the error is on standard error, too
			break
		}
	}
	return MachineError{why}
}

// try runs a point once, if it needs that.
func try(ctx context.Context, b Backend, l *lab.Lab, point int, o Options) error {
	id, t := newTry(point, o)
	next, err := b.Begin(ctx, id, t)
	if err != nil {
		return ofMachine(ctx, b, err)
	}
	if next == sweep.GiveUp {
		o.Say(b.Submission().PointName(point) + ": given up, since too many tries ended without a word")
	}
	if next != sweep.Run {
		return nil
	}
	err = attempt(ctx, b, l, id, t, o)
	var machine MachineError
	ending := ctx
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // asked to end, which the point is not to blame for
		var cancel context.CancelFunc
		ending, cancel = context.WithTimeout(context.WithoutCancel(ctx), endTime/2)
		defer cancel()
	} else if errors.As(err, &machine) {
		t.Error = err.Error()
	}
	if failed := b.End(ending, id, t); failed != nil && (err == nil || t.Error != "") {
		err = errors.Join(err, failed)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return ofMachine(ctx, b, err)
}

// ofMachine returns err as an error of the machine, or ErrOver if the sweep's files are gone
// because it is over.
func ofMachine(ctx context.Context, b Backend, err error) error {
	switch {
	case b.Over():
		return ErrOver
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return MachineError{err}
}

// attempt runs a point in the directory of a try and places the run. A point that fails is a
// result.
func attempt(ctx context.Context, b Backend, l *lab.Lab, id string, t sweep.Try, o Options) error {
	sub, point := b.Submission(), t.Point
	never := func(err error) error {
		if err := b.Never(ctx, point, err.Error()); err != nil {
			return MachineError{err}
		}
		return nil
	}
	work, err := b.Work(id)
	if err != nil {
		return MachineError{err}
	}
	x, err := experiment.Build(l)
	if err != nil {
		return never(err)
	}
	s, err := o.Run(ctx, x, orchestrate.Options{
		Engine: sub.Kind, Root: work, As: sub.RunPath(point), LabText: []byte(sub.Text),
		Inputs:  store.Inputs{Lab: sub.File, Files: sub.Inputs},
		Version: sub.Version, Program: sub.Program, Workers: o.Workers, Say: o.Say,
		Series: store.Series{ID: sub.Series, Began: sub.Began, Number: point + 1, Of: len(sub.Points), Sweep: sub.ID},
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case lacking(err) || s == nil && (sub.Kind != "sim" || ofFiles(err)):
		return MachineError{err} // an emulation that does not start says nothing about its lab
	case s == nil:
		return never(err)
	}
	run := filepath.Join(work, sub.Lab, sub.RunName(point))
	if _, err := store.ReadSummary(run); err != nil {
		return MachineError{fmt.Errorf("the run cannot be read back: %w", err)}
	}
	at := *s
	at.Run = run
	if err := pages.Leave(l, &at, nil); err != nil {
		return MachineError{fmt.Errorf("report: %w", err)}
	}
	if err := b.Place(ctx, id, t, run); err != nil {
		return MachineError{err}
	}
	o.Say(fmt.Sprintf("%s: %s %s", sub.PointName(point), s.Status, s.Error))
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
