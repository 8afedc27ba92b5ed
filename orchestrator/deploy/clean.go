package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
)

// Swept is what Clean did about a lab.
type Swept struct {
	Lab  string `json:"lab"`
	What string `json:"what"` // removed, running, broken, busy, failed
	Why  string `json:"why,omitempty"`
}

// Clean removes whatever crashed deployments left, whether the state directory knows them or not, and nothing else: not
// labs that are up.
func Clean(ctx context.Context, path string, o Options) ([]Swept, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	swept, err := cleanDeployments(ctx, path, o)
	strays, failed := cleanStrays(ctx, path)
	swept, err = append(swept, strays...), cleanup.Join(err, failed)
	containers, failed := docker.Clean(ctx, "")
	for _, name := range containers {
		swept = append(swept, Swept{name, "removed", "a container whose owner is gone"})
	}
	if failed != nil && !errors.Is(failed, docker.ErrUnusable) { // without an engine there are none
		err = cleanup.Join(err, failed)
	}
	groups, failed := namespace.CleanGroups(ctx)
	for _, name := range groups {
		swept = append(swept, Swept{filepath.Base(name), "removed", "a control group whose owner is gone"})
	}
	return swept, cleanup.Join(err, failed)
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
	var all cleanup.Errors
	for _, name := range names {
		s := r.sweep(ctx, name, o)
		if s.What == "failed" {
			all.Add(fmt.Errorf("%s: %s", name, s.Why))
		}
		swept = append(swept, s)
	}
	locks, err := r.locks()
	if err != nil {
		all.Add(err)
	}
	for _, name := range locks { // of a process that was killed between taking the lock and making the folder
		if lock, err := r.Lock(name, heirTime); err == nil {
			all.Add(lock.Unlock())
		}
	}
	return swept, all.Err()
}

// heirTime is how long a lock is waited for that may be a killed process's: a child that it was just starting holds what it
// had open until it has become another program. Ours: that takes milliseconds, and a busy machine a second.
const heirTime = 3 * time.Second

// sweep removes one lab if nobody owns it.
func (r *Root) sweep(ctx context.Context, name string, o Options) Swept {
	lock, err := r.Lock(name, heirTime)
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
