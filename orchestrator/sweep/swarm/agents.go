package swarm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"weft/internal/clip"
	"weft/nodeimg/image"
	"weft/orchestrator/machine"
)

// Agents starts the agents of one lab on the machines of the swarm whose manager is at DOCKER_HOST.
type Agents struct{}

// Name implements machine.Engine.
func (Agents) Name() string { return "swarm" }

// Where implements machine.Engine.
func (Agents) Where() string { return os.Getenv(client.EnvOverrideHost) }

// Hosts implements machine.Engine.
func (Agents) Hosts(ctx context.Context) ([]machine.Host, error) {
	api, err := open()
	if err != nil {
		return nil, err
	}
	defer api.Close() //nolint:errcheck // only read
	all, err := nodes(ctx, api)
	if err != nil {
		return nil, err
	}
	var out []machine.Host
	for _, n := range all {
		if takesTasks(&n) {
			out = append(out, machine.Host{Name: n.Description.Hostname, Addr: n.Status.Addr})
		}
	}
	return out, nil
}

// Place implements machine.Engine: a secret, and a service with a replica for each agent.
func (a Agents) Place(ctx context.Context, p *machine.Placement) (err error) {
	api, err := open()
	if err != nil {
		return err
	}
	defer api.Close() //nolint:errcheck // nothing is buffered
	if p.Image, err = imageOf(ctx, api, p.Image); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Remove(context.WithoutCancel(ctx), a.Where(), p.Name))
		}
	}()
	labels := map[string]string{labelSweep: p.Name, labelAgents: p.Owner.String()}
	secret, err := api.SecretCreate(ctx, swarm.SecretSpec{
		Annotations: swarm.Annotations{Name: p.Name, Labels: labels}, Data: []byte(p.Secret)})
	if err != nil {
		return fmt.Errorf("create the secret of the agents: %w", err)
	}
	if _, err := api.ServiceCreate(ctx, agents(p, labels, secret.ID), swarm.ServiceCreateOptions{}); err != nil {
		return fmt.Errorf("create the service of the agents: %w", err)
	}
	return nil
}

// labelAgents marks services, secrets and containers of agents; its value is their owner.
const labelAgents = "weft.agents"

// secretFile is where an agent finds the secret.
const secretFile = "/run/secrets/weft"

// agentGrace is for an agent to end its processes.
const agentGrace = 5 * time.Second

// agents returns the service of a placement. An agent makes its namespaces in a user namespace of
// its own, as an ordinary user. For that the engine's seccomp profile must allow unshare and mount,
// and chroot, which it does for who may have these capabilities; the user never has them. The
// AppArmor profile would refuse mounts. The network is the machine's: an overlay would delay
// packets between parts, and hide it.
func agents(p *machine.Placement, labels map[string]string, secret string) swarm.ServiceSpec {
	replicas, grace, none := uint64(p.Count), agentGrace, uint64(0)
	uid, gid, _ := strings.Cut(image.User, ":")
	return swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: p.Name, Labels: labels},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{
				Image: p.Image, Labels: labels, User: image.User, Hostname: "{{.Node.Hostname}}", ReadOnly: true,
				Args: append(p.Args(), "--secret", secretFile), Env: []string{"HOME=/tmp"},
				CapabilityDrop: []string{"ALL"}, CapabilityAdd: []string{"CAP_SYS_ADMIN", "CAP_SYS_CHROOT"},
				Privileges: &swarm.Privileges{NoNewPrivileges: true,
					AppArmor: &swarm.AppArmorOpts{Mode: swarm.AppArmorModeDisabled}},
				StopGracePeriod: &grace,
				Healthcheck:     &container.HealthConfig{Test: []string{"NONE"}},
				Mounts:          []mount.Mount{{Type: mount.TypeTmpfs, Target: "/tmp"}},
				Secrets: []*swarm.SecretReference{{SecretID: secret, SecretName: p.Name,
					File: &swarm.SecretReferenceFileTarget{Name: secretFile, UID: uid, GID: gid, Mode: 0o400}}},
			},
			RestartPolicy: &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionNone, MaxAttempts: &none},
			Placement:     &swarm.Placement{MaxReplicas: 1},
			Networks:      []swarm.NetworkAttachmentConfig{{Target: network.NetworkHost}},
		},
		Mode: swarm.ServiceMode{Replicated: &swarm.ReplicatedService{Replicas: &replicas}},
	}
}

// Look implements machine.Engine.
func (Agents) Look(ctx context.Context, p *machine.Placement) error {
	api, err := open()
	if err != nil {
		return err
	}
	defer api.Close() //nolint:errcheck // only read
	machines, err := nodes(ctx, api)
	if err != nil {
		return err
	}
	all, err := api.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("service", p.Name))})
	if err != nil {
		return err
	}
	for _, t := range all {
		why := reason(t.Status.Err)
		n, placed := machines[t.NodeID]
		if placed && n.Status.State == swarm.NodeStateDown {
			return fmt.Errorf("the machine %s is down", clip.Line(n.Description.Hostname))
		}
		switch t.Status.State {
		case swarm.TaskStatePending:
			if why != "" {
				return fmt.Errorf("an agent has no machine: %s", why)
			}
		case swarm.TaskStateComplete, swarm.TaskStateFailed, swarm.TaskStateRejected, swarm.TaskStateOrphaned,
			swarm.TaskStateShutdown, swarm.TaskStateRemove:
			return fmt.Errorf("the agent on %s ended: %s", clip.Line(n.Description.Hostname),
				ended(why, lastWords(ctx, api, t.ID)))
		}
	}
	return nil
}

// maxWords is how much of what a task said last is shown, in bytes, and wordsTime how long its
// machine may take to tell. Ours.
const (
	maxWords  = 1 << 10
	wordsTime = 5 * time.Second
)

// reason returns the engine's reason why a task does not run, with what to do about it.
func reason(text string) string {
	if strings.Contains(text, "No such image") {
		text += "; every machine needs that of this weft: weft image save weft.tar, and there docker load -i weft.tar"
	}
	if strings.Contains(text, "insufficient resources") {
		text = "it waits for a free processor or memory: " + text
	}
	return clip.Line(text)
}

// ended returns why a task ended, by the engine's reason and by what the task said last. That weft
// exited with 1 adds nothing to its error.
func ended(why, words string) string {
	switch {
	case words == "":
		return why
	case why == "" || why == "task: non-zero exit (1)":
		return words
	}
	return why + ": " + words
}

// lastWords returns the last line that a task said; "" if the engine does not tell.
func lastWords(ctx context.Context, api *client.Client, task string) string {
	ctx, cancel := context.WithTimeout(ctx, wordsTime)
	defer cancel()
	r, err := api.TaskLogs(ctx, task, container.LogsOptions{ShowStderr: true, ShowStdout: true, Tail: "3"})
	if err != nil {
		return ""
	}
	defer r.Close() //nolint:errcheck // only read
	var said bytes.Buffer
	_, _ = stdcopy.StdCopy(&said, &said, io.LimitReader(r, maxWords)) // what came is shown
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	return clip.Line(strings.TrimPrefix(lines[len(lines)-1], "weft: "))
}

// Remove implements machine.Engine.
func (Agents) Remove(ctx context.Context, where, name string) error {
	api, err := openAt(where)
	if err != nil {
		return err
	}
	defer api.Close() //nolint:errcheck // nothing is buffered
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	return removeService(ctx, api, name)
}

// removeService removes a service, its containers on this machine and its secret, if it has one.
func removeService(ctx context.Context, api *client.Client, name string) error {
	err := api.ServiceRemove(ctx, name)
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the service %s: %w", name, err)
	}
	if err := removeContainers(ctx, api, name); err != nil {
		return err
	}
	if err := api.SecretRemove(ctx, name); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the secret %s: %w", name, err)
	}
	return nil
}
