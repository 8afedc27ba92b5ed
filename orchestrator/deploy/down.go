package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
)

// Down takes a lab down and removes every trace of it, supervisors that have lost their folder
// included. found is false, without an error, if there was nothing.
func Down(ctx context.Context, path, name string, o Options) (found bool, err error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	r, lock, err := begin(path, name)
	if err == nil { // without a state directory, every supervisor of one there is a stray
		defer r.Close()
		defer r.Remove()
		defer lock.Unlock()
		_, missed := r.dir.Lstat(name)
		found = !missing(missed)
		err = takeDown(ctx, r, name, o)
	}
	strays, failed := EndStrays(ctx, name, o)
	return found || strays > 0, cleanup.Join(err, failed)
}

// takeDown takes a lab down. The caller holds the lab's lock.
func takeDown(ctx context.Context, r *Root, name string, o Options) error {
	dir, err := r.folder(name)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lab %s: %w", name, err)
	}
	defer dir.Close()
	j, err := openJournal(dir, o.Step)
	if missing(err) { // killed before there was a journal, or the supervisor has just removed everything
		lab := r.isLab(name)
		if _, gone := r.dir.Lstat(name); !lab && !missing(gone) {
			return fmt.Errorf("lab %s: %s has files and no journal, so it is no lab's folder; move it, or set %s",
				name, filepath.Join(r.path, name), RootVar)
		}
		return removeFolder(r, name)
	}
	if err != nil {
		return fmt.Errorf("lab %s: %w", name, err)
	}
	o.step("before end")
	j.End()
	if err := j.Close(); err != nil {
		return fmt.Errorf("lab %s: %w", name, err)
	}
	o.step("before end supervisor")
	err = endSupervisor(r, name, o)
	o.step("after end supervisor")
	j, reopened := openJournal(dir, o.Step) // the supervisor may have added what it took down
	if missing(reopened) {                  // the supervisor has removed everything
		return removeFolder(r, name)
	}
	if reopened != nil {
		return fmt.Errorf("lab %s: %w", name, cleanup.Join(err, reopened))
	}
	defer j.Close()
	var all cleanup.Errors
	all.Add(err)
	if err := o.rollback(ctx, dir, j); err != nil {
		all.Add(err)
		return fmt.Errorf("lab %s: %w", name, all.Err())
	}
	return removeFolder(r, name)
}

// step reports a step to o.Step, if there is one.
func (o *Options) step(step string) {
	if o.Step != nil {
		o.Step(step)
	}
}

// rollback undoes everything that a journal names. It kills the deployment's processes first:
// Rollback would reach the supervisor, the journal's first operation, last, and until then the
// supervisor could make more.
func (o *Options) rollback(ctx context.Context, dir *os.Root, j *Journal) error {
	deployment := j.Deployment()
	if deployment != "" {
		if err := killMarked(ctx, deployment); err != nil {
			return err
		}
	}
	return j.Rollback(ctx, o.undoers(dir))
}

// undoers returns how each kind of operation is undone.
func (o *Options) undoers(dir *os.Root) map[string]undoer {
	by := map[string]undoer{
		kindFile:        removeFile(dir),
		kindSupervisor:  func(ctx context.Context, _, deployment string) error { return killMarked(ctx, deployment) },
		runtime.Process: func(context.Context, string, string) error { return nil }, // ended with the supervisor
		runtime.Container: func(ctx context.Context, host, name string) error {
			return docker.Remove(ctx, host, name)
		},
		runtime.Group: func(ctx context.Context, _, path string) error { return namespace.RemoveGroup(ctx, path) },
	}
	maps.Copy(by, o.Undo)
	return by
}

// removeFolder removes the folder of a lab with the files that Weft makes in it, the journal last.
// It returns an error if the folder holds others, and leaves those.
func removeFolder(r *Root, name string) error {
	for _, file := range []string{labFile, deploymentFile, socketFile, eventsFile, logFile, journalFile} {
		if err := r.dir.Remove(filepath.Join(name, file)); err != nil && !missing(err) {
			return fmt.Errorf("lab %s: %w", name, err)
		}
	}
	if err := r.dir.Remove(name); err != nil && !missing(err) {
		return fmt.Errorf("lab %s: its folder holds what Weft did not make: %w", name, err)
	}
	return nil
}

// endTime is the time limit for a supervisor to end its lab in order before it is killed. Our own
// choice: longer than the supervisor waits for a container engine that is restarting, so that it
// can report itself what it could not take down.
const endTime = 12 * time.Second

// endSupervisor asks the supervisor, if there is one, to end the lab in order. A supervisor that
// does not is killed later by its mark.
func endSupervisor(r *Root, name string, o Options) error {
	c, err := dial(r, name)
	if err != nil {
		return nil // not there, or crashed
	}
	defer c.Close()
	pid := c.pid
	var ended Ended
	_ = c.conn.SetReadDeadline(time.Now().Add(endTime))
	err = c.conn.SendValue(kindEnd, nil)
	if err == nil {
		_, err = c.conn.Expect(kindEnded, &ended)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("process %d does not answer within %v", pid, endTime)
	}
	if err != nil {
		o.say("%s: its supervisor did not end it in order: %v; killing the supervisor", name, err)
		return nil
	}
	if err := awaitEnd(pid, endTime); err != nil {
		o.say("%s: supervisor: %v; killing it", name, err)
	}
	if ended.Error != "" {
		return errors.New(ended.Error)
	}
	return nil
}
