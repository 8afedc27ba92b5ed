// Package swarm runs the shards of a sweep, and the agents of one lab (package machine), as tasks
// of a Docker Swarm.
//
// In goes the directory of a sweep, which every machine of the swarm sees at the same path, or
// whose collector (package collect) every machine reaches. Each round is one replicated service
// with a replica for each shard. Out come the states of its tasks.
//
// The one idea is that a service with restart on failure is what a sweep needs, and a job is not. A
// task that ends with 0 stays ended, one that fails is started again at most three times, and one
// whose machine dies is placed on another within seconds; the tasks of a job are never replaced
// then. A machine that is cut off runs its shards twice, which the shards allow.
//
// These must hold. Containers publish no port and have no capabilities, a read-only root, and the
// submitter's user with the results alone, or nobody with keys for the collector. The image is
// named by its content, so that no machine runs another program, and none asks a registry about a
// tag. Nothing but labelled services, secrets and containers is ever removed.
//
// Start reading at Scheduler.Start; spec.go has the service, agents.go that of one lab, and
// clean.go removes what is left.
package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"weft/nodeimg/image"
	"weft/orchestrator/machine"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/collect"
	"weft/orchestrator/sweep/shard"
)

// Scheduler runs shards on the swarm whose manager is at DOCKER_HOST, or the default engine.
type Scheduler struct{}

// Name implements shard.Scheduler.
func (Scheduler) Name() string { return "swarm" }

// open connects to the manager.
func open() (*client.Client, error) { return openAt(os.Getenv(client.EnvOverrideHost)) }

// openAt connects to the manager at an address; "": the default engine.
func openAt(host string) (*client.Client, error) {
	if strings.HasPrefix(host, "ssh://") {
		return nil, fmt.Errorf("%s=%s: weft speaks to the engine itself; ssh -L "+
			"/tmp/manager.sock:/var/run/docker.sock MANAGER forwards it, and unix:///tmp/manager.sock names it then",
			client.EnvOverrideHost, host)
	}
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithHost(cmp.Or(host, client.DefaultDockerHost)),
		client.WithAPIVersionNegotiation())
	if err != nil {
		err = fmt.Errorf("%s: %w; expected unix:///PATH or tcp://ADDRESS:PORT of a manager",
			client.EnvOverrideHost, err)
	}
	return api, err
}

// answerTime is for a manager to say what there is. Ours: a manager that lost the others of its
// swarm takes 20 s to say so.
const answerTime = 30 * time.Second

// nodes returns the machines of the swarm by their ID.
func nodes(ctx context.Context, api *client.Client) (map[string]swarm.Node, error) {
	all, err := api.NodeList(ctx, swarm.NodeListOptions{})
	if err != nil {
		return nil, fmt.Errorf("no swarm manager at %s: %w; docker swarm init makes one, and DOCKER_HOST "+
			"names another", api.DaemonHost(), err)
	}
	out := map[string]swarm.Node{}
	for _, n := range all {
		out[n.ID] = n
	}
	return out, nil
}

// Check implements shard.Scheduler.
func (Scheduler) Check(ctx context.Context, kind string) error {
	if kind != "sim" {
		return errors.New("tasks of a swarm may not make networks to emulate with: use --engine sim, or emulate " +
			"with --on slurm or --on local")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	api, err := open()
	if err != nil {
		return err
	}
	defer api.Close() //nolint:errcheck // only read
	_, err = nodes(ctx, api)
	return err
}

// Slots implements shard.Scheduler: the processors of all machines that take tasks.
func (Scheduler) Slots(ctx context.Context, _ string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	api, err := open()
	if err != nil {
		return 0, err
	}
	defer api.Close() //nolint:errcheck // only read
	all, err := nodes(ctx, api)
	if err != nil {
		return 0, err
	}
	slots := 0
	for _, n := range all {
		if takesTasks(&n) {
			slots += int(n.Description.Resources.NanoCPUs / 1e9)
		}
	}
	if slots == 0 {
		return 0, errors.New("no machine of the swarm is ready: docker node ls shows why")
	}
	return slots, nil
}

// takesTasks reports whether the swarm gives tasks to a machine.
func takesTasks(n *swarm.Node) bool {
	return n.Status.State == swarm.NodeStateReady && n.Spec.Availability == swarm.NodeAvailabilityActive
}

// Start implements shard.Scheduler.
func (s Scheduler) Start(ctx context.Context, d *shard.Dir, r *sweep.Round) (err error) {
	api, err := open()
	if err != nil {
		return err
	}
	defer api.Close() //nolint:errcheck // nothing is buffered
	if r.Image, err = imageOf(ctx, api, r.Image); err != nil {
		return err
	}
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return err
	}
	r.Handle = serviceName(d.Sub, r.Number)
	spec := service(d.Sub, r, path, fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid()))
	if r.Collect != "" {
		defer func() {
			if err != nil {
				err = errors.Join(err, d.Cancel(), s.End(context.WithoutCancel(ctx), d, *r))
			}
		}()
		if err := startCollector(ctx, api, d, r, &spec); err != nil {
			return err
		}
	}
	if _, err := api.ServiceCreate(ctx, spec, swarm.ServiceCreateOptions{}); err != nil {
		return fmt.Errorf("create the service of the shards: %w", err)
	}
	return nil
}

// startCollector starts the collector of a round whose service will be spec, and makes the secret
// with the keys of its tasks.
func startCollector(ctx context.Context, api *client.Client, d *shard.Dir, r *sweep.Round,
	spec *swarm.ServiceSpec) error {
	hosts, err := (Agents{}).Hosts(ctx)
	if err != nil {
		return err
	}
	keys, addr, err := collect.Start(ctx, d, r, machine.Nearest(hosts))
	if err != nil {
		return fmt.Errorf("start the collector: %w", err)
	}
	secret, err := api.SecretCreate(ctx, swarm.SecretSpec{
		Annotations: swarm.Annotations{Name: r.Handle, Labels: spec.Labels}, Data: keys})
	if err != nil {
		return fmt.Errorf("create the secret of the shards: %w", err)
	}
	collecting(spec, r, addr, secret.ID)
	return nil
}

// imageOf returns the image that a user names, or the image of this program, which it loads into
// the manager.
func imageOf(ctx context.Context, api *client.Client, ref string) (string, error) {
	if ref != "" {
		return ref, checkImage(ref)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return image.Load(ctx, api, self)
}

// checkImage returns an error unless an image is named by its content.
func checkImage(ref string) error {
	if strings.HasPrefix(ref, "sha256:") || strings.Contains(ref, "@sha256:") {
		return nil
	}
	return fmt.Errorf("--image %s may be another image on each machine: name it by its digest (%[1]s@sha256:...), as "+
		"docker images --digests shows, or by its ID", ref)
}

// Tasks implements shard.Scheduler.
func (Scheduler) Tasks(ctx context.Context, d *shard.Dir, r sweep.Round) ([]sweep.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	api, err := open()
	if err != nil {
		return nil, err
	}
	defer api.Close() //nolint:errcheck // only read
	machines, err := nodes(ctx, api)
	if err != nil {
		return nil, err
	}
	name := serviceName(d.Sub, r.Number) // as Handle, which a killed submitter has not written
	all, err := api.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("service", name))})
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	host := func(node string) string {
		n, ok := machines[node]
		if ok && n.Status.State == swarm.NodeStateDown {
			return n.Description.Hostname + " (down)"
		}
		return n.Description.Hostname
	}
	asked := 0
	return tasksOf(all, d.Sub.Shards, host, func(task string) string {
		if asked++; asked > maxAsked {
			return ""
		}
		return lastWords(ctx, api, task)
	}), nil
}

// maxAsked is of how many failed shards the logs are read: most fail for the same reason.
const maxAsked = 3

// tasksOf returns the state of each shard from all tasks of a service. Of the tasks of a shard the
// newest counts. words returns what a failed task said last.
func tasksOf(all []swarm.Task, shards int, host, words func(id string) string) []sweep.Task {
	newest := make([]*swarm.Task, shards)
	out := make([]sweep.Task, shards)
	for i := range all {
		t := &all[i]
		k := t.Slot - 1 // the slots of a service are numbered from 1
		if k < 0 || k >= shards {
			continue
		}
		if t.Status.ContainerStatus != nil && t.Status.ContainerStatus.ContainerID != "" {
			out[k].Tries++
		}
		if newest[k] == nil || t.CreatedAt.After(newest[k].CreatedAt) {
			newest[k] = t
		}
	}
	for k, t := range newest {
		out[k].Shard, out[k].State = k, sweep.Waiting
		if t == nil {
			continue
		}
		out[k].Host, out[k].State = host(t.NodeID), stateOf(t)
		if out[k].State != sweep.Running && out[k].State != sweep.Done {
			out[k].Error = reason(t.Status.Err)
		}
		if out[k].State == sweep.Failed {
			out[k].Error = ended(out[k].Error, words(t.ID))
		}
	}
	return out
}

// stateOf returns the state of a shard by its newest task.
func stateOf(t *swarm.Task) string {
	switch t.Status.State {
	case swarm.TaskStateRunning:
		return sweep.Running
	case swarm.TaskStateComplete:
		return sweep.Done
	case swarm.TaskStateFailed, swarm.TaskStateRejected, swarm.TaskStateOrphaned, swarm.TaskStateShutdown,
		swarm.TaskStateRemove:
		return sweep.Failed // the engine would have made a newer task to replace it
	}
	return sweep.Waiting
}
