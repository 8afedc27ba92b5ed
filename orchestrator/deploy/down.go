package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
)

// Down takes a lab down and removes every trace of it, supervisors that have lost their folder among them. A lab that is
// not there is no error: found says whether there was anything.
func Down(ctx context.Context, path, name string, o Options) (found bool, err error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	r, lock, err := begin(path, name)
	if err != nil { // without a state directory there is no folder, and every supervisor of one there is a stray
		strays, failed := r.endStrays(ctx, name, o)
		return strays > 0, cleanup.Join(err, failed)
	}
	defer r.Close()
	defer r.Remove()
	defer lock.Unlock()
	if _, err := r.dir.Lstat(name); !missing(err) {
		found = true
	}
	err = takeDown(ctx, r, name, o)
	strays, failed := r.endStrays(ctx, name, o)
	return found || strays > 0, cleanup.Join(err, failed)
}

// takeDown does so with the lock held.
func takeDown(ctx context.Context, r *Root, name string, o Options) error {
	dir, err := r.folder(name)
	if missing(err) {
		return nil
	}
	if errors.Is(err, errForeign) {
		aside, failed := r.putAside(name)
		if failed != nil {
			return fmt.Errorf("lab %s: %w", name, cleanup.Join(err, failed))
		}
		o.say("%s: %v; it is now %s", name, err, aside)
		return nil
	}
	if err != nil {
		return fmt.Errorf("lab %s: %w", name, err)
	}
	defer dir.Close()
	j, err := openJournal(dir, o.Step)
	if missing(err) { // killed before there was one: the folder is all there is
		return removeFolder(r, name)
	}
	if err == nil && j.Deployment() == "" {
		if _, there := readDeployment(dir); there == nil { // killed before its first line there is nothing else
			err = fmt.Errorf("journal: %w: it is empty", errDamaged)
			j.Close()
		}
	}
	if errors.Is(err, errDamaged) {
		return quarantine(ctx, r, dir, name, err, o)
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
	j, again := openJournal(dir, o.Step) // the supervisor may have written in it what it took down
	if missing(again) {                  // it has taken down everything, itself included
		return removeFolder(r, name)
	}
	if again != nil {
		return fmt.Errorf("lab %s: %w", name, cleanup.Join(err, again))
	}
	defer j.Close()
	var all cleanup.Errors
	all.Add(err)
	if err := o.rollback(ctx, dir, j); err != nil {
		all.Add(err)
		return fmt.Errorf("lab %s: %w", name, all.Err())
	}
	return o.finish(r, name, j.Unknown(o.undoers(dir))) // what the supervisor did not say no longer matters
}

func (o *Options) step(step string) {
	if o.Step != nil {
		o.Step(step)
	}
}

// rollback undoes all that a journal names.
func (o *Options) rollback(ctx context.Context, dir *os.Root, j *Journal) error {
	deployment := j.Deployment()
	// Nodes end with their supervisor, which the journal names first and Rollback would reach last: while it is there
	// it could do more. So it goes first, in any case.
	if deployment != "" {
		if err := killMarked(ctx, deployment); err != nil {
			return err
		}
	}
	return j.Rollback(ctx, o.undoers(dir))
}

// undoers undo each kind of operation.
func (o *Options) undoers(dir *os.Root) map[string]undoer {
	by := map[string]undoer{
		kindFile:          removeFile(dir),
		kindSupervisor:    func(ctx context.Context, _, deployment string) error { return killMarked(ctx, deployment) },
		runtime.Process:   func(context.Context, string, string) error { return nil }, // it ended with the supervisor
		runtime.Container: docker.Remove,
		runtime.Group:     func(ctx context.Context, _, path string) error { return namespace.RemoveGroup(ctx, path) },
	}
	maps.Copy(by, o.Undo)
	return by
}

// removeFolder removes what is left of a lab: the journal and the folder.
func removeFolder(r *Root, name string) error {
	if err := r.dir.RemoveAll(name); err != nil {
		return fmt.Errorf("lab %s: %w", name, err)
	}
	return nil
}

// endTime is how long a supervisor may take to end its lab in order before it is killed. Ours: longer than it waits for an
// engine that is being restarted, so that it can say itself what it could not take down.
const endTime = 12 * time.Second

// endSupervisor asks the supervisor, if it is there, to end the lab in order. One that does not is killed afterwards, by
// its mark.
func endSupervisor(r *Root, name string, o Options) error {
	c, err := dial(r, name)
	if err != nil {
		return nil // it is not there, or has crashed
	}
	defer c.Close()
	pid := c.pid
	var ended Ended
	_ = c.conn.SetReadDeadline(time.Now().Add(endTime))
	err = c.conn.SendValue(kindEnd, nil)
	if err == nil {
		_, err = c.conn.Expect(kindEnded, &ended)
	}
	if err != nil {
		o.say("%s: its supervisor does not end it: %v; killing it", name, err)
		return nil
	}
	if err := awaitEnd(pid, endTime); err != nil {
		o.say("%s: %v; killing it", name, err)
	}
	if ended.Error != "" {
		return errors.New(ended.Error)
	}
	return nil
}
