package docker

import (
	"context"
	"fmt"
	"time"

	"weft/orchestrator/runtime"
)

// ownerVar is the environment variable that names a reaper's owner: the process whose end it waits
// for.
const ownerVar = "WEFT_OWNER"

// orphanTime is the time limit for an orphaned reaper before it is killed. Our own choice: a reaper
// stays for settledTime after the last container, in case the engine still creates one.
const orphanTime = 2 * settledTime

// endReapers waits until no orphaned reaper is left on the engine at host, and kills those that do
// not exit. waited reports whether there was one.
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
			return true, fmt.Errorf("reaper %d still runs %v after it was killed", left[0], removeTime)
		}
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-time.After(sweepEvery / 4):
		}
	}
}

// orphans returns the reapers on the engine at host whose owner is dead.
func orphans(host string, dead func(runtime.Owner) bool) (pids []int) {
	return runtime.Processes(func(pid int) bool { return isOrphan(pid, host, dead) })
}

// isOrphan reports whether a process is such a reaper, by its arguments and its environment.
func isOrphan(pid int, host string, dead func(runtime.Owner) bool) bool {
	args := runtime.Arguments(pid)
	if len(args) != 4 || args[0] != "weft" || args[1] != "reap" || args[2] != host || !isRun(args[3]) {
		return false
	}
	o, ok := runtime.OwnerIn(pid, ownerVar)
	return ok && dead(o)
}
