package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-multierror"

	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
)

// Swept is what Clean did about a lab.
type Swept struct {
	Lab  string `json:"lab"`
	What string `json:"what"` // removed, running, broken, busy, failed
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
	groups, failed := namespace.CleanGroups(ctx)
	for _, name := range groups {
		swept = append(swept, Swept{filepath.Base(name), "removed", "a control group whose owner is gone"})
	}
	return swept, errors.Join(err, failed)
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
	if r.wanted(name) {
		if s, owned := r.owned(name); owned {
			return s
		}
	}
	var said []string
	o.Say = func(line string) { said = append(said, line) }
	if err := takeDown(ctx, r, name, o); err != nil {
		return Swept{name, "failed", err.Error()}
	}
	return Swept{name, "removed", strings.Join(said, "; ")}
}

// owned says how a lab is whose supervisor is there. One that does not answer may be stopped, or the machine very busy:
// only that nobody listens means that it has crashed.
func (r *Root) owned(name string) (s Swept, owned bool) {
	state, err := stateOf(r, name)
	for try := 0; err != nil && isEnd(err) && try < 2; try++ { // it ended before it answered, or closed this one connection
		state, err = stateOf(r, name)
	}
	switch {
	case err == nil && state.Broken != "":
		return Swept{name, "broken", state.Broken + "; weft destroy " + name + " takes it down"}, true
	case err == nil:
		return Swept{name, "running", "it is up; weft destroy " + name + " takes it down"}, true
	case errors.Is(err, ErrNotDeployed) || errors.Is(err, ErrCrashed):
		return Swept{}, false
	}
	return Swept{name, "busy", err.Error()}, true
}

// wanted says whether a lab is meant to be up, by its journal, as far as that can be read: its lock is held, so that no
// deployment is on its way.
func (r *Root) wanted(name string) bool {
	text, err := readJournal(r.dir, filepath.Join(name, journalFile))
	if missing(err) {
		return false
	}
	j := new(Journal)
	return err != nil || j.read(text) != nil || j.committed || j.deployment == ""
}

// strays ends supervisors of this state directory whose lab has no folder any more, or has another supervisor.
func (r *Root) strays(ctx context.Context) ([]Swept, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var swept []Swept
	seen := map[string]bool{}
	for _, f := range files {
		id, lab := r.supervisorOf(filepath.Dir(f))
		if id == "" || seen[id] {
			continue
		}
		seen[id] = true
		ended, err := endStray(ctx, r.path, lab, id)
		if err != nil {
			return swept, err
		}
		if ended {
			swept = append(swept, Swept{lab, "removed", "a supervisor without a folder"})
		}
	}
	return swept, nil
}

// endStray ends the supervisor of a deployment unless the lab's journal knows it. The journal is read with the lab's lock
// held, in the directory that has the path now: a supervisor is started after its journal was begun, under that lock.
func endStray(ctx context.Context, path, lab, deployment string) (bool, error) {
	r, lock, err := beginWithin(path, lab, 0)
	if errors.Is(err, ErrLocked) {
		return false, nil // whoever has it brings it up or takes it down
	}
	if err != nil {
		return false, err
	}
	defer r.Close()
	defer r.Remove()
	defer lock.Unlock()
	text, err := readJournal(r.dir, filepath.Join(lab, journalFile))
	j := new(Journal)
	switch {
	case missing(err):
	case errors.Is(err, errDamaged):
		return false, nil // see quarantine
	case err != nil:
		return false, fmt.Errorf("lab %s: journal: %w", lab, err)
	case j.read(text) != nil || j.deployment == "" || j.deployment == deployment:
		return false, nil
	}
	return true, killMarked(ctx, deployment)
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
