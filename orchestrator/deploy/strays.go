package deploy

import (
	"context"
	"errors"
	"fmt"
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
	path, lab  string        // from its arguments: its state directory and its lab
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
	return s, s.deployment != ""
}

// unreachable reports whether no path leads to a supervisor any more: its state directory, as the
// supervisor sees it, has no journal of its deployment, which was begun before it was started and
// goes after its end. A directory or a journal that cannot be read proves nothing.
func (s *runningSupervisor) unreachable() bool {
	dir, err := os.OpenRoot(fmt.Sprintf("/proc/%d/root%s", s.pid, filepath.Join(s.path, s.lab)))
	if err == nil {
		defer dir.Close()
		var j *Journal
		if j, _, err = readJournal(dir); err == nil {
			return j.deployment != "" && j.deployment != s.deployment
		}
	}
	_, runs := supervisorAt(s.pid) // else its files in /proc are what is missing
	return runs && (missing(err) || errors.Is(err, unix.ENOTDIR))
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
	swept = []Swept{{s.lab, Removed, "a supervisor without a folder"}}
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
		if s.unreachable() {
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
		if s.unreachable() {
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
func EndStrays(ctx context.Context, lab string, o Options) (n int, err error) {
	swept, err := endStrays(ctx, lab)
	for _, s := range swept {
		o.say("%v", s)
		if s.What == Removed {
			n++
		}
	}
	return n, err
}

// endStrays ends the unreachable supervisors of a lab, or all if lab is empty.
func endStrays(ctx context.Context, lab string) (swept []Swept, err error) {
	for _, s := range supervisors(lab) {
		if s.unreachable() {
			of, failed := s.end(ctx)
			swept, err = append(swept, of...), cleanup.Join(err, failed)
		}
	}
	return swept, err
}
