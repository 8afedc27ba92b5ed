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

// How a reaper goes about its work. Ours.
const (
	sweepEvery  = 100 * time.Millisecond
	settledTime = 2 * time.Second // nothing new in so long: what the engine was asked for has been done
	reapTime    = 2 * time.Minute // for an engine that does not answer to be back
)

// mine lists the containers that carry all of this package's labels, of one launch or with an empty run of all.
func (e *engine) mine(ctx context.Context, run string) ([]container.Summary, error) {
	label := labelRun
	if run != "" {
		label += "=" + run
	}
	all, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var mine []container.Summary
	for _, c := range all {
		if _, ok := ours(c.Labels); ok {
			mine = append(mine, c)
		}
	}
	return mine, nil
}

// sweep removes every container of a launch, and returns when none is left. empty says that there should be none.
func (e *engine) sweep(ctx context.Context, run string, empty bool) error {
	for {
		left, err := e.mine(ctx, run)
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
	group.SetLimit(atOnce())
	for _, c := range all {
		group.Go(func() error {
			if about, err := e.api.ContainerInspect(ctx, c.ID); err == nil && about.State != nil && about.State.Pid > 0 {
				_ = runtime.Calm(about.State.Pid) // or its processes may get no turn to end in; removing tells what is wrong
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

// removing says whether an error is that the container is being removed already.
func removing(err error) bool { return strings.Contains(err.Error(), "already in progress") }

func nameOf(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID[:min(12, len(c.ID))]
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// Clean removes the containers of labs whose orchestrators are gone, on the engine at host (empty: DOCKER_HOST, or the
// usual place), and returns their names. What does not carry all labels of this package, or belongs to a process that
// still runs, is left alone.
func Clean(ctx context.Context, host string) (names []string, err error) {
	return clean(ctx, host, func(o runtime.Owner) bool { return !o.Alive() })
}

// CleanOwned is Clean for the containers of one owner.
func CleanOwned(ctx context.Context, host string, owner runtime.Owner) (names []string, err error) {
	return clean(ctx, host, func(o runtime.Owner) bool { return o.Is(owner) && !o.Alive() })
}

// clean removes the containers of dead owners.
func clean(ctx context.Context, host string, dead func(runtime.Owner) bool) (names []string, err error) {
	e, err := open(ctx, host)
	if err != nil {
		return nil, err
	}
	defer e.api.Close()
	all, err := e.mine(ctx, "")
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
	if all, err = e.mine(ctx, ""); err != nil { // they waited for what the engine had still been asked for
		return names, err
	}
	late, err := e.removeDead(ctx, all, dead)
	return append(names, late...), err
}

// removeDead removes those containers whose owner is gone, and returns their names.
func (e *engine) removeDead(ctx context.Context, all []container.Summary, dead func(runtime.Owner) bool) (names []string, err error) {
	var left []container.Summary
	for _, c := range all {
		if o, _ := ours(c.Labels); dead(o) {
			left = append(left, c)
			names = append(names, nameOf(c))
		}
	}
	return names, e.remove(ctx, left)
}

// Remove removes the container with this name on the engine at host, as of Clean, if there is one and it carries all labels
// of this package, and returns when it is gone. It is the undo of a runtime.Op of kind Container.
func Remove(ctx context.Context, host, name string) error { return RemoveOf(ctx, host, "", name) }

// RemoveOf is Remove for what names a container but is not to be believed: one of another lab is left alone. Empty: of any.
func RemoveOf(ctx context.Context, host, lab, name string) error {
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
		return nil // the name was taken for the beginning of an ID
	}
	if _, ok := ours(about.Config.Labels); !ok || lab != "" && about.Config.Labels[labelLab] != lab {
		return nil
	}
	if about.State != nil && about.State.Pid > 0 {
		_ = runtime.Calm(about.State.Pid)
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

// A reaper is a second process, which does nothing until this one ends, however that happens, and then removes the
// containers of one launch.
type reaper struct {
	cmd  *exec.Cmd
	line io.WriteCloser
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
	if r.line, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start reaper: %w", err)
	}
	return r, nil
}

// done is what a reaper reads when there is nothing for it to do.
const done = "done"

// dismiss ends the reaper: all is gone.
func (r *reaper) dismiss() error {
	_, err := io.WriteString(r.line, done)
	if err := cleanup.Join(err, r.line.Close(), r.cmd.Wait()); err != nil {
		return fmt.Errorf("reaper: %w", err)
	}
	return nil
}

// Reap is the process "weft reap": it reads from line until the process that launched a lab dismisses it or is gone,
// and then removes the lab's containers on the engine at host. An engine that does not answer is asked again for two
// minutes.
func Reap(ctx context.Context, line io.Reader, host, run string) error {
	if !isRun(run) {
		return fmt.Errorf("%q is not a run", run)
	}
	said, err := io.ReadAll(io.LimitReader(line, int64(len(done))))
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

// reap removes what there is, and says whether there was anything.
func reap(ctx context.Context, host, run string) (bool, error) {
	e, err := open(ctx, host)
	if err != nil {
		return false, err
	}
	defer e.api.Close()
	left, err := e.mine(ctx, run)
	if err != nil || len(left) == 0 {
		return false, err
	}
	return true, e.remove(ctx, left)
}
