package docker

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sync/errgroup"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime"
)

// Intervals of a reaper. Our own choice.
const (
	sweepEvery  = 100 * time.Millisecond
	settledTime = 2 * time.Second // without a new container for this time, the engine is done
	reapTime    = 2 * time.Minute // time limit for an engine that does not answer
)

// list returns the containers with all labels of this package: those of one launch or, if run is
// empty, all.
func (e *engine) list(ctx context.Context, run string) ([]container.Summary, error) {
	label := labelRun
	if run != "" {
		label += "=" + run
	}
	all, err := e.api.ContainerList(ctx, container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var mine []container.Summary
	for _, c := range all {
		if _, ok := ownerFromLabels(c.Labels); ok {
			mine = append(mine, c)
		}
	}
	return mine, nil
}

// sweep removes every container of a launch and returns when none is left. empty means that none is
// expected, so the first pass only looks.
func (e *engine) sweep(ctx context.Context, run string, empty bool) error {
	for {
		left, err := e.list(ctx, run)
		if err != nil || len(left) == 0 {
			return err
		}
		if !empty {
			if err := e.remove(ctx, left); err != nil {
				return err
			}
		}
		empty = false
		select {
		case <-ctx.Done():
			return fmt.Errorf("containers of run %s are left: %w", run, ctx.Err())
		case <-time.After(sweepEvery):
		}
	}
}

// remove removes containers, running or not.
func (e *engine) remove(ctx context.Context, all []container.Summary) error {
	var group errgroup.Group
	group.SetLimit(runtime.AtOnce())
	for _, c := range all {
		group.Go(func() error {
			if about, err := e.api.ContainerInspect(ctx, c.ID); err == nil && about.State != nil &&
				about.State.Pid > 0 {
				_ = runtime.DropRealTime(about.State.Pid) // else its processes may never run to exit
			}
			err := e.api.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
			if err != nil && !errdefs.IsNotFound(err) && !removing(err) {
				return fmt.Errorf("remove container %s: %w", nameOf(c), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// removing reports whether an error is that the container is being removed already.
func removing(err error) bool { return strings.Contains(err.Error(), "already in progress") }

func nameOf(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID[:min(12, len(c.ID))]
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// Clean removes the containers of labs whose launchers are dead, on the engine at host (empty:
// DOCKER_HOST or the default one), and returns their names. Containers without all labels of this
// package are left alone.
func Clean(ctx context.Context, host string, dead func(runtime.Owner) bool) (names []string, err error) {
	e, err := open(ctx, host)
	if err != nil {
		return nil, err
	}
	defer e.api.Close()
	all, err := e.list(ctx, "")
	if err != nil {
		return nil, err
	}
	names, err = e.removeDead(ctx, all, dead)
	if err != nil {
		return names, err
	}
	waited, err := endReapers(ctx, e.host, dead)
	if err != nil || !waited {
		return names, err
	}
	if all, err = e.list(ctx, ""); err != nil { // the engine may have created more meanwhile
		return names, err
	}
	late, err := e.removeDead(ctx, all, dead)
	return append(names, late...), err
}

// removeDead removes the containers of dead owners and returns their names.
func (e *engine) removeDead(ctx context.Context, all []container.Summary,
	dead func(runtime.Owner) bool) (names []string, err error) {
	var left []container.Summary
	for _, c := range all {
		if o, _ := ownerFromLabels(c.Labels); dead(o) {
			left = append(left, c)
			names = append(names, nameOf(c))
		}
	}
	return names, e.remove(ctx, left)
}

// Remove removes the container with a name on the engine at host, if there is one, it carries all
// labels of this package, and returns when it is gone. It undoes a runtime.Op of kind Container.
func Remove(ctx context.Context, host, name string) error {
	e, err := open(ctx, host)
	if err != nil {
		return err
	}
	defer e.api.Close()
	about, err := e.api.ContainerInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("container %s: %w", name, err)
	}
	if about.Config == nil || strings.TrimPrefix(about.Name, "/") != name {
		return nil // the engine took the name for a prefix of an ID
	}
	if _, ok := ownerFromLabels(about.Config.Labels); !ok {
		return nil
	}
	if about.State != nil && about.State.Pid > 0 {
		_ = runtime.DropRealTime(about.State.Pid)
	}
	over, failed := e.api.ContainerWait(ctx, about.ID, container.WaitConditionRemoved)
	err = e.api.ContainerRemove(ctx, about.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) && !removing(err) {
		return fmt.Errorf("remove container %s: %w", name, err)
	}
	select {
	case <-over:
	case err := <-failed:
		if err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("remove container %s: %w", name, err)
		}
	}
	return nil
}

// A reaper is a second process that waits for the end of this one, and then removes the containers
// of one launch.
type reaper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// startReaper starts the program at self as "weft reap".
func startReaper(self, host, run string, o runtime.Owner) (*reaper, error) {
	r := &reaper{cmd: &exec.Cmd{
		Path: self,
		Args: []string{"weft", "reap", host, run},
		Env:  []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", ownerVar + "=" + o.String()},
		Dir:  "/",
		// Ctrl-C and a closed terminal are for the orchestrator.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}}
	var err error
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start reaper: %w", err)
	}
	return r, nil
}

// done is a reaper's input if there is nothing to remove.
const done = "done"

// dismiss ends the reaper: everything is removed already.
func (r *reaper) dismiss() error {
	_, err := io.WriteString(r.stdin, done)
	if err := cleanup.Join(err, r.stdin.Close(), r.cmd.Wait()); err != nil {
		return fmt.Errorf("reaper: %w", err)
	}
	return nil
}

// Reap is the process "weft reap". It reads from input until its owner dismisses it or is gone, and
// then removes the lab's containers on the engine at host. It retries for two minutes if the engine
// does not answer.
func Reap(ctx context.Context, input io.Reader, host, run string) error {
	if !isRun(run) {
		return fmt.Errorf("%q is not the ID of a run", run)
	}
	said, err := io.ReadAll(io.LimitReader(input, int64(len(done))))
	if err == nil && string(said) == done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reapTime)
	defer cancel()
	var last error
	for settled := time.Now(); time.Since(settled) < settledTime; {
		swept, err := reap(ctx, host, run)
		if last = err; err != nil || swept {
			settled = time.Now()
		}
		select {
		case <-ctx.Done():
			return cleanup.Join(last, ctx.Err())
		case <-time.After(sweepEvery):
		}
	}
	return nil
}

// reap removes the containers of a run and reports whether there were any.
func reap(ctx context.Context, host, run string) (bool, error) {
	e, err := open(ctx, host)
	if err != nil {
		return false, err
	}
	defer e.api.Close()
	left, err := e.list(ctx, run)
	if err != nil || len(left) == 0 {
		return false, err
	}
	return true, e.remove(ctx, left)
}
