package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
)

// Down takes a lab down and removes every trace of it. A lab that is not there is no error: found says whether there
// was anything.
func Down(ctx context.Context, path, name string, o Options) (found bool, err error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	r, lock, err := begin(path, name)
	if err != nil {
		return false, err
	}
	defer r.Close()
	defer r.Remove()
	defer lock.Unlock()
	if _, err := r.dir.Lstat(name); missing(err) {
		return false, nil
	}
	return true, takeDown(ctx, r, name, o)
}

// takeDown does so with the lock held.
func takeDown(ctx context.Context, r *Root, name string, o Options) error {
	dir, err := r.dir.OpenRoot(name)
	if missing(err) {
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
		return fmt.Errorf("lab %s: %w", name, errors.Join(err, again))
	}
	defer j.Close()
	var all *multierror.Error
	if err != nil {
		all = multierror.Append(all, err)
	}
	if err := o.rollback(ctx, dir, j); err != nil {
		return fmt.Errorf("lab %s: %w", name, sentence(multierror.Append(all, err)))
	}
	return removeFolder(r, name) // what the supervisor did not say no longer matters
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

// endTime is how long a supervisor may take to end its lab in order before it is killed. Ours.
const endTime = 5 * time.Second

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

// Swept is what Clean did about a lab.
type Swept struct {
	Lab  string `json:"lab"`
	What string `json:"what"` // removed, running, busy, failed
	Why  string `json:"why,omitempty"`
}

// Clean removes whatever crashed deployments left, and nothing else: not labs that are up.
func Clean(ctx context.Context, path string, o Options) ([]Swept, error) {
	swept, err := cleanDeployments(ctx, path, o)
	containers, failed := docker.Clean(ctx, "")
	for _, name := range containers {
		swept = append(swept, Swept{name, "removed", "a container whose owner is gone"})
	}
	if failed != nil && !errors.Is(failed, docker.ErrUnusable) { // without an engine there are none
		err = errors.Join(err, failed)
	}
	return swept, err
}

// cleanDeployments does so for what the state directory knows.
func cleanDeployments(ctx context.Context, path string, o Options) ([]Swept, error) {
	if _, err := os.Lstat(path); missing(err) {
		return nil, nil
	}
	r, err := OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer r.Remove()
	names, err := r.Labs()
	if err != nil {
		return nil, err
	}
	var swept []Swept
	var all *multierror.Error
	for _, name := range names {
		s := r.sweep(ctx, name, o)
		if s.What == "failed" {
			all = multierror.Append(all, fmt.Errorf("%s: %s", name, s.Why))
		}
		swept = append(swept, s)
	}
	locks, err := r.locks()
	if err != nil {
		all = multierror.Append(all, err)
	}
	for _, name := range locks { // of a process that was killed between taking the lock and making the folder
		if lock, err := r.Lock(name, 0); err == nil {
			if err := lock.Unlock(); err != nil {
				all = multierror.Append(all, err)
			}
		}
	}
	strays, err := r.strays(ctx)
	if err != nil {
		all = multierror.Append(all, err)
	}
	return append(swept, strays...), sentence(all)
}

// sweep removes one lab if nobody owns it.
func (r *Root) sweep(ctx context.Context, name string, o Options) Swept {
	lock, err := r.Lock(name, 0)
	if errors.Is(err, ErrLocked) {
		return Swept{name, "busy", err.Error()}
	}
	if err != nil {
		return Swept{name, "failed", err.Error()}
	}
	defer lock.Unlock()
	if _, err := stateOf(r, name); err == nil && r.committed(name) {
		return Swept{name, "running", "it is up; weft destroy " + name + " takes it down"}
	}
	if err := takeDown(ctx, r, name, o); err != nil {
		return Swept{name, "failed", err.Error()}
	}
	return Swept{name, "removed", ""}
}

// committed says whether a lab is meant to be up, by its journal.
func (r *Root) committed(name string) bool {
	text, err := r.dir.ReadFile(filepath.Join(name, journalFile))
	j := new(Journal)
	return err == nil && j.read(text) == nil && j.committed
}

// strays ends supervisors of this state directory whose lab has no folder any more.
func (r *Root) strays(ctx context.Context) ([]Swept, error) {
	known := map[string]bool{}
	names, err := r.Labs()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if text, err := r.dir.ReadFile(filepath.Join(name, journalFile)); err == nil {
			j := new(Journal)
			_ = j.read(text)
			known[j.deployment] = true
		}
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var swept []Swept
	for _, f := range files {
		id, lab := r.supervisorOf(filepath.Dir(f))
		if id == "" || known[id] {
			continue
		}
		if err := killMarked(ctx, id); err != nil {
			return swept, err
		}
		known[id] = true
		swept = append(swept, Swept{lab, "removed", "a supervisor without a folder"})
	}
	return swept, nil
}

// supervisorOf returns the deployment and the lab of a process, given its folder in /proc, that is a supervisor for
// this state directory: by its mark and its arguments.
func (r *Root) supervisorOf(proc string) (deployment, lab string) {
	text, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	if err != nil || len(args) < 3 || args[0] != "weft" || args[len(args)-2] != r.path || !labName.MatchString(args[len(args)-1]) {
		return "", ""
	}
	env, err := os.ReadFile(filepath.Join(proc, "environ"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", ""
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if id, ok := strings.CutPrefix(string(v), markVar+"="); ok && deploymentName.MatchString(id) {
			return id, args[len(args)-1]
		}
	}
	return "", ""
}
