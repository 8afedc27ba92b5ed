package swarm

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"weft/nodeimg/image"
	"weft/orchestrator/sweep"
)

// Labels of services and containers. labelSweep marks them as ours; its value is the sweep's ID.
const (
	labelSweep = "weft.sweep"
	labelDir   = "weft.sweep.dir"
)

// SlotVar is the environment variable with the slot of a task in its service, from 1 on.
const SlotVar = "WEFT_SLOT"

// Restarts of a task whose machine failed. Measured: a task is replaced about 11 s after its
// machine died, when the manager sees it down, plus the delay.
const (
	restartDelay = 5 * time.Second
	maxRestarts  = sweep.MaxTries
	graceTime    = 20 * time.Second // for a shard to end
)

// serviceName returns the name of a round's service. The series is unique among all submissions.
func serviceName(s *sweep.Submission, round int) string {
	return fmt.Sprintf("weft-%s-%d", strings.ToLower(s.Series[:min(len(s.Series), 12)]), round)
}

// service returns the service of a round: a replica for each shard of the sweep at path, run by
// user.
func service(s *sweep.Submission, r *sweep.Round, path, user string) swarm.ServiceSpec {
	replicas, attempts, delay, grace := uint64(s.Shards), uint64(maxRestarts), restartDelay, graceTime
	labels := map[string]string{labelSweep: s.ID, labelDir: path}
	env := []string{SlotVar + "={{.Task.Slot}}", "HOME=/tmp"}
	if r.Memory > 0 {
		env = append(env, fmt.Sprintf("GOMEMLIMIT=%d", sweep.HeapLimit(r.Memory)))
	}
	results := filepath.Dir(filepath.Dir(path)) // runs lie beside the sweep's directory
	return swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: r.Handle, Labels: labels},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{
				Image: r.Image, Labels: labels, User: user, Hostname: "{{.Node.Hostname}}", ReadOnly: true,
				Args: []string{"sweep", "shard", path, "--round", strconv.Itoa(r.Number), "--workers",
					strconv.Itoa(max(1, r.Workers))},
				Env: env, CapabilityDrop: []string{"ALL"}, StopGracePeriod: &grace,
				Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
				Mounts: []mount.Mount{
					{Type: mount.TypeBind, Source: results, Target: results},
					{Type: mount.TypeTmpfs, Target: "/tmp"},
				},
			},
			Resources: &swarm.ResourceRequirements{
				Limits: &swarm.Limit{MemoryBytes: r.Memory},
				Reservations: &swarm.Resources{NanoCPUs: int64(max(1, r.Workers)) * 1e9,
					MemoryBytes: r.Memory},
			},
			RestartPolicy: &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionOnFailure, Delay: &delay,
				MaxAttempts: &attempts},
		},
		Mode: swarm.ServiceMode{Replicated: &swarm.ReplicatedService{Replicas: &replicas}},
	}
}

// keysFile is where a shard finds its keys.
const keysFile = "/run/secrets/weft"

// collecting changes a service for tasks that see no shared directory: they send their runs to the
// collector at addr, with keys in a secret. They are nobody, and in the network of their machine,
// from which the collector can be reached; runs are in memory until they are sent.
func collecting(s *swarm.ServiceSpec, r *sweep.Round, addr, secret string) {
	uid, gid, _ := strings.Cut(image.User, ":")
	c := s.TaskTemplate.ContainerSpec
	c.User = image.User
	c.Args = append([]string{"sweep", "shard", "--collector", addr, "--keys", keysFile}, c.Args[3:]...)
	c.Mounts = c.Mounts[1:]
	c.Privileges = &swarm.Privileges{NoNewPrivileges: true}
	c.Secrets = []*swarm.SecretReference{{SecretID: secret, SecretName: r.Handle,
		File: &swarm.SecretReferenceFileTarget{Name: keysFile, UID: uid, GID: gid, Mode: 0o400}}}
	s.TaskTemplate.Networks = []swarm.NetworkAttachmentConfig{{Target: network.NetworkHost}}
}
