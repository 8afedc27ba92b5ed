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

// A supervisor whose folder was removed (rm -rf, or a logout that removes XDG_RUNTIME_DIR) keeps
// running with its lab, but no path leads to its socket any more. Such strays are found among the
// processes, by their mark and their arguments: docs/adr/0100-what-clean-removes.md.

// runningSupervisor is a supervisor process as /proc shows it.
type runningSupervisor struct {
	pid        int
	deployment string        // from its mark
	path, lab  string        // from its arguments: its state directory, as it sees it, and its lab
	engine     string        // its DOCKER_HOST
	owner      runtime.Owner // label of its containers and control groups
}

// supervisors returns this user's supervisors in this PID namespace: those of a lab, or all if lab
// is empty.
func supervisors(lab string) (all []runningSupervisor) {
	runtime.Processes(func(pid int) bool {
		s, ok := supervisorAt(pid)
		if ok = ok && pid != os.Getpid() && (lab == "" || s.lab == lab); ok {
			all = append(all, s)
		}
		return ok
	})
	return all
}

// supervisorAt returns the supervisor with a PID. ok is false if the process is not a supervisor of
// this user in this PID namespace.
func supervisorAt(pid int) (s runningSupervisor, ok bool) {
	args := runtime.Arguments(pid)
	if len(args) < 3 || args[0] != "weft" || !filepath.IsAbs(args[len(args)-2]) ||
		!labName.MatchString(args[len(args)-1]) {
		return s, false
	}
	s = runningSupervisor{pid: pid, path: args[len(args)-2], lab: args[len(args)-1]}
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

// unreachable reports whether no path leads to a supervisor any more: its state directory, as the
// supervisor sees it, has no folder of the lab with a journal of its deployment. It is false for a
// directory that cannot be read or a journal that is damaged. It is also false if another process
// holds the lab's lock and so is deploying or destroying the lab; held is the state directory, if
// any, whose lock the caller holds.
func (s *runningSupervisor) unreachable(held *Root) bool {
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

// stateDir opens the state directory of a supervisor as the supervisor sees it: from its own root
// directory.
func (s *runningSupervisor) stateDir() (*os.Root, error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", s.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		// it has ended; %v: the error must not match ErrNotExist
		return nil, fmt.Errorf("root of process %d: %v", s.pid, err)
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, s.path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT})
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = unix.ENOENT // the path is not a directory
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: s.path, Err: err}
	}
	defer unix.Close(fd)
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// end kills a supervisor with its lab and removes the containers and control groups that they
// leave. It returns what became of them.
func (s *runningSupervisor) end(ctx context.Context) (swept []Swept, err error) {
	if err := killMarked(ctx, s.deployment); err != nil {
		return nil, fmt.Errorf("lab %s: %w", s.lab, err)
	}
	// A process that is exiting has lost its mark but still counts as the owner of its resources.
	if err := awaitEnd(s.pid, runtime.KillTime); err != nil {
		return nil, fmt.Errorf("lab %s: %w", s.lab, err)
	}
	swept = []Swept{{s.lab, "removed", "a supervisor without a folder"}}
	dead := func(o runtime.Owner) bool { return o.Is(s.owner) && o.Dead() }
	_, unseen, err := cleanContainers(ctx, s.engine, dead)
	if unseen != "" {
		swept = append(swept, Swept{"containers of " + s.lab, NotLookedAt, unseen})
	}
	_, failed := namespace.CleanGroups(ctx, dead)
	if err = cleanup.Join(err, failed); err != nil {
		return swept, fmt.Errorf("lab %s: %w", s.lab, err)
	}
	return swept, nil
}

// Strays returns the names of this user's labs that have an unreachable supervisor. Down ends
// those.
func Strays() (labs []string) {
	for _, s := range supervisors("") {
		if s.unreachable(nil) {
			labs = append(labs, s.lab)
		}
	}
	slices.Sort(labs)
	return slices.Compact(labs)
}

// Unreachable returns the error for a lab that a command cannot reach: its supervisor still runs
// but its folder is gone, or no such lab is deployed. An empty name means any lab, and the error is
// nil if there is none.
func Unreachable(lab string) error {
	for _, s := range supervisors(lab) {
		if s.unreachable(nil) {
			return fmt.Errorf("lab %s: it still runs (process %d), but its folder in %s is gone, so that no command "+
				"reaches it; weft destroy %[1]s or weft clean ends it", s.lab, s.pid, s.path)
		}
	}
	if lab == "" {
		return nil
	}
	return fmt.Errorf("lab %s: %w", lab, ErrNotDeployed)
}

// EndStrays ends the unreachable supervisors of a lab and returns their number. Weft calls it
// before it enters a new user namespace, because it cannot judge supervisors of other namespaces
// from within.
func EndStrays(ctx context.Context, path, lab string, o Options) (int, error) {
	if len(supervisors(lab)) == 0 {
		return 0, nil
	}
	r, lock, err := begin(path, lab)
	if err != nil {
		return 0, mentionStrays(err, lab)
	}
	defer r.Close()
	defer r.Remove()
	defer lock.Unlock()
	return r.endStrays(ctx, lab, o)
}

// mentionStrays adds to an error of a deployment that an earlier lab of the same name still runs,
// if one does.
func mentionStrays(err error, lab string) error {
	for _, s := range supervisors(lab) {
		if s.unreachable(nil) {
			return fmt.Errorf("%w; the lab %s that was deployed in %s still runs without its folder (process %d): "+
				"weft destroy %s ends it", err, lab, s.path, s.pid, lab)
		}
	}
	return err
}

// endStrays is EndStrays for a caller that holds the lab's lock, or has no state directory (r is
// nil then; see unreachable).
func (r *Root) endStrays(ctx context.Context, lab string, o Options) (n int, err error) {
	for _, s := range supervisors(lab) {
		if !s.unreachable(r) {
			continue
		}
		o.say("%s: its folder in %s is gone; ending its supervisor (process %d) and everything it started", s.lab,
			s.path, s.pid)
		swept, err := s.end(ctx)
		for _, is := range swept {
			o.say("%v", is)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// cleanStrays ends unreachable supervisors, and processes whose launcher is gone.
func cleanStrays(ctx context.Context, path string) (swept []Swept, err error) {
	for _, s := range supervisors("") {
		of, failed := s.endIfUnreachable(ctx, path)
		swept, err = append(swept, of...), cleanup.Join(err, failed)
	}
	names, failed := namespace.CleanProcesses(ctx)
	for _, name := range names {
		swept = append(swept, Swept{name, "removed", "a process whose launcher is gone"})
	}
	return swept, cleanup.Join(err, failed)
}

// endIfUnreachable ends a supervisor if it is unreachable and nobody is changing its lab. If it
// belongs to the state directory at path, the lab's lock is taken first: a supervisor is started
// under that lock, after its journal was begun.
func (s *runningSupervisor) endIfUnreachable(ctx context.Context, path string) ([]Swept, error) {
	if s.path != path {
		if !s.unreachable(nil) {
			return nil, nil
		}
		return s.end(ctx)
	}
	r, lock, err := beginWithin(path, s.lab, 0)
	if errors.Is(err, ErrLocked) {
		return nil, nil // the lock's holder deploys or destroys it
	}
	if err != nil {
		if s.unreachable(nil) { // the state directory is gone, and another cannot be made in its place
			return s.end(ctx)
		}
		return nil, err
	}
	defer r.Close()
	defer r.Remove()
	defer lock.Unlock()
	if !s.unreachable(r) {
		return nil, nil
	}
	return s.end(ctx)
}
