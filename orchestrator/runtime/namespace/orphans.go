package namespace

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"weft/orchestrator/runtime"
)

// launcherVar is the environment variable of every process of a lab that names its launcher, a
// runtime.Owner.
const launcherVar = "WEFT_LAUNCHER"

// CleanProcesses ends processes of labs whose launcher is gone, and returns their names. The kernel
// has killed them already when the launcher ended: the remaining ones have not run since, or are
// about to exit.
func CleanProcesses(ctx context.Context) (names []string, err error) {
	found := map[int]bool{}
	for deadline := time.Now().Add(runtime.KillTime); ; {
		left := orphans()
		if len(left) == 0 {
			return names, nil
		}
		for _, pid := range left {
			name, err := killOrphan(pid)
			if err != nil {
				return names, err
			}
			if name != "" && !found[pid] {
				found[pid] = true
				names = append(names, name)
			}
		}
		if time.Now().After(deadline) {
			return names, fmt.Errorf("process %d of a lab whose launcher is gone still runs %v after it was killed",
				left[0], runtime.KillTime)
		}
		select {
		case <-ctx.Done():
			return names, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// orphans returns the processes of this user's labs whose launcher is gone.
func orphans() (pids []int) {
	return runtime.Processes(isOrphan)
}

// isOrphan reports whether a process is one, by its arguments, its user and its environment.
func isOrphan(pid int) bool {
	args := runtime.Arguments(pid)
	if len(args) != 2 || args[0] != "weft" || args[1] != "node" && args[1] != "fabric" || !isOurs(pid) {
		return false
	}
	o, ok := runtime.OwnerIn(pid, launcherVar)
	return ok && o.Dead()
}

// nobody is the user that processes of root's labs become.
const nobody = 65534

// isOurs reports whether a process belongs to this user, or to nobody if this user is root.
func isOurs(pid int) bool {
	user, err := runtime.EffectiveUser(pid)
	if err != nil || user == os.Geteuid() {
		return err == nil
	}
	return user == nobody && os.Geteuid() == 0 && runtime.SameNamespace(pid, "user")
}

// killOrphan kills a process if it still is an orphan once it is held by a descriptor, and returns
// its name.
func killOrphan(pid int) (name string, err error) {
	err = runtime.KillIf(pid, func(pid int) bool {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil || !isOrphan(pid) {
			return false
		}
		name = strings.TrimSpace(string(comm))
		return true
	})
	return name, err
}
