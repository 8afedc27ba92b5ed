package deploy

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/runtime"
)

// markVar is the environment variable that marks every process of a deployment. Its value is the
// deployment's random ID.
const markVar = "WEFT_DEPLOYMENT"

// marked returns the PIDs of a deployment's processes, without this one. It cannot see processes
// whose environment this user may not read: those are nodes, which end with their supervisor.
func marked(deployment string) []int {
	return runtime.Processes(func(pid int) bool { return pid != os.Getpid() && hasMark(pid, deployment) })
}

// hasMark reports whether a process carries the mark of a deployment. It is false for a process
// that has ended, or that this user may not inspect.
func hasMark(pid int, deployment string) bool {
	mark, ok := runtime.Variable(pid, markVar)
	return ok && mark != "" && mark == deployment
}

// killMarked kills every process of a deployment and returns when none is left.
func killMarked(ctx context.Context, deployment string) error {
	deadline := time.Now().Add(runtime.KillTime)
	for {
		pids := marked(deployment)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			err := runtime.KillIf(pid, func(pid int) bool { return hasMark(pid, deployment) })
			if err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %s still run %v after SIGKILL", strings.Trim(fmt.Sprint(pids), "[]"),
				runtime.KillTime)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// awaitEnd waits until a process has ended. It returns an error after limit.
func awaitEnd(pid int, limit time.Duration) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended
	}
	defer unix.Close(fd)
	if len(runtime.AwaitExit([]int{fd}, limit)) > 0 {
		return fmt.Errorf("process %d still runs after %v", pid, limit)
	}
	return nil
}
