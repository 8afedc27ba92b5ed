package deploy

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/runtime"
)

// markVar is set in the environment of every process of a deployment, to the deployment's own random name.
const markVar = "WEFT_DEPLOYMENT"

// deploymentName is what a deployment's name looks like. Nothing else is looked for among processes.
var deploymentName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// marked returns the processes of a deployment, but this one. Those whose environment this user may not read are not
// among them: they are nodes, which end with their supervisor.
func marked(deployment string) ([]int, error) {
	if !deploymentName.MatchString(deployment) {
		return nil, fmt.Errorf("%q is not a deployment", clip(deployment))
	}
	return runtime.Processes(func(pid int) bool { return pid != os.Getpid() && hasMark(pid, deployment) }), nil
}

// hasMark says whether a process carries the mark of a deployment. One that has ended, or that this user may not look at,
// does not.
func hasMark(pid int, deployment string) bool {
	mark, ok := runtime.Variable(pid, markVar)
	return ok && mark == deployment
}

// killTime is how long killed processes may take to be gone: the kernel takes down their namespaces.
const killTime = 10 * time.Second

// killMarked ends every process of a deployment and returns when none is left.
func killMarked(ctx context.Context, deployment string) error {
	deadline := time.Now().Add(killTime)
	for {
		pids, err := marked(deployment)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			err := runtime.KillIf(pid, func(pid int) bool { return hasMark(pid, deployment) })
			if err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end, %v after they were killed", pids, killTime)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// awaitEnd returns when a process has ended, or an error when it has not in time.
func awaitEnd(pid int, limit time.Duration) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended
	}
	defer unix.Close(fd)
	if len(runtime.AwaitExit([]int{fd}, limit)) > 0 {
		return fmt.Errorf("process %d does not end", pid)
	}
	return nil
}
