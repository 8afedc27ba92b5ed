package docker

import (
	"context"
	"fmt"
	"time"

	"weft/orchestrator/runtime"
)

// ownerVar is set in the environment of a reaper to the process whose end it waits for.
const ownerVar = "WEFT_OWNER"

// orphanTime is how long a reaper whose owner is gone may take before it is ended. Ours: it stays for settledTime after
// the last container, in case the engine was still asked for one.
const orphanTime = 2 * settledTime

// endReapers returns when no reaper is left on the engine at host whose owner is gone, and says whether there was one. One
// that does not end by itself is killed.
func endReapers(ctx context.Context, host string, dead func(runtime.Owner) bool) (waited bool, err error) {
	deadline := time.Now().Add(orphanTime)
	for {
		left := orphans(host, dead)
		if len(left) == 0 {
			return waited, nil
		}
		waited = true
		if time.Now().After(deadline) {
			for _, pid := range left {
				err := runtime.KillIf(pid, func(pid int) bool { return isOrphan(pid, host, dead) })
				if err != nil {
					return true, fmt.Errorf("end reaper: %w", err)
				}
			}
		}
		if time.Since(deadline) > removeTime {
			return true, fmt.Errorf("reapers %v do not end", left)
		}
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-time.After(sweepEvery / 4):
		}
	}
}

// orphans are the reapers on the engine at host whose owner is gone.
func orphans(host string, dead func(runtime.Owner) bool) (pids []int) {
	return runtime.Processes(func(pid int) bool { return isOrphan(pid, host, dead) })
}

// isOrphan says whether a process is such a reaper: by its arguments, and by its environment, which nobody else sees.
func isOrphan(pid int, host string, dead func(runtime.Owner) bool) bool {
	args := runtime.Arguments(pid)
	if len(args) != 4 || args[0] != "weft" || args[1] != "reap" || args[2] != host || !isRun(args[3]) {
		return false
	}
	o, ok := runtime.OwnerIn(pid, ownerVar)
	return ok && dead(o)
}
