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

// quarantine takes down a lab whose journal cannot be believed, by the marks alone, and puts its folder aside: what the
// journal would have named besides is for people to see. The lab's lock is held.
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
		if err := docker.RemoveOf(ctx, c.Where, name, c.Name); err != nil {
			return fmt.Errorf("lab %s: %w", name, err)
		}
	}
	aside, err := r.putAside(name)
	if missing(err) { // its supervisor has removed everything
		return nil
	}
	if err != nil {
		return fmt.Errorf("lab %s: %w", name, err)
	}
	o.say("%s: %v; %d processes with its mark were ended, what is left of its folder is now %s", name, damage, ended, aside)
	return nil
}

// remains are the marks of a lab's processes, and its containers, as far as its folder still tells.
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

// ErrUnknown is returned for a lab that is gone but for what only another version of Weft can undo.
var ErrUnknown = errors.New("this version of Weft cannot undo")

// finish removes what is left of a lab whose journal was rolled back. Where that named what nobody here knows, the journal
// is kept, with all the folder, and says so: the lab's name is free again, and what was not understood was not touched.
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
	return fmt.Errorf("lab %s: %w %s, which its journal names, and has left that alone; all else of the lab is removed; the journal is in %s",
		name, ErrUnknown, some, aside)
}

// damagedSuffix ends the names of folders that were put aside. It is no part of a lab's name.
const damagedSuffix = ".damaged"

// putAside renames the folder of a lab, and returns its new path.
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
