package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
)

// A supervisor whose folder was removed (rm -rf, or a logout that takes XDG_RUNTIME_DIR away) runs on, and its lab with
// it, where no name leads to it any more. Such strays are found among processes, by their mark and their arguments: see
// docs/adr/0100-what-clean-may-judge.md.

// supervised is a supervisor that runs, as /proc shows it.
type supervised struct {
	pid        int
	deployment string        // its mark
	path, lab  string        // its arguments: the state directory, as it sees it, and the lab
	engine     string        // its DOCKER_HOST
	owner      runtime.Owner // what its containers and control groups are labelled with
}

// supervisors returns the supervisors of this user in this PID namespace, those of a lab or, with an empty name, all.
func supervisors(lab string) (all []supervised) {
	runtime.Processes(func(pid int) bool {
		s, ok := supervisorAt(pid)
		if ok = ok && pid != os.Getpid() && (lab == "" || s.lab == lab); ok {
			all = append(all, s)
		}
		return ok
	})
	return all
}

// supervisorAt says whether a process is such a supervisor.
func supervisorAt(pid int) (s supervised, ok bool) {
	args := runtime.Arguments(pid)
	if len(args) < 3 || args[0] != "weft" || !filepath.IsAbs(args[len(args)-2]) || !labName.MatchString(args[len(args)-1]) {
		return s, false
	}
	s = supervised{pid: pid, path: args[len(args)-2], lab: args[len(args)-1]}
	user, err := runtime.EffectiveUser(pid)
	if err != nil || user != os.Geteuid() || !runtime.SameNamespace(pid, "pid") {
		return s, false
	}
	s.deployment, _ = runtime.Variable(pid, markVar)
	s.engine, _ = runtime.Variable(pid, docker.HostVar)
	if s.owner, err = runtime.OwnerOf(pid); err != nil {
		return s, false
	}
	return s, deploymentName.MatchString(s.deployment)
}

// lost says whether no name leads to a supervisor any more: its state directory, as it sees it, has no folder of the lab
// with a journal that knows it. What cannot be looked at, and what is damaged, is not lost. That of held is being changed under a lock that the
// caller holds; elsewhere somebody else's lock means that it is being brought up, or taken down.
func (s *supervised) lost(held *Root) bool {
	dir, err := s.stateDir()
	if missing(err) {
		return true
	}
	if err != nil {
		return false
	}
	defer dir.Close()
	if held == nil || held.path != s.path {
		if _, err := dir.Lstat(s.lab + lockSuffix); !missing(err) {
			return false
		}
	}
	folder, err := dir.Lstat(s.lab)
	if missing(err) || err == nil && !folder.IsDir() {
		return true
	}
	text, err := readJournal(dir, filepath.Join(s.lab, journalFile))
	if missing(err) {
		return true
	}
	j := new(Journal)
	return err == nil && j.read(text) == nil && j.deployment != "" && j.deployment != s.deployment
}

// stateDir opens the state directory of a supervisor as that sees it: from its root, which may be another's.
func (s *supervised) stateDir() (*os.Root, error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", s.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("root of process %d: %v", s.pid, err) // it has ended: nothing is missing
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, s.path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = unix.ENOENT // something else has the directory's name
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: s.path, Err: err}
	}
	defer unix.Close(fd)
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// end ends a supervisor with its lab, and removes what those leave where nobody is left to.
func (s *supervised) end(ctx context.Context) error {
	if err := killMarked(ctx, s.deployment); err != nil {
		return fmt.Errorf("lab %s: %w", s.lab, err)
	}
	// A process that is ending has lost its mark, and is alive for those who judge what it owned for a moment more.
	if err := awaitEnd(s.pid, killTime); err != nil {
		return fmt.Errorf("lab %s: %w", s.lab, err)
	}
	_, err := docker.CleanOwned(ctx, s.engine, s.owner)
	if errors.Is(err, docker.ErrUnusable) { // without an engine there are no containers
		err = nil
	}
	_, failed := namespace.CleanGroupsOf(ctx, s.owner)
	if err = cleanup.Join(err, failed); err != nil {
		return fmt.Errorf("lab %s: %w", s.lab, err)
	}
	return nil
}

// Strays names the labs of this user of which a supervisor runs that nobody can reach: those that Down ends.
func Strays() (labs []string) {
	for _, s := range supervisors("") {
		if s.lost(nil) {
			labs = append(labs, s.lab)
		}
	}
	slices.Sort(labs)
	return slices.Compact(labs)
}

// EndStrays ends the supervisors of a lab that nobody can reach, and says how many there were. A user who deploys by way of
// a user namespace ends them before entering that: from within, those of other namespaces cannot be judged.
func EndStrays(ctx context.Context, path, lab string, o Options) (int, error) {
	if len(supervisors(lab)) == 0 {
		return 0, nil
	}
	r, lock, err := begin(path, lab)
	if err != nil {
		return 0, tellStrays(err, lab)
	}
	defer r.Close()
	defer r.Remove()
	defer lock.Unlock()
	return r.endStrays(ctx, lab, o)
}

// tellStrays adds to why a lab cannot be deployed that an earlier one of its name runs on.
func tellStrays(err error, lab string) error {
	for _, s := range supervisors(lab) {
		if s.lost(nil) {
			return fmt.Errorf("%w; the lab %s that was deployed in %s runs on without its folder (process %d): weft destroy %s ends it", err, lab, s.path, s.pid, lab)
		}
	}
	return err
}

// endStrays does so with the lab's lock held, or without a state directory: see supervised.lost.
func (r *Root) endStrays(ctx context.Context, lab string, o Options) (n int, err error) {
	for _, s := range supervisors(lab) {
		if !s.lost(r) {
			continue
		}
		o.say("%s: its folder in %s is gone; ending its supervisor (process %d) and all that belongs to it", s.lab, s.path, s.pid)
		if err := s.end(ctx); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// cleanStrays ends what runs and nobody can reach: supervisors, and processes that have lost whoever launched them.
func cleanStrays(ctx context.Context, path string) (swept []Swept, err error) {
	for _, s := range supervisors("") {
		ended, failed := s.endAlone(ctx, path)
		if ended {
			swept = append(swept, Swept{s.lab, "removed", "a supervisor without a folder"})
		}
		err = cleanup.Join(err, failed)
	}
	names, failed := namespace.CleanProcesses(ctx)
	for _, name := range names {
		swept = append(swept, Swept{name, "removed", "a process whose launcher is gone"})
	}
	return swept, cleanup.Join(err, failed)
}

// endAlone ends a supervisor if it is lost, and nobody is changing its lab. For one of this state directory the lab's lock
// is taken: a supervisor is started after its journal was begun, under that lock.
func (s *supervised) endAlone(ctx context.Context, path string) (ended bool, err error) {
	if s.path != path {
		if !s.lost(nil) {
			return false, nil
		}
		return true, s.end(ctx)
	}
	r, lock, err := beginWithin(path, s.lab, 0)
	if errors.Is(err, ErrLocked) {
		return false, nil // whoever has it brings it up or takes it down
	}
	if err != nil {
		if s.lost(nil) { // the state directory is gone, and another cannot be made in its place
			return true, s.end(ctx)
		}
		return false, err
	}
	defer r.Close()
	defer r.Remove()
	defer lock.Unlock()
	if !s.lost(r) {
		return false, nil
	}
	return true, s.end(ctx)
}
