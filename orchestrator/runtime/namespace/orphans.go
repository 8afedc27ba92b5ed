package namespace

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"weft/orchestrator/runtime"
)

// launcherVar is set in the environment of every process of a lab to the process that launched it: see runtime.Owner.
const launcherVar = "WEFT_LAUNCHER"

// orphanTime is how long orphans that were killed may take to be gone: the kernel takes down their namespaces.
const orphanTime = 10 * time.Second

// CleanProcesses ends processes of labs whose launcher is gone, and returns their names. The kernel kills those when the
// launcher ends, so what is found has had no turn to end in, or is about to.
func CleanProcesses(ctx context.Context) (names []string, err error) {
	found := map[int]bool{}
	for deadline := time.Now().Add(orphanTime); ; {
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
			return names, fmt.Errorf("process %d of a lab whose launcher is gone does not end, %v after it was killed", left[0], orphanTime)
		}
		select {
		case <-ctx.Done():
			return names, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// orphans are the processes of this user's labs whose launcher is gone.
func orphans() (pids []int) {
	return runtime.Processes(isOrphan)
}

// isOrphan says whether a process is one: by its arguments, its user, and its environment, which nobody else sees.
func isOrphan(pid int) bool {
	args := runtime.Arguments(pid)
	if len(args) != 2 || args[0] != "weft" || args[1] != "node" && args[1] != "fabric" || !ours(pid) {
		return false
	}
	o, ok := runtime.OwnerIn(pid, launcherVar)
	return ok && !o.Alive()
}

// nobody is the user that processes of root's labs become.
const nobody = 65534

// ours says whether a process is of this user, or of nobody where this user is root.
func ours(pid int) bool {
	user, err := runtime.EffectiveUser(pid)
	if err != nil || user == os.Geteuid() {
		return err == nil
	}
	return user == nobody && os.Geteuid() == 0 && runtime.SameNamespace(pid, "user")
}

// killOrphan ends a process if it is such a one once it is held, and returns its name.
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
