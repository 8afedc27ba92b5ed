package swarm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/collect"
	"weft/orchestrator/sweep/shard"
)

// removeTime is the time limit for the tasks of a removed service to end. Our own choice: they have
// graceTime.
const removeTime = graceTime + 20*time.Second

// freshTime is how long a new service may have no tasks yet. Our own choice: it takes milliseconds.
const freshTime = time.Minute

// pollTime is how often a removed service is looked at.
const pollTime = 200 * time.Millisecond

// End implements shard.Scheduler. It removes the service of a round with its containers and its
// secret, and waits for the collector. What is gone is no error, so End may be called again.
func (Scheduler) End(ctx context.Context, d *shard.Dir, r sweep.Round) error {
	api, err := open()
	if err != nil {
		return err
	}
	defer api.Close() //nolint:errcheck // nothing is buffered
	limited, cancel := context.WithTimeout(ctx, removeTime+answerTime)
	defer cancel()
	err = removeService(limited, api, serviceName(d.Sub, r.Number))
	if r.Collect != "" {
		err = errors.Join(err, collect.End(ctx, d))
	}
	return err
}

// serviceLabel is the label with which the engine marks the containers of a service.
const serviceLabel = "com.docker.swarm.service.name"

// removeContainers removes the containers of a removed service from the engine of api. It waits
// until the swarm has ended them, or for removeTime; then it kills them. It is needed because the
// engine forgets the tasks of a removed service and leaves their containers.
func removeContainers(ctx context.Context, api *client.Client, service string) error {
	deadline := time.Now().Add(removeTime)
	for {
		all, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
			filters.Arg("label", labelSweep), filters.Arg("label", serviceLabel+"="+service))})
		if err != nil {
			return err
		}
		left := 0
		for _, c := range all {
			if c.State == container.StateRunning && time.Now().Before(deadline) {
				left++ // the swarm ends it
				continue
			}
			err := api.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true})
			if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) { // the engine removes it itself
				return fmt.Errorf("remove the container of a shard: %w", err)
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollTime):
		}
	}
}

// Clean removes what sweeps and agents left on the engine: services whose tasks have all ended or
// whose sweep is over or gone, secrets, and ended containers of services that no longer exist. A
// worker of a swarm knows no services, so only its ended containers are removed. Sweeps that run
// are left alone. unseen is why it could not look for them; it is nil if it looked, or if the
// default engine is not there.
func Clean(ctx context.Context) (removed []string, unseen, err error) {
	api, err := open()
	if err != nil {
		return nil, err, nil // DOCKER_HOST names no engine
	}
	defer api.Close() //nolint:errcheck // nothing is buffered
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	var all cleanup.Errors
	live := map[string]bool{}
	services, err := api.ServiceList(ctx, swarm.ServiceListOptions{
		Filters: filters.NewArgs(filters.Arg("label", labelSweep))})
	manager := err == nil
	switch {
	case client.IsErrConnectionFailed(err):
		if noDefaultEngine() {
			return nil, nil, nil
		}
		return nil, err, nil
	case err != nil && !errdefs.IsUnavailable(err): // which is what an engine says that manages no swarm
		all.Add(err)
	}
	for _, s := range services {
		fresh := time.Since(s.CreatedAt) < freshTime
		if !over(s.Spec.Labels) && active(ctx, api, s.Spec.Name, fresh) {
			live[s.Spec.Name] = true
			continue
		}
		if err := removeService(ctx, api, s.Spec.Name); err != nil {
			all.Add(err)
			continue
		}
		removed = append(removed, s.Spec.Name)
	}
	secrets, err := api.SecretList(ctx, swarm.SecretListOptions{
		Filters: filters.NewArgs(filters.Arg("label", labelSweep))})
	if err != nil && manager {
		all.Add(err)
	}
	for _, s := range secrets {
		fresh := time.Since(s.CreatedAt) < freshTime && !over(s.Spec.Labels) // its service may come
		if !live[s.Spec.Name] && !fresh {
			if err := api.SecretRemove(ctx, s.ID); err != nil && !errdefs.IsNotFound(err) {
				all.Add(err)
				continue
			}
			removed = append(removed, "secret "+s.Spec.Name)
		}
	}
	left, err := api.ContainerList(ctx, container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", labelSweep))})
	if err != nil {
		all.Add(err)
	}
	for _, c := range left {
		ended := c.State != container.StateRunning && c.State != container.StateCreated
		// A worker cannot tell whether the service of a running container still exists.
		over := c.Labels[labelAgents] != "" || over(c.Labels)
		if live[c.Labels[serviceLabel]] || !ended && !manager || !ended && !over {
			continue
		}
		if err := api.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true}); err != nil {
			if !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
				all.Add(err)
			}
			continue
		}
		removed = append(removed, strings.TrimPrefix(strings.Join(c.Names, " "), "/"))
	}
	return removed, nil, all.Err()
}

// noDefaultEngine reports whether DOCKER_HOST is not set and the default engine has no socket.
func noDefaultEngine() bool {
	_, err := os.Stat(strings.TrimPrefix(client.DefaultDockerHost, "unix://"))
	return os.Getenv(client.EnvOverrideHost) == "" && errors.Is(err, os.ErrNotExist)
}

// active reports whether a service has tasks that run or will. One that is fresh may have none yet.
func active(ctx context.Context, api *client.Client, service string, fresh bool) bool {
	all, err := api.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("service", service))})
	return err != nil || fresh && len(all) == 0 || slices.ContainsFunc(all, func(t swarm.Task) bool {
		state := stateOf(&t)
		return state == sweep.Running || state == sweep.Waiting
	})
}

// over reports whether nobody needs what has these labels any more. Agents are needed as long as
// the process runs that placed them. A sweep needs its tasks until it is done, or its directory was
// removed. If the folder of its runs is missing as well, this machine may just not see the results,
// so the sweep is not over.
func over(labels map[string]string) bool {
	dir := labels[labelDir]
	if dir == "" {
		owner, ok := runtime.ParseOwner(labels[labelAgents])
		return ok && owner.Gone()
	}
	d, err := shard.Open(dir)
	if err != nil {
		_, parent := os.Stat(filepath.Dir(dir))
		return os.IsNotExist(err) && parent == nil
	}
	return d.Over()
}
