package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/runtime"
)

// ownerVar is set in the environment of a reaper to the process whose end it waits for.
const ownerVar = "WEFT_OWNER"

// orphanTime is how long a reaper whose owner is gone may take before it is ended. Ours: it stays for settledTime after
// the last container, in case the engine was still asked for one.
const orphanTime = 2 * settledTime

// endReapers returns when no reaper is left on the engine at host whose owner is gone, and says whether there was one. One
// that does not end by itself is killed.
func endReapers(ctx context.Context, host string) (waited bool, err error) {
	deadline := time.Now().Add(orphanTime)
	for {
		left := orphans(host)
		if len(left) == 0 {
			return waited, nil
		}
		waited = true
		if time.Now().After(deadline) {
			for _, pid := range left {
				if err := killOrphan(pid, host); err != nil {
					return true, err
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
func orphans(host string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is a good one
	for _, f := range files {
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && isOrphan(pid, host) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isOrphan says whether a process is such a reaper: by its arguments, and by its environment, which nobody else sees.
func isOrphan(pid int, host string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	if err != nil || len(args) != 4 || args[0] != "weft" || args[1] != "reap" || args[2] != host || !isRun(args[3]) {
		return false
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for v := range strings.SplitSeq(string(env), "\x00") {
		if text, ok := strings.CutPrefix(v, ownerVar+"="); ok {
			o, ok := runtime.ParseOwner(text)
			return ok && !o.Alive()
		}
	}
	return false
}

// killOrphan ends a process if it is such a reaper once it is held.
func killOrphan(pid int, host string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended
	}
	defer unix.Close(fd)
	if !isOrphan(pid, host) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("end reaper %d: %w", pid, err)
	}
	return nil
}
