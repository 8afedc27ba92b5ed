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
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
)

// Swept is one result of Clean: a lab, or something else that was left, and what became of it.
type Swept struct {
	Lab  string `json:"lab"`
	What Fate   `json:"what"`
	Why  string `json:"why,omitempty"`
}

// A Fate is what became of a lab, or of what one left behind.
type Fate string

// Fates.
const (
	Removed Fate = "removed"
	Running Fate = "running" // it is up, and left alone
	Broken  Fate = "broken"  // its network has ended, and it is left alone
	Busy    Fate = "busy"    // another command works on it
	Failed  Fate = "failed"  // something of it may be left

	// NotLookedAt is of a kind of leftovers that Clean could not look for. Why has the reason.
	NotLookedAt Fate = "not looked at"
)

func (s Swept) String() string {
	if s.Why == "" {
		return s.Lab + ": " + string(s.What)
	}
	return fmt.Sprintf("%s: %s (%s)", s.Lab, s.What, s.Why)
}

// Clean removes everything that crashed deployments left, whether the state directory knows it or
// not. Labs that are up are left alone.
func Clean(ctx context.Context, path string, o Options) ([]Swept, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	swept, err := cleanDeployments(ctx, path, o)
	strays, failed := endStrays(ctx, "")
	swept, err = append(swept, strays...), cleanup.Join(err, failed)
	names, failed := namespace.CleanProcesses(ctx)
	for _, name := range names {
		swept = append(swept, Swept{name, Removed, "a process whose launcher is gone"})
	}
	err = cleanup.Join(err, failed)
	containers, unseen, failed := cleanContainers(ctx, "", runtime.Owner.Dead)
	for _, name := range containers {
		swept = append(swept, Swept{name, Removed, "a container whose owner is gone"})
	}
	if unseen != "" {
		swept = append(swept, Swept{"containers of labs", NotLookedAt, unseen})
	}
	err = cleanup.Join(err, failed)
	groups, failed := namespace.CleanGroups(ctx, runtime.Owner.Dead)
	for _, name := range groups {
		swept = append(swept, Swept{filepath.Base(name), Removed, "a control group whose owner is gone"})
	}
	return swept, cleanup.Join(err, failed)
}

// cleanContainers removes the containers of dead owners on the engine at host (empty: DOCKER_HOST
// or the default one) and returns their names. unseen is why it could not look for them; it is
// empty if it looked, or if the default engine is not there.
func cleanContainers(ctx context.Context, host string, dead func(runtime.Owner) bool) (names []string, unseen string,
	err error) {
	names, err = docker.Clean(ctx, host, dead)
	switch {
	case !errors.Is(err, docker.ErrUnusable):
		return names, "", err
	case missing(err) && host == "" && os.Getenv(docker.HostVar) == "": // no engine, no containers
		return names, "", nil
	}
	return names, strings.TrimPrefix(err.Error(), docker.ErrUnusable.Error()+": "), nil
}

// cleanDeployments removes the crashed labs of a state directory.
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
		if s.What == Failed {
			all.Add(fmt.Errorf("%s: %s", name, s.Why))
		}
		swept = append(swept, s)
	}
	locks, err := r.locks()
	if err != nil {
		all.Add(err)
	}
	for _, name := range locks { // left by a process that was killed before it made the folder
		if lock, err := r.Lock(name, inheritedLockTime); err == nil {
			all.Add(lock.Unlock())
		}
	}
	return swept, all.Err()
}

// inheritedLockTime is how long Clean waits for a lock that a killed process may have held. A child
// that it was just starting inherits the lock until its exec. Our own choice: that takes
// milliseconds, and on a busy machine a second.
const inheritedLockTime = 3 * time.Second

// sweep removes one lab if nobody owns it.
func (r *Root) sweep(ctx context.Context, name string, o Options) Swept {
	lock, err := r.Lock(name, inheritedLockTime)
	if errors.Is(err, ErrLocked) {
		return Swept{name, Busy, err.Error()}
	}
	if err != nil {
		return Swept{name, Failed, err.Error()}
	}
	defer lock.Unlock()
	if r.meantToStay(name) {
		if s, owned := r.supervisorStatus(name); owned {
			return s
		}
	}
	var said []string
	o.Say = func(line string) { said = append(said, line) }
	if err := takeDown(ctx, r, name, o); err != nil {
		return Swept{name, Failed, err.Error()}
	}
	return Swept{name, Removed, strings.Join(said, "; ")}
}

// supervisorStatus returns what Clean reports about a lab whose supervisor is there. A supervisor
// that does not answer may be stopped, or the machine very busy: the lab counts as crashed only if
// nobody listens on its socket.
func (r *Root) supervisorStatus(name string) (s Swept, owned bool) {
	state, err := stateOf(r, name)
	switch {
	case err == nil && state.Broken != "":
		return Swept{name, Broken, state.Broken + "; weft destroy " + name + " takes it down"}, true
	case err == nil:
		return Swept{name, Running, "it is up; weft destroy " + name + " takes it down"}, true
	case errors.Is(err, ErrNotDeployed) || errors.Is(err, ErrCrashed):
		return Swept{}, false
	}
	return Swept{name, Busy, err.Error()}, true
}

// meantToStay reports whether a lab is meant to be up according to its journal. The caller holds
// the lab's lock, so nobody is deploying it.
func (r *Root) meantToStay(name string) bool {
	dir, err := r.folder(name)
	if err != nil {
		return false
	}
	defer dir.Close()
	j, _, err := readJournal(dir)
	return err == nil && j.committed || err != nil && !missing(err)
}
