package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
)

// quarantine takes down a lab whose journal is damaged. It ends the processes by their mark alone
// and renames the folder, so that a person can see what else the journal would have named. The
// caller holds the lab's lock.
func quarantine(ctx context.Context, r *Root, dir *os.Root, name string, damage error, o Options) error {
	if err := endSupervisor(r, name, o); err != nil {
		o.say("%s: %v", name, err)
	}
	ids, containers := remains(dir)
	ended := 0
	for _, id := range ids {
		pids, err := marked(id)
		if err == nil {
			err = killMarked(ctx, id)
		}
		if err != nil {
			return fmt.Errorf("lab %s: %w", name, err)
		}
		ended += len(pids)
	}
	for _, c := range containers {
		if err := docker.Remove(ctx, c.Where, name, c.Name); err != nil {
			return fmt.Errorf("lab %s: %w", name, err)
		}
	}
	aside, err := r.putAside(name)
	if missing(err) { // the supervisor has removed everything
		return nil
	}
	if err != nil {
		return fmt.Errorf("lab %s: %w", name, err)
	}
	o.say("%s: %v; ended %d processes with its mark; the rest of its folder is now %s", name, damage, ended, aside)
	return nil
}

// remains returns the marks of a lab's processes, and its containers, as far as the files in its
// folder can be read.
func remains(dir *os.Root) (ids []string, containers []entry) {
	j := new(Journal)
	if text, err := readJournal(dir, journalFile); err == nil {
		_ = j.read(text) // up to the damage
	}
	if j.deployment != "" {
		ids = append(ids, j.deployment)
	}
	if d, err := readDeployment(dir); err == nil && d.ID != j.deployment && deploymentName.MatchString(d.ID) {
		ids = append(ids, d.ID)
	}
	for _, e := range j.entries {
		if e.Kind == runtime.Container && !e.Undone {
			containers = append(containers, e)
		}
	}
	return ids, containers
}

// ErrUnknown is returned if a journal names operations that only another version of Weft can undo.
// Everything else of the lab is gone.
var ErrUnknown = errors.New("this version of Weft cannot undo")

// finish removes what is left of a lab after its journal was rolled back. If the journal names
// unknown operations, finish renames the folder instead of removing it and returns ErrUnknown: the
// lab's name is free again, and what the operations made is untouched.
func (o *Options) finish(r *Root, name string, unknown []string) error {
	if len(unknown) == 0 {
		return removeFolder(r, name)
	}
	aside, err := r.putAside(name)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lab %s: %w", name, err)
	}
	some := strings.Join(unknown[:min(3, len(unknown))], ", ")
	if n := len(unknown) - 3; n > 0 {
		some += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("lab %s: %w %s, which its journal names, and has left that in place; everything else of the "+
		"lab is removed; the journal is in %s",
		name, ErrUnknown, some, aside)
}

// damagedSuffix ends the names of folders that were put aside. No lab's name may contain it.
const damagedSuffix = ".damaged"

// putAside renames the folder of a lab and returns its new path.
func (r *Root) putAside(name string) (string, error) {
	for n := 1; ; n++ {
		aside := name + damagedSuffix
		if n > 1 {
			aside += fmt.Sprint(n)
		}
		if _, err := r.dir.Lstat(aside); err == nil {
			continue
		} else if !missing(err) {
			return "", err
		}
		err := r.dir.Rename(name, aside)
		return strings.TrimSuffix(r.path, "/") + "/" + aside, err
	}
}
